"""Fails on sources that grew too long and on work that was put off.

A file of more than 800 lines says why in a comment that starts with "Long:" among its first 20 lines. Marks of work put
off (the usual four words) stand in an issue, not in the tree. Usage: check_tree.py [ROOT]. Exit 7: something is wrong.
"""

import pathlib
import re
import sys

FOLDERS = ("src", "tests", "bench", "tools", "docs", "cmake", "recipes", ".ci")
SUFFIXES = {".h", ".cpp", ".cu", ".def", ".inc", ".py", ".sh", ".md", ".txt", ".cmake", ".toml", ""}
MAX_LINES = 800
PUT_OFF = re.compile(r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "XX" + "X", "HA" + "CK")) + r")\b")
# Recorded values and vocabularies are data, whatever their length.
DATA = {"golden", "data"}


def check_file(path):
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return
    if len(lines) > MAX_LINES and path.suffix in (".h", ".cpp", ".cu", ".py", ".sh"):
        if not any(re.match(r"\s*(//|#)\s*Long: \S", line) for line in lines[:20]):
            yield f"{len(lines)} lines: split it, or say why not in a comment \"Long: …\" on top"
    for number, line in enumerate(lines, 1):
        if PUT_OFF.search(line):
            yield f"line {number}: do it, or file an issue"


def main(root):
    complaints = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*")):
            if not path.is_file() or path.suffix not in SUFFIXES or DATA & set(path.relative_to(root).parts[1:-1]):
                continue
            complaints += [f"{path.relative_to(root)}: {text}" for text in check_file(path)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    return 7 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)))
