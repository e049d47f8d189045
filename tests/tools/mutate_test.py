"""tools/mutate.py on a small checkout with a compiler and tests of its own; and the mutations of this tree."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from tree import ROOT, load_tool, run_tool, write

# In the place of cmake and ninja: the "build" copies the source, and does not accept the word broken.
CMAKE = """#!/bin/sh
mkdir -p "$4" && touch "$4/build.ninja"
"""
NINJA = """#!/bin/sh
grep -q broken "$2/../tree/src/part/answer.txt" && { echo "the compiler says no"; exit 1; }
mkdir -p "$2/bin" && cp "$2/../tree/src/part/answer.txt" "$2/bin/answer"
cp "$2/../tree/tests/part/program.py" "$2/bin/test_part" && chmod +x "$2/bin/test_part"
"""
PROGRAM = """#!/usr/bin/env python3
import json, os, pathlib, signal, sys, time
arguments = dict(a.split("=", 1) for a in sys.argv[1:])
answer = pathlib.Path(__file__).with_name("answer").read_text().split()[0]
if answer == "crash": os.kill(os.getpid(), signal.SIGSEGV)
if answer == "hang": time.sleep(60)
test = {"name": "Right", "status": "RUN", "result": "COMPLETED"}
if answer != "42": test["failures"] = [{"failure": "not 42"}]
report = {"testsuites": [{"name": "Answer", "testsuite": [test]}]}
pathlib.Path(arguments["--gtest_output"].removeprefix("json:")).write_text(json.dumps(report))
sys.exit(answer != "42")
"""


def patch(new, path="src/part/answer.txt", old="42 # why"):
    return f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-{old}\n+{new}\n"


def mutation(name, more=""):
    return (f'[[mutation]]\nname = "{name}"\nclass = "X1"\nidea = "another answer"\ntest = "test_part"\n'
            f'filter = "Answer.Right"\n{more}\n')


CLASSES = '[[class]]\nid = "X1"\nwhat = "wrong answers"\nseen = "others"\n'


class Mutate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "checkout"
        tools = pathlib.Path(folder.name) / "tools"
        write(tools, {"cmake": CMAKE, "ninja": NINJA})
        for name in ("cmake", "ninja"):
            (tools / name).chmod(0o755)
        path = os.environ["PATH"]
        os.environ["PATH"] = f"{tools}:{path}"
        self.addCleanup(os.environ.update, {"PATH": path})
        write(self.root, {"src/part/answer.txt": "42 # why\n", "tests/part/program.py": PROGRAM, ".gitignore": "/build/\n",
                          "tests/part/answer_test.cpp": "TEST(Answer, Right) {\n"})
        for words in (["init", "-q"], ["add", "-A"]):
            subprocess.run(["git", *words], cwd=self.root, check=True)

    def give(self, patches, more=None, classes=CLASSES):
        more = more or {}
        write(self.root / "tests/mutations", {f"{name}.patch": text for name, text in patches.items()})
        text = classes + "".join(mutation(name, more.get(name, "")) for name in patches)
        write(self.root, {"tests/mutations/classes.toml": text})

    def run_it(self, *args):
        before = {p: p.read_bytes() for p in self.root.rglob("*") if p.is_file() and "build" not in p.parts}
        code, output = run_tool("mutate.py", self.root, list(args))
        after = {p: p.read_bytes() for p in self.root.rglob("*") if p.is_file() and "build" not in p.parts}
        self.assertEqual(before, after, "the checkout was changed")
        return code, output

    def assert_refused(self, *words):
        code, output = self.run_it()
        self.assertEqual(code, 1, output)
        for word in words:
            self.assertIn(word, output)

    def test_caught(self):
        self.give({"other": patch("41")})
        code, output = self.run_it()
        self.assertEqual(code, 0, output)
        self.assertRegex(output, r"\[1/1\] other: caught by Answer.Right")
        self.assertRegex(output, r"X1 +other +part: Answer.Right +caught +\d")
        self.assertIn("1 of 1 mutations caught", output)

    def test_results(self):
        self.give({"same": patch("42 # because"), "broken": patch("broken"), "old": patch("41", old="43"),
                   "crash": patch("crash"), "fatal": patch("crash"), "slow": patch("hang"), "wait": patch("hang"),
                   "last": patch("41")},
                  {"fatal": "crash = true", "slow": "limit_s = 1", "wait": "limit_s = 1\nhang = true"})
        code, output = self.run_it("--json")
        self.assertEqual(code, 1, output)
        document = json.loads(output[output.index("\n{\n") :])
        self.assertEqual({m["name"]: m["result"] for m in document["mutations"]},
                         {"same": "NOT CAUGHT", "broken": "error", "old": "error", "crash": "crashed",
                          "fatal": "caught", "slow": "hung", "wait": "caught", "last": "caught"})
        self.assertIn("the compiler says no", output)
        self.assertIn("does not apply", output)
        for line in output[: output.index("\n{\n")].splitlines():
            self.assertNotIn("Traceback", line)

    def test_lines_fit(self):
        self.give({"a" * 60: patch("41")})
        _, output = self.run_it()
        self.assertTrue(all(len(line) <= 100 for line in output.splitlines() if line.startswith("X1")), output)

    def test_names(self):
        self.give({"one": patch("41"), "two": patch("40")})
        self.assertIn("1 of 1", self.run_it("two")[1])
        self.assertIn("2 of 2", self.run_it("X1")[1])
        code, output = self.run_it("three")
        self.assertEqual(code, 1)
        self.assertIn("three", output)

    def test_red_without_a_mutation(self):
        write(self.root, {"src/part/answer.txt": "43\n"})
        self.give({"other": patch("41", old="43")})
        self.assert_refused("test_part fails without a mutation")

    def test_test_that_is_not_there(self):
        self.give({"other": patch("41")})
        path = self.root / "tests/mutations/classes.toml"
        path.write_text(path.read_text().replace("Answer.Right", "Answer.Wrong"))
        self.assert_refused("runs no test Answer.Wrong")
        code, output = self.run_it("--list")
        self.assertEqual(code, 1)
        self.assertIn("tests/part has no test Answer.Wrong", output)

    def test_list(self):
        self.give({"other": patch("41")}, classes=CLASSES.replace("X1", "X0") + 'reason = "no part"\n' + CLASSES)
        code, output = self.run_it("--list")
        self.assertEqual(code, 0, output)
        self.assertIn("no patch: no part", output)
        self.assertIn("other: another answer", output)
        self.assertFalse((self.root / "build").exists())
        write(self.root, {"src/part/answer.txt": "43\n"})
        code, output = self.run_it("--list")
        self.assertEqual(code, 1)
        self.assertIn("other.patch: does not apply", output)

    def test_catalogs_that_are_wrong(self):
        self.give({"other": patch("41")}, classes=CLASSES + 'reason = "but"\n')
        self.assert_refused("class X1 needs either")
        self.give({}, classes=CLASSES)
        (self.root / "tests/mutations/other.patch").unlink()
        self.assert_refused("class X1 needs either")
        self.give({"other": patch("41", "tests/part/answer_test.cpp")})
        self.assert_refused("changes files of src/ only")
        self.give({"other": "@@ nothing\n"})
        self.assert_refused("no patch of existing files")
        self.give({"other": patch("41")}, {"other": "limits = 3"})
        self.assert_refused("other: limits")
        self.give({"other": patch("41")})
        write(self.root, {"tests/mutations/stray.patch": patch("40")})
        self.assert_refused("stray.patch", "no mutation")

    def test_a_change_of_the_checkout_is_built(self):
        self.give({"other": patch("41")})
        self.run_it()
        write(self.root, {"src/part/answer.txt": "43\n", "src/part/new.txt": "new\n"})
        self.give({"other": patch("41", old="43")})
        self.assert_refused("test_part fails without a mutation")
        self.assertTrue((self.root / "build/mutate/tree/src/part/new.txt").exists())
        (self.root / "src/part/new.txt").unlink()
        self.run_it()
        self.assertFalse((self.root / "build/mutate/tree/src/part/new.txt").exists())

    def test_interrupt(self):
        self.give({"wait": patch("hang")})
        source = self.root / "build/mutate/tree/src/part/answer.txt"
        start = f"import sys; sys.path.insert(0, {str(ROOT / 'tools')!r}); import mutate; mutate.script({str(self.root)!r})"
        with subprocess.Popen([sys.executable, "-B", "-c", start], stderr=subprocess.PIPE, text=True) as child:
            for _ in range(600):
                if source.exists() and source.read_text() == "hang\n":
                    break
                time.sleep(0.05)
            second = subprocess.run([sys.executable, "-B", "-c", start], capture_output=True, text=True, check=False)
            self.assertEqual(second.returncode, 1)
            self.assertIn("in use by another run", second.stderr)
            child.send_signal(signal.SIGINT)
            _, output = child.communicate(timeout=30)
        self.assertEqual(child.returncode, 130, output)
        self.assertIn("the checkout was not touched", output)
        self.assertEqual(source.read_text(), "42 # why\n")
        self.assertEqual((self.root / "src/part/answer.txt").read_text(), "42 # why\n")


class ThisTree(unittest.TestCase):
    def test_every_patch_applies_and_every_test_is_there(self):
        tool = load_tool("mutate.py")
        catalog = tool.Catalog(ROOT)
        self.assertGreater(len(catalog.mutations), 35)
        self.assertEqual(tool.check_patches(ROOT, catalog) + tool.check_tests(ROOT, catalog), [])


if __name__ == "__main__":
    unittest.main()
