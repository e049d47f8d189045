"""The checks of tools/: each accepts a sound tree and names the culprit of an unsound one."""

import json
import pathlib
import tempfile
import unittest

from tree import ROOT, run_tool, write

LAYERS = {
    "tools/layers.txt": "base:\ncomm: base\nfamilies: base\ntrain: comm base\n",
    "cmake/PentParts.cmake": "set(PENT_TORCH_PARTS comm train)\n",
    "src/penteract/base/a.h": "#include <string>\n",
    "src/penteract/comm/b.h": '#include <ATen/core/Tensor.h>\n#include "penteract/base/a.h"\n',
    "src/penteract/comm/b.cpp": '#include <ATen/ops/add.h>\n#include "penteract/comm/b.h"\n',
    "src/penteract/families/common/c.h": '#include "penteract/base/a.h"\n',
    "src/penteract/families/llama/d.cpp": '#include "penteract/families/common/c.h"\n',
}


class Scratch(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def refuses(self, tool, files, *words):
        write(self.root, files)
        code, output = run_tool(tool, self.root)
        self.assertNotEqual(code, 0, output)
        for word in words:
            self.assertIn(word, output)

    def accepts(self, tool, files):
        write(self.root, files)
        code, output = run_tool(tool, self.root)
        self.assertEqual(code, 0, output)


class Layers(Scratch):
    def check(self, name, text, *words):
        self.refuses("check_layers.py", {**LAYERS, name: text}, *words)

    def test_sound(self):
        self.accepts("check_layers.py", LAYERS)

    def test_no_source(self):
        self.refuses("check_layers.py", {k: v for k, v in LAYERS.items() if not k.startswith("src")}, "no source")

    def test_upward(self):
        self.check("src/penteract/base/x.cpp", '\n#include "penteract/comm/b.h"\n', "base/x.cpp:2", "comm")

    def test_sideways(self):
        self.check("src/penteract/comm/x.cpp", '#include "penteract/families/common/c.h"\n', "comm may not include families")

    def test_each_other(self):
        self.check("tools/layers.txt", "base: comm\ncomm: base\n", "may include each other")

    def test_another_family(self):
        self.check("src/penteract/families/qwen/x.cpp", '#include "penteract/families/llama/d.h"\n', "families/common")

    def test_unknown_part(self):
        self.check("src/penteract/comm/x.cpp", '#include "penteract/nowhere/d.h"\n', "no part nowhere")
        self.check("src/penteract/odd/x.cpp", "\n", "src/penteract/odd/x.cpp")

    def test_torch_header(self):
        self.check("src/penteract/comm/x.cpp", "#include <torch/torch.h>\n", "torch/torch.h")

    def test_torch_header_in_a_test(self):
        self.check("tests/comm/x_test.cpp", "#include <torch/torch.h>\n", "tests/comm/x_test.cpp")

    def test_libtorch_below(self):
        self.check("src/penteract/base/x.cpp", "#  include <c10/util/Half.h>\n", "below libtorch")

    def test_op_in_a_header(self):
        self.check("src/penteract/comm/x.h", "#include <ATen/ops/add.h>\n", "comm/x.h:1", "source")
        self.check("src/penteract/comm/y.h", "#include <torch/csrc/autograd/function.h>\n", "comm/y.h:1")

    def test_short_name(self):
        self.check("src/penteract/comm/x.cpp", '#include "b.h"\n', "penteract/PART/NAME.h")


class Tree(Scratch):
    def test_long_file(self):
        self.refuses("check_tree.py", {"src/x.cpp": "int a;\n" * 801}, "src/x.cpp", "801")

    def test_long_file_with_a_reason(self):
        self.accepts("check_tree.py", {"src/x.cpp": "// Long: one table.\n" + "int a;\n" * 900, "src/y.h": "int a;\n" * 800})

    def test_work_put_off(self):
        self.refuses("check_tree.py", {"src/x.cpp": "\n// TO" + "DO later\n"}, "src/x.cpp", "line 2")


class Docs(Scratch):
    def test_sound(self):
        self.accepts("check_docs.py", {
            "README.md": "[a](docs/a.md#two-words) [web](https://example.org) `[code](none)`\n```\n[b](none)\n```\n",
            "docs/a.md": "# One\n## Two words\n[up](../README.md)\n",
        })

    def test_no_file(self):
        self.refuses("check_docs.py", {"README.md": "[a](docs/b.md)\n"}, "README.md", "docs/b.md")

    def test_no_heading(self):
        self.refuses("check_docs.py", {"README.md": "# A\n[a](#b)\n"}, "#b")

    def test_outside(self):
        self.refuses("check_docs.py", {"README.md": "[a](../../etc)\n"}, "../../etc")


class Demo(Scratch):
    def records(self):
        found = [{"step": s, "loss": 12.0 - s / 10} for s in range(1, 5)]
        found[-1].update(eval_loss=10.5, test_loss=10.4)
        return found

    def run_check(self, records):
        write(self.root, {"metrics.jsonl": "".join(json.dumps(r) + "\n" for r in records)})
        return run_tool("check_demo.py", self.root, 4)

    def check(self, change, word):
        records = self.records()
        change(records)
        code, output = self.run_check(records)
        self.assertEqual(code, 7, output)
        self.assertIn(word, output)

    def test_sound(self):
        code, output = self.run_check(self.records())
        self.assertEqual(code, 0, output)

    def test_unsound(self):
        self.check(lambda r: r.pop(), "expected each from 1 to 4 once")
        self.check(lambda r: r[1].update(step=1), "expected each")
        self.check(lambda r: r[3].update(loss=13.0), "not below the first")
        self.check(lambda r: r[2].update(loss=float("nan")), "step 3")
        self.check(lambda r: r[2].pop("loss"), "step 3")
        self.check(lambda r: r[3].pop("test_loss"), "no test_loss")
        self.check(lambda r: r[3].update(eval_loss=12.5), "eval_loss")
        self.check(lambda r: r[3].update(test_loss=1.0), "test_loss")
        self.check(lambda r: r[3].update(test_loss=None), "test_loss")

    def test_no_metrics(self):
        code, output = run_tool("check_demo.py", self.root, 4)
        self.assertEqual(code, 7, output)


class Report(Scratch):
    XML = '<testsuite><testcase name="comm.ranks" time="{}"/><testcase name="base.unit" time="1.5"/></testsuite>'
    SUITES = {"testsuites": [{"name": "S", "testsuite": [
        {"name": f"t{n:02}", "status": "RUN", "time": f"{n}.5s"} for n in range(12)]
        + [{"name": "skipped", "status": "NOTRUN", "time": "99s"}]}]}

    def report(self, ranks_seconds):
        write(self.root, {"ctest.xml": self.XML.format(ranks_seconds), "comm.ranks.json": json.dumps(self.SUITES)})
        code, output = run_tool("test_report.py", self.root)
        self.assertEqual(code, 0, output)
        return output

    def test_ten_slowest(self):
        output = self.report(3)
        self.assertNotIn("WARNING", output)
        self.assertIn("S.t11", output)
        self.assertIn("S.t02", output)
        self.assertNotIn("S.t01", output)
        self.assertNotIn("skipped", output)

    def test_budget(self):
        self.assertIn("WARNING: the ranks tests took 601 s", self.report(601))

    def test_no_report(self):
        code, _ = run_tool("test_report.py", self.root)
        self.assertEqual(code, 1)


class ThisCheckout(unittest.TestCase):
    def test_layers_hold(self):
        code, output = run_tool("check_layers.py", ROOT)
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
