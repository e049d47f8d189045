#!/usr/bin/env python3
"""Puts bugs that other trainers shipped into a copy of the tree, one at a time, and expects a named test to fail.

tests/mutations/classes.toml lists the classes of bugs, and for each class its mutations (NAME.patch beside it, the test
that must catch it) or the reason why there is none. The copy and its build stand in build/mutate; the checkout itself is
never written to. What an interrupted run left in the copy is put right by the next one.

Results: "caught" is a failure that gtest reports (or a crash or a hang, where the list says that this is how the bug
shows). "NOT CAUGHT", "crashed", "hung" and "error" (the patch does not apply, does not build) fail the run.
"""

import argparse
import contextlib
import fcntl
import fnmatch
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = "tests/mutations"
LIMIT_S = 300  # a rank's deadline in tests is 60 s at most
MUTATION_KEYS = {"name": str, "class": str, "idea": str, "test": str, "filter": str}
CLASS_KEYS = {"id": str, "what": str, "seen": str}
OPTIONAL_KEYS = {"reason": str, "limit_s": int, "crash": bool, "hang": bool}


class Problem(Exception):
    """What is wrong, where, and what to do."""


class Catalog:
    """The list of tests/mutations/classes.toml, checked."""

    def __init__(self, root):
        self.folder = pathlib.Path(root) / FOLDER
        path = self.folder / "classes.toml"
        try:
            listed = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, tomllib.TOMLDecodeError) as error:
            raise Problem(f"{path}: {error}") from error
        self.classes = self.read(listed, "class", CLASS_KEYS, ("reason",))
        self.mutations = self.read(listed, "mutation", MUTATION_KEYS, ("limit_s", "crash", "hang"))
        self.check()

    def read(self, listed, kind, keys, optional):
        entries = listed.get(kind, [])
        for entry in entries:
            name = entry.get("name", entry.get("id", f"a [[{kind}]] without name"))
            known = {**keys, **{key: OPTIONAL_KEYS[key] for key in optional}}
            for key, value in entry.items():
                if not isinstance(value, known.get(key, ())) or value == "":
                    raise Problem(f"{FOLDER}/classes.toml: {name}: {key} is unknown, empty or of the wrong type")
            for key in keys:
                if key not in entry:
                    raise Problem(f"{FOLDER}/classes.toml: {name}: lacks {key}")
        return entries

    def check(self):
        ids = [c["id"] for c in self.classes]
        names = [m["name"] for m in self.mutations]
        for seen in (ids, names):
            for name in seen:
                if seen.count(name) > 1:
                    raise Problem(f"{FOLDER}/classes.toml: {name} stands there twice")
        for mutation in self.mutations:
            if mutation["class"] not in ids:
                raise Problem(f"{FOLDER}/classes.toml: {mutation['name']}: there is no class {mutation['class']}")
            for path in self.files(mutation):
                if not path.startswith("src/"):
                    raise Problem(f"{self.patch(mutation)}: changes {path}; a mutation changes files of src/ only")
        for entry in self.classes:
            has = any(m["class"] == entry["id"] for m in self.mutations)
            if has == ("reason" in entry):
                raise Problem(f"{FOLDER}/classes.toml: class {entry['id']} needs either a mutation or a reason "
                              "why there is none")
        for path in sorted(self.folder.glob("*.patch")):
            if path.stem not in names:
                raise Problem(f"{path}: is no mutation of classes.toml: add a [[mutation]] or delete it")

    def patch(self, mutation):
        return self.folder / f"{mutation['name']}.patch"

    def files(self, mutation):
        """The files that the patch changes; none may be new or deleted."""
        path = self.patch(mutation)
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise Problem(f"{path}: cannot be read: {error.strerror}") from error
        before = re.findall(r"^--- a/(\S+)$", text, re.MULTILINE)
        after = re.findall(r"^\+\+\+ b/(\S+)$", text, re.MULTILINE)
        if not after or before != after:
            raise Problem(f"{path}: is no patch of existing files as git diff writes it")
        return after

    def pick(self, words):
        """The mutations with one of these names or classes; all without words."""
        known = {m["name"] for m in self.mutations} | {c["id"] for c in self.classes}
        for word in words:
            if word not in known:
                raise Problem(f"there is no mutation and no class {word}; --list shows them")
        return [m for m in self.mutations if not words or m["name"] in words or m["class"] in words]


def apply(tree, patch, *options):
    """git apply in `tree`, which may lie inside another repository. None, or what git says."""
    tree = pathlib.Path(tree).resolve()
    env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
    env["GIT_CEILING_DIRECTORIES"] = str(tree.parent)
    done = subprocess.run(["git", "apply", *options, str(patch)], cwd=tree, env=env, capture_output=True, text=True,
                          check=False)
    return None if done.returncode == 0 else done.stderr.strip()


def check_patches(root, catalog):
    """One line for each patch that does not apply to the tree."""
    problems = []
    for mutation in catalog.mutations:
        trouble = apply(root, catalog.patch(mutation), "--check")
        if trouble:
            problems.append(f"{catalog.patch(mutation)}: does not apply to the tree any more: make it again from the "
                            f"idea in classes.toml\n  {trouble}")
    return problems


def check_tests(root, catalog):
    """One line for each mutation whose test is not in the sources, as suite and name."""
    problems = []
    for mutation in catalog.mutations:
        folder = root / "tests" / mutation["test"].removeprefix("test_")
        sources = "".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*_test.cpp")))
        for pattern in mutation["filter"].split(":"):
            suite, _, test = pattern.partition(".")
            suite, test = suite.split("/")[-1], test.split("/")[0]
            if not re.search(rf"\bTEST(_F|_P)?\(\s*{re.escape(suite)},\s*{re.escape(test)}\)", sources):
                problems.append(f"{FOLDER}/classes.toml: {mutation['name']}: {folder.relative_to(root)} has no test "
                                f"{suite}.{test}: name the one that must catch it, as SUITE.NAME, */SUITE.NAME/PARAM")
    return problems


def sync(root, tree):
    """Makes `tree` hold the files of the checkout, untracked ones too. What is equal keeps its time."""
    listed = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=root, capture_output=True,
                            check=False)
    if listed.returncode != 0:
        raise Problem(f"{root}: is no git checkout: {listed.stderr.decode().strip()}")
    wanted = {name for name in os.fsdecode(listed.stdout).split("\0") if name and (root / name).is_file()}
    tree.mkdir(parents=True, exist_ok=True)
    for path in sorted(tree.rglob("*"), reverse=True):
        if path.is_symlink() or ".git" in path.relative_to(tree).parts:
            continue
        if path.is_dir():
            with contextlib.suppress(OSError):
                path.rmdir()
        elif str(path.relative_to(tree)) not in wanted:
            path.unlink()
    for name in wanted:
        restore(root, tree, name)
    if (root / ".deps").exists() and not (tree / ".deps").exists():
        (tree / ".deps").symlink_to(root / ".deps")


def restore(root, tree, name):
    """A changed file gets the present time, so that ninja builds it anew."""
    source, target = root / name, tree / name
    content = source.read_bytes()
    if target.is_file() and target.read_bytes() == content:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(content)
    target.chmod(source.stat().st_mode)


def run(command, limit_s=None, **options):
    """(exit code or None where it took too long, its output). Nothing that it started outlives it."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          start_new_session=True, **options) as child:
        try:
            output, _ = child.communicate(timeout=limit_s)
            return child.returncode, output
        except subprocess.TimeoutExpired:
            return None, ""
        except KeyboardInterrupt:
            os.killpg(child.pid, signal.SIGINT)  # ninja then deletes what it had begun
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(5)
            raise
        finally:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, signal.SIGKILL)


class Scratch:
    """The copy of the tree and its build."""

    def __init__(self, root, jobs):
        self.root = root
        self.jobs = jobs
        self.tree = root / "build/mutate/tree"
        self.build_dir = root / "build/mutate/build"
        self.env = dict(os.environ)
        if "CCACHE_DIR" not in self.env and not os.access(self.env.get("HOME", "/nonexistent"), os.W_OK):
            self.env["CCACHE_DIR"] = str(root / ".deps/ccache")

    def prepare(self):
        sync(self.root, self.tree)
        if not (self.build_dir / "build.ninja").exists():
            code, output = run(["cmake", "-S", self.tree, "-B", self.build_dir, "-G", "Ninja"], env=self.env)
            if code != 0:
                raise Problem(f"{output}\ncmake failed in {self.build_dir}; its output is above")

    def build(self, targets):
        """None, or the output of a build that failed."""
        code, output = run(["ninja", "-C", self.build_dir, "-j", str(self.jobs), *targets], env=self.env)
        return None if code == 0 else output

    def test(self, target, pattern, limit_s):
        """(exit code, gtest's report or None, output)."""
        report = self.build_dir / "mutate.json"
        report.unlink(missing_ok=True)
        code, output = run([self.build_dir / "bin" / target, f"--gtest_filter={pattern}", "--gtest_brief=1",
                            f"--gtest_output=json:{report}"], limit_s, cwd=self.build_dir, env=self.env)
        try:
            return code, json.loads(report.read_text(encoding="utf-8")), output
        except (OSError, json.JSONDecodeError):
            return code, None, output


def tests_of(report):
    """full name -> whether it failed, of the tests that ran to their end."""
    return {f"{suite['name']}.{test['name']}": bool(test.get("failures"))
            for suite in report.get("testsuites", []) for test in suite["testsuite"]
            if test.get("status") == "RUN" and test.get("result") == "COMPLETED"}


def check_unmutated(scratch, mutations):
    """Builds and runs every test that the mutations name: all must be there and pass."""
    filters = {}
    for mutation in mutations:
        filters.setdefault(mutation["test"], {}).setdefault(mutation["filter"], mutation["name"])
    output = scratch.build(sorted(filters))
    if output is not None:
        raise Problem(f"{output}\nthe tree does not build without a mutation; see above")
    for target, patterns in sorted(filters.items()):
        code, report, output = scratch.test(target, ":".join(patterns), LIMIT_S * len(patterns))
        if code is None:
            raise Problem(f"{target} did not end without a mutation: {', '.join(patterns)}")
        ran = tests_of(report) if report else {}
        for pattern, name in patterns.items():
            if not any(fnmatch.fnmatchcase(test, part) for test in ran for part in pattern.split(":")):
                raise Problem(f"{output}\n{name}: {target} runs no test {pattern}: name one that it has")
        if code != 0:
            raise Problem(f"{output}\n{target} fails without a mutation; see above")


def judge(mutation, code, report):
    """The result, and the tests that failed."""
    if code is None:
        return ("caught" if mutation.get("hang") else "hung"), []
    if report is None:
        return ("caught" if mutation.get("crash") and code != 0 else "crashed"), []
    failed = sorted(name for name, bad in tests_of(report).items() if bad)
    return ("caught" if failed and code != 0 else "NOT CAUGHT"), failed


def try_mutation(catalog, scratch, mutation):
    """{result, detail, failed}; the copy is as it was afterwards."""
    try:
        trouble = apply(scratch.tree, catalog.patch(mutation))
        if trouble:
            return {"result": "error", "detail": f"the patch does not apply: {trouble}", "failed": []}
        output = scratch.build([mutation["test"]])
        if output is not None:
            return {"result": "error", "detail": f"does not build:\n{output}", "failed": []}
        code, report, output = scratch.test(mutation["test"], mutation["filter"], mutation.get("limit_s", LIMIT_S))
        result, failed = judge(mutation, code, report)
        detail = "" if result == "caught" else f"exit code {code}\n{output[-2000:]}"
        return {"result": result, "detail": detail, "failed": failed}
    finally:
        for name in catalog.files(mutation):
            restore(scratch.root, scratch.tree, name)


def shortened(text, width):
    return text if len(text) <= width else text[: width - 1] + "…"


def row(entry, name, test, result, seconds=""):
    return f"{shortened(entry, 4):<4} {shortened(name, 31):<31} {shortened(test, 43):<43} {result:<10} {seconds:>6}".rstrip()


def test_name(mutation):
    return f"{mutation['test'].removeprefix('test_')}: {mutation['filter']}"


def print_reasons(catalog):
    for entry in catalog.classes:
        if "reason" in entry:
            print(f"{entry['id']:<4} no patch: {entry['reason']}")


def list_all(catalog, picked):
    for entry in catalog.classes:
        mutations = [m for m in picked if m["class"] == entry["id"]]
        if not mutations and "reason" not in entry:
            continue
        print(f"{entry['id']:<4} {entry['what']} ({entry['seen']})")
        for mutation in mutations:
            print(f"       {mutation['name']}: {mutation['idea']}\n         {test_name(mutation)}")
        if "reason" in entry:
            print(f"       no patch: {entry['reason']}")


def mutate(root, catalog, picked, jobs, as_json):
    """Runs them and prints the table; the exit code."""
    (root / "build/mutate").mkdir(parents=True, exist_ok=True)
    with (root / "build/mutate/lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise Problem("build/mutate is in use by another run: wait for it") from error
        return run_all(catalog, Scratch(root, jobs), picked, as_json)


def say(text):
    print(text, file=sys.stderr, flush=True)


def run_all(catalog, scratch, picked, as_json):
    started = time.monotonic()
    say("mutate: builds and tests the tree as it is")
    scratch.prepare()
    check_unmutated(scratch, picked)
    say(f"mutate: green without a mutation after {time.monotonic() - started:.0f} s")
    results = []
    for number, mutation in enumerate(picked, 1):
        begun = time.monotonic()
        outcome = try_mutation(catalog, scratch, mutation)
        outcome = {**mutation, **outcome, "seconds": round(time.monotonic() - begun, 1)}
        results.append(outcome)
        by = f" by {outcome['failed'][0]}" if outcome["failed"] else ""
        say(f"[{number}/{len(picked)}] {mutation['name']}: {outcome['result']}{by}, {outcome['seconds']} s")
        if outcome["detail"]:
            say(outcome["detail"])
    seconds = time.monotonic() - started
    caught = sum(r["result"] == "caught" for r in results)
    if as_json:
        reasons = {c["id"]: c["reason"] for c in catalog.classes if "reason" in c}
        print(json.dumps({"mutations": results, "without_patch": reasons, "caught": caught,
                          "seconds": round(seconds, 1)}, indent=1, ensure_ascii=False))
    else:
        print(row("", "patch", "test", "result", "s"))
        for r in results:
            print(row(r["class"], r["name"], test_name(r), r["result"], f"{r['seconds']:.1f}"))
        print_reasons(catalog)
        print(f"{caught} of {len(results)} mutations caught in {seconds:.0f} s")
    return 0 if caught == len(results) else 1


def main(root=ROOT, argv=None):
    parser = argparse.ArgumentParser(prog="dev mutate", description=__doc__.split("\n", 1)[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="mutations or classes; all without one")
    parser.add_argument("--list", action="store_true", help="lists classes and mutations, and whether patches apply")
    parser.add_argument("--json", action="store_true", help="the result as JSON")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    options = parser.parse_args(argv)
    root = pathlib.Path(root)
    try:
        catalog = Catalog(root)
        picked = catalog.pick(options.names)
        if options.list:
            list_all(catalog, picked)
            problems = check_patches(root, catalog) + check_tests(root, catalog)
            for problem in problems:
                print(f"mutate: {problem}", file=sys.stderr)
            return 1 if problems else 0
        return mutate(root, catalog, picked, options.jobs, options.json)
    except Problem as problem:
        print(f"mutate: {problem}", file=sys.stderr)
        return 1


def script(root=ROOT):
    """Exits as the command does; SIGINT and SIGTERM leave nothing behind."""

    def interrupted(*_):
        raise KeyboardInterrupt

    signal.signal(signal.SIGTERM, interrupted)
    try:
        sys.exit(main(root))
    except KeyboardInterrupt:
        print("mutate: stopped; the checkout was not touched", file=sys.stderr)
        sys.exit(130)


if __name__ == "__main__":
    script()
