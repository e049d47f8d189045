"""Fails on a relative link of README or docs/ whose file, or whose heading, is not there.

Usage: check_docs.py [ROOT]. Nothing is fetched. Exit 7: a link is broken.
"""

import pathlib
import re
import sys
import urllib.parse

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")


def headings(text):
    """The anchors that GitHub makes of headings."""
    found = set()
    for line in FENCE.sub("", text).splitlines():
        match = re.match(r"#+\s+(.*)", line)
        if match:
            slug = re.sub(r"[^\w\- ]", "", match[1].strip().lower()).replace(" ", "-")
            found.add(slug)
    return found


def check_page(path, root):
    text = path.read_text(encoding="utf-8")
    for target in LINK.findall(CODE.sub("", FENCE.sub("", text))):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = urllib.parse.unquote(target).partition("#")
        page = (path.parent / name).resolve() if name else path
        if not page.exists() or root not in (page, *page.parents):
            yield f"{target}: there is no such file"
        elif anchor and page.suffix == ".md" and anchor not in headings(page.read_text(encoding="utf-8")):
            yield f"{target}: {page.name} has no such heading"


def main(root):
    root = root.resolve()
    pages = sorted(root.glob("*.md")) + sorted((root / "docs").rglob("*.md"))
    complaints = [f"{page.relative_to(root)}: {text}" for page in pages for text in check_page(page, root)]
    for complaint in complaints:
        print(complaint, file=sys.stderr)
    if not complaints:
        print(f"docs: {len(pages)} pages, every relative link leads somewhere")
    return 7 if complaints else 0


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).resolve().parent.parent)))
