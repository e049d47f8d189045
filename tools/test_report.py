"""After ctest: the time of each label against its budget, and the ten slowest tests.

Usage: test_report.py FOLDER, which holds ctest.xml (the JUnit report of ctest) and PART.LABEL.json (gtest's reports).
A budget that is passed prints a warning and fails nothing: the machine may be slow. Exit 1: a report is missing.
"""

import json
import pathlib
import sys
import xml.etree.ElementTree

# Seconds on 2 cores.
BUDGETS = {"unit": 120, "ranks": 600, "procs": 600, "slow": 3600}
NUM_SLOWEST = 10


def label_times(path):
    """Seconds a label; the label is the last part of a ctest name."""
    times = {}
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        label = case.get("name").rpartition(".")[2]
        times[label] = times.get(label, 0.0) + float(case.get("time") or 0)
    return times


def gtest_times(folder):
    """(seconds, ctest name, Suite.Test) of every test that ran."""
    found = []
    for path in sorted(folder.glob("*.json")):
        for suite in json.loads(path.read_text(encoding="utf-8"))["testsuites"]:
            for test in suite["testsuite"]:
                if test.get("status") == "RUN":
                    found.append((float(test["time"].rstrip("s")), path.stem, f"{suite['name']}.{test['name']}"))
    return found


def report(folder):
    lines = ["", "label    seconds   budget"]
    times = label_times(folder / "ctest.xml")
    for label, budget in BUDGETS.items():
        if label in times:
            lines.append(f"{label:8} {times[label]:7.1f}  {budget:7}")
    tests = gtest_times(folder)
    lines += ["", f"the {min(NUM_SLOWEST, len(tests))} slowest of {len(tests)} tests"]
    lines += [f"{seconds:8.2f} s  {test}  ({part})" for seconds, part, test in sorted(tests, reverse=True)[:NUM_SLOWEST]]
    for label, seconds in times.items():
        if label in BUDGETS and seconds > BUDGETS[label]:
            text = f"WARNING: the {label} tests took {seconds:.0f} s, their budget is {BUDGETS[label]} s"
            lines += ["", "!" * len(text), text, "!" * len(text)]
    return "\n".join(lines) + "\n"


def main(folder):
    try:
        print(report(pathlib.Path(folder)))
    except (OSError, ValueError, KeyError, xml.etree.ElementTree.ParseError) as error:
        print(f"test_report: {error!r}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
