"""./dev in a scratch copy, with stand-ins for apt-get, sudo, id, python3, cmake, ninja and ctest."""

import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest
from unittest import mock

from tree import ROOT, write

PACKAGES = "build there cmd:bash\nbuild libone-dev inc:no/such/header.h\nformat twoformat cmd:no-such-command\n"
# apt-get makes what was missing appear, and leaves a trace of each call.
APT = '#!/bin/bash\necho "apt-get $*" >>"$TRACE"\n[[ -z $APT_FAILS ]] || { echo "E: broken"; exit 100; }\n' \
      'if [[ $* == *install* ]]; then sed -i s/inc:.*/cmd:bash/ tools/packages.txt; fi\n'
PYTHON = '#!/bin/bash\necho "python3 $*" >>"$TRACE"\n' \
         'if [[ $* == "-m venv "* ]]; then mkdir -p $3/bin; cp "$0" $3/bin/python3; fi\n' \
         'if [[ $* == *" install "* && -e $PIP_FAILS ]]; then rm "$PIP_FAILS"; exit 1; fi\n'


class Dev(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "check out"
        (self.root / "tools").mkdir(parents=True)
        shutil.copy(ROOT / "dev", self.root)
        shutil.copy(ROOT / "tools" / "setup.sh", self.root / "tools")
        write(self.root, {"tools/packages.txt": PACKAGES, "tools/requirements.txt": "# c\none==1\ntwo==2\n",
                          "tools/requirements-cuda.txt": "# c\nnvcc==3\n"})
        self.bin = pathlib.Path(folder.name) / "bin"
        self.trace = pathlib.Path(folder.name) / "trace"
        self.trace.touch()
        self.stub("apt-get", APT)
        self.stub("python3", PYTHON)
        self.stub("id", "#!/bin/bash\necho 0\n")
        self.stub("sudo", '#!/bin/bash\n[[ $1 == -n ]] || exit 9\nshift\n[[ $SUDO_WORKS ]] && exec "$@"\n')
        for name in ("cmake", "ninja", "ctest", "sleep"):
            self.stub(name, f'#!/bin/bash\necho "{name} $*" >>"$TRACE"\n')

    def stub(self, name, text):
        write(self.bin, {name: text})
        (self.bin / name).chmod(0o755)

    def dev(self, *args, **env):
        env = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}", "TRACE": str(self.trace), **env}
        done = subprocess.run(["./dev", *args], cwd=self.root, env=env, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        return done.returncode, done.stdout

    def traced(self):
        text = self.trace.read_text(encoding="utf-8")
        self.trace.write_text("", encoding="utf-8")
        return text

    def test_words(self):
        code, output = self.dev()
        self.assertEqual(code, 0)
        for word in ("demo", "test", "sanitize", "setup", "build", "format", "lint", "bench", "docs"):
            self.assertIn(f"\n  {word}", output)
        code, output = self.dev("biuld")
        self.assertEqual(code, 2)
        self.assertIn('"biuld"', output)

    def test_neither_root_nor_sudo(self):
        self.stub("id", "#!/bin/bash\necho 1000\n")
        code, output = self.dev("setup")
        self.assertEqual(code, 2, output)
        lines = [line for line in output.splitlines() if "apt-get" in line]
        self.assertEqual(len(lines), 1)
        self.assertTrue(lines[0].endswith("install -y --no-install-recommends libone-dev"), output)
        self.assertNotIn("apt-get", self.traced())

    def test_sudo_without_a_password(self):
        self.stub("id", "#!/bin/bash\necho 1000\n")
        code, output = self.dev("setup", SUDO_WORKS="1")
        self.assertEqual(code, 0, output)
        self.assertIn("install -y --no-install-recommends libone-dev\n", self.traced())

    def test_a_second_call_does_nothing(self):
        code, output = self.dev("setup")
        self.assertEqual(code, 0, output)
        trace = self.traced()
        self.assertEqual(trace.count("apt-get"), 2)
        self.assertIn("install --no-compile --no-deps one==1\n", trace)
        self.assertIn("install --no-compile --no-deps two==2\n", trace)
        code, output = self.dev("setup")
        self.assertEqual((code, output, self.traced()), (0, "", ""))
        write(self.root, {"tools/requirements.txt": "one==3\n"})
        self.dev("setup")
        self.assertIn("one==3", self.traced())

    def test_build(self):
        code, output = self.dev("build")
        self.assertEqual(code, 0, output)
        trace = self.traced()
        self.assertIn("ninja -C build -j", trace)
        self.assertRegex(trace, "cmake .*-B build -G Ninja\n")
        self.assertRegex(trace, "ninja .* penteract\n")
        self.assertNotIn("nvcc", trace)
        code, output = self.dev("build", "--cuda", "--tests")
        self.assertEqual(code, 0, output)
        trace = self.traced()
        self.assertIn("install --no-compile --no-deps nvcc==3\n", trace)
        self.assertNotIn("one==1", trace)
        self.assertRegex(trace, "cmake .*-B build-cuda -G Ninja -DPENT_CUDA=ON\n")
        self.assertRegex(trace, "ninja -C build-cuda .* penteract tests\n")
        self.dev("build", "--cuda")
        self.assertNotIn("nvcc", self.traced())
        code, output = self.dev("build", "--cudda")
        self.assertEqual((code, self.traced()), (2, ""))
        self.assertIn('"--cudda"', output)

    def test_apt_fails(self):
        code, output = self.dev("setup", APT_FAILS="1")
        self.assertEqual(code, 1)
        self.assertIn("E: broken", output)

    def test_a_download_that_fails_is_tried_again(self):
        fault = self.root / "fault"
        fault.touch()
        code, output = self.dev("setup", PIP_FAILS=str(fault))
        self.assertEqual(code, 0, output)
        self.assertEqual(self.traced().count("one==1"), 2)

    def test_wikitext_lacks_files(self):
        write(self.root, {"wiki/wiki.test.raw": "text\n", "wiki/wiki.valid.raw": ""})
        code, output = self.dev("demo", WIKITEXT="wiki")
        self.assertEqual(code, 3)
        self.assertIn("lacks wiki.train.raw wiki.valid.raw:", output)
        self.assertEqual(self.traced(), "")

    def test_wikitext(self):
        write(self.root, {f"a\"b/wiki.{name}.raw": "text\n" for name in ("train", "valid", "test")})
        write(self.root, {"build/bin/penteract": '#!/bin/bash\nprintf "%s\\n" "$@"\n'})
        (self.root / "build/bin/penteract").chmod(0o755)
        self.stub("ninja", "#!/bin/bash\n")
        write(self.root, {"build/build.ninja": "", "build/CMakeCache.txt": f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n"})
        code, output = self.dev("demo", WIKITEXT='a"b')
        self.assertEqual(code, 0, output)
        self.assertIn(f'\ndata.valid=["{self.root}/a\\"b/wiki.valid.raw"]\n', output)
        self.assertIn('\nrun.dir="runs/wikitext-5d-raw"\n', output)

    def ctest(self, text):
        self.stub("ctest", f'#!/bin/bash\necho "ctest $*" >>"$TRACE"\n{text}\n')
        return self.dev("test")

    def test_tests(self):
        closing = "100% tests passed, 0 tests failed out of 3"
        code, output = self.ctest(f"echo '{closing}'")
        self.assertEqual(code, 0, output)
        self.assertEqual(output.splitlines()[-1], closing)
        self.assertIn("^(unit|ranks|procs)$", self.traced())
        self.dev("test", "--slow", "-R", "comm")
        self.assertRegex(self.traced(), r"\^\(unit\|ranks\|procs\|slow\)\$.* -R comm\n")

    def test_a_test_fails(self):
        code, output = self.ctest("echo '50% tests passed, 1 tests failed out of 2'; exit 8")
        self.assertEqual(code, 1)
        self.assertEqual(output.splitlines()[-1], "50% tests passed, 1 tests failed out of 2")

    def test_sanitize(self):
        listing = "printf '  Test  #9: %s\\n' comm.unit comm.ranks data.unit"
        self.stub("ctest", f'#!/bin/bash\necho "ctest $*" >>"$TRACE"\n[[ $* == *-N ]] && {listing}\nexit 0\n')
        code, output = self.dev("sanitize", "thread", "-R", "comm|data")
        self.assertEqual(code, 0, output)
        trace = self.traced()
        self.assertIn("-DPENT_SANITIZE=thread\n", trace)
        self.assertRegex(trace, r"ninja -C build/sanitize-thread -j \d+ test_comm test_data\n")
        self.assertRegex(trace, r"--test-dir build/sanitize-thread -L \^\(unit\|ranks\)\$ .* -R comm\|data\n$")
        self.assertEqual(self.dev("sanitize")[0], 0)
        self.assertRegex(self.traced(), r"(?s)-DPENT_SANITIZE=address,undefined\n.*-DPENT_SANITIZE=thread\n")
        self.stub("ctest", "#!/bin/bash\n")
        self.assertEqual(self.dev("sanitize", "-R", "nothing"), (1, mock.ANY))
        self.stub("ctest", f"#!/bin/bash\n[[ $* != *-N ]] || {{ {listing}; exit; }}\nexit 8\n")
        code, output = self.dev("sanitize", "address")
        self.assertEqual(code, 1, output)
        self.assertIn("found something", output)

    def test_no_test_ran(self):
        for text in ("echo 'No tests were found!!!'", "echo '100% tests passed, 0 tests failed out of 0'"):
            code, output = self.ctest(text)
            self.assertEqual(code, 1, output)
            self.assertEqual(output.splitlines()[-1], "no test ran")


if __name__ == "__main__":
    unittest.main()
