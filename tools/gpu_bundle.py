"""Makes a folder that runs the CUDA build on a machine that has the same torch wheel with its nvidia wheels.

The folder holds penteract and the given test programs, stripped, and in lib/ the shared libraries that they need beyond
glibc and the wheels. Its run.sh finds torch through python3 (or $PYTHON) and starts a program: ./run.sh penteract
--version. A test that reads files of the checkout needs the checkout at the same path there.

Usage: gpu_bundle.py [--build DIR] [--out DIR] [TEST…]. Exit 1: something is missing.
"""

import argparse
import pathlib
import re
import runpy
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Of the machine that runs it: its loader fits no other glibc.
GLIBC = re.compile(r"(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util|anl))\.so\.\d+")
RUN = """#!/bin/sh
# Runs a program of this folder with the torch that python3 (or $PYTHON) finds: ./run.sh penteract --version
set -eu
wanted='@VERSION@'
here=$(cd "$(dirname "$0")" && pwd)
[ $# -gt 0 ] || { echo "run.sh: name a program: $(cd "$here/bin" && echo *)" >&2; exit 2; }
[ -x "$here/bin/$1" ] || { echo "run.sh: there is no $1, but: $(cd "$here/bin" && echo *)" >&2; exit 2; }
site=$("${PYTHON:-python3}" -c '
import importlib.util, os, runpy
spec = importlib.util.find_spec("torch")
if spec is None: raise SystemExit("run.sh: this python has no torch; PYTHON names another one")
folder = os.path.dirname(spec.origin)
version = runpy.run_path(os.path.join(folder, "version.py"))["__version__"]
if version != "'"$wanted"'": raise SystemExit(f"run.sh: torch is {version}; the programs were built with '"$wanted"'")
print(os.path.dirname(folder))')
path=$here/lib:$site/torch/lib
for folder in "$site"/nvidia/*/lib; do path=$path:$folder; done
export LD_LIBRARY_PATH="$path${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
program=$here/bin/$1
shift
exec "$program" "$@"
"""


def libraries(program):
    """name -> path of every shared library that the program loads."""
    text = subprocess.run(["ldd", program], check=True, text=True, stdout=subprocess.PIPE).stdout
    found = {}
    for line in text.splitlines():
        match = re.fullmatch(r"\s*(\S+) => (.+?)(?: \(0x[0-9a-f]+\))?", line)
        if match:
            if match[2] == "not found":
                raise SystemExit(f"gpu_bundle: {program} needs {match[1]}, which is not found")
            found[match[1]] = pathlib.Path(match[2])
    return found


def strip(option, source, target):
    shutil.copyfile(source, target)
    target.chmod(0o755)
    subprocess.run(["strip", option, target], check=True)
    return target.stat().st_size


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="gpu_bundle.py")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-cuda")
    parser.add_argument("--out", type=pathlib.Path, default=ROOT / ".gpu")
    parser.add_argument("tests", nargs="*", metavar="TEST", help="as test_cuda")
    args = parser.parse_args(arguments)
    programs = [args.build / "bin" / name for name in ["penteract", *args.tests]]
    for program in programs:
        if not program.is_file():
            raise SystemExit(f"gpu_bundle: {program} is not there: ./dev build --cuda --tests makes it")

    needed = {}
    for program in programs:
        needed.update(libraries(program))
    if "libtorch_cuda.so" not in needed:
        raise SystemExit(f"gpu_bundle: {args.build} is not a CUDA build: its programs need no libtorch_cuda.so")
    torch = needed["libtorch_cuda.so"].parent.parent.resolve()
    site = torch.parent
    carried = {name: path.resolve() for name, path in needed.items()
               if not GLIBC.fullmatch(name) and not path.resolve().is_relative_to(site)}

    shutil.rmtree(args.out, ignore_errors=True)
    for folder in ("bin", "lib"):
        (args.out / folder).mkdir(parents=True)
    sizes = {}
    for program in programs:
        sizes[f"bin/{program.name}"] = strip("--strip-all", program, args.out / "bin" / program.name)
    for name, path in sorted(carried.items()):
        sizes[f"lib/{name}"] = strip("--strip-unneeded", path, args.out / "lib" / name)
    run = args.out / "run.sh"
    run.write_text(RUN.replace("@VERSION@", runpy.run_path(str(torch / "version.py"))["__version__"]), encoding="utf-8")
    run.chmod(0o755)
    for name, size in sizes.items():
        print(f"{size / 2**20:7.2f} MiB  {name}")
    print(f"{sum(sizes.values()) / 2**20:7.2f} MiB  {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
