"""tools/gpu_bundle.py on stand-ins for the build, ldd and strip; run.sh with a stand-in for torch."""

import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

from tree import run_tool, write

LDD = """#!/bin/bash
cat "$(dirname "$0")/../$(basename "$1").ldd"
"""
SYSTEM = "\tlinux-vdso.so.1 (0x0)\n\tlibc.so.6 => {root}/usr/libc.so.6 (0x0)\n\t/lib64/ld-linux-x86-64.so.2 (0x0)\n"
WHEELS = "\tlibtorch_cuda.so => {root}/site/torch/lib/libtorch_cuda.so (0x0)\n" \
         "\tlibcudart.so.13 => {root}/site/nvidia/cu13/lib/libcudart.so.13 (0x0)\n"
FMT = "\tlibfmt.so.9 => {root}/usr/libfmt.so.9 (0x0)\n"


class GpuBundle(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name).resolve() / "check out"
        show = '#!/bin/sh\necho "$0 $* $LD_LIBRARY_PATH"\n'
        write(self.root, {
            "build/bin/penteract": show, "build/bin/test_cuda": show, "usr/libc.so.6": "c", "usr/libfmt.so.9": "f",
            "site/torch/__init__.py": "raise SystemExit('nobody needs to import it')\n",
            "site/torch/version.py": "__version__ = '2.9+cu1'\n", "site/torch/lib/libtorch_cuda.so": "",
            "site/nvidia/cu13/lib/libcudart.so.13": "", "site/nvidia/nccl/lib/libnccl.so.2": "",
            "tools/ldd": LDD, "tools/strip": "#!/bin/sh\n"})
        for name in ("ldd", "strip"):
            (self.root / "tools" / name).chmod(0o755)
        self.loads("penteract", SYSTEM + WHEELS)
        self.loads("test_cuda", SYSTEM + FMT)
        self.out = self.root / "out"

    def loads(self, program, text):
        write(self.root, {f"{program}.ldd": text.replace("{root}", str(self.root))})

    def bundle(self, *tests):
        with mock.patch.dict(os.environ, PATH=f"{self.root}/tools:{os.environ['PATH']}"):
            return run_tool("gpu_bundle.py", ["--build", str(self.root / "build"), "--out", str(self.out), *tests])

    def run_sh(self, *args):
        done = subprocess.run([self.out / "run.sh", *args], env={**os.environ, "PYTHONPATH": str(self.root / "site"),
                                                                "LD_LIBRARY_PATH": "/before"},
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def test_what_is_carried(self):
        write(self.root, {"out/lib/old.so": ""})
        code, output = self.bundle("test_cuda")
        self.assertEqual(code, 0, output)
        self.assertIn("bin/test_cuda", output)
        names = sorted(str(path.relative_to(self.out)) for path in self.out.rglob("*") if path.is_file())
        self.assertEqual(names, ["bin/penteract", "bin/test_cuda", "lib/libfmt.so.9", "run.sh"])

    def test_run(self):
        self.bundle()
        code, output = self.run_sh("penteract", "a b", "c")
        site = self.root / "site"
        self.assertEqual(code, 0, output)
        self.assertEqual(output, f"{self.out}/bin/penteract a b c {self.out}/lib:{site}/torch/lib:"
                                 f"{site}/nvidia/cu13/lib:{site}/nvidia/nccl/lib:/before\n")

    def test_run_refuses(self):
        self.bundle()
        for args, word in (((), "penteract"), (("test_cuda",), "there is no test_cuda")):
            code, output = self.run_sh(*args)
            self.assertEqual(code, 2, output)
            self.assertIn(word, output)
        write(self.root, {"site/torch/version.py": "__version__ = '2.9+cu2'\n"})
        code, output = self.run_sh("penteract")
        self.assertEqual(code, 1, output)
        self.assertIn("torch is 2.9+cu2; the programs were built with 2.9+cu1", output)

    def test_refuses(self):
        code, output = self.bundle("test_none")
        self.assertEqual(code, 1)
        self.assertIn("test_none is not there", output)
        self.loads("penteract", SYSTEM)
        code, output = self.bundle()
        self.assertEqual(code, 1)
        self.assertIn("is not a CUDA build", output)
        self.loads("penteract", WHEELS + "\tlibodd.so.1 => not found\n")
        code, output = self.bundle()
        self.assertEqual(code, 1)
        self.assertIn("libodd.so.1, which is not found", output)


if __name__ == "__main__":
    unittest.main()
