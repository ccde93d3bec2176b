"""Tests of tools/check_layers.py: each rule on a tree of a few small files."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_layers  # noqa: E402


class CheckLayers(unittest.TestCase):
    def offences(self, files):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in files.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(text)
            return check_layers.tree_offences(root)

    def assert_one(self, name, text, expected):
        offences = self.offences({name: text})
        self.assertEqual(len(offences), 1, offences)
        self.assertIn(expected, offences[0])

    def test_a_good_tree_has_no_offence(self):
        self.assertEqual([], self.offences({
            "include/reprise/array.h": "#pragma once\n#include <memory>\n#include \"reprise/ops.h\"\n",
            "src/base/error.h": "#pragma once\n#include <string>\n",
            "src/ops/dot.cpp": '#include "ops/dot.h"\n#include "base/error.h"\n#include <reprise/ops.h>\n',
            "src/codegen/jit.cpp": "#include <llvm/IR/Module.h>\n#include <iostream>\n",
            "src/nn/dense.cpp": '#include "nn/dense.h"\n#include <reprise/nn.h>\n',
        }))

    def test_a_folder_may_not_include_a_later_one(self):
        self.assert_one("src/ops/dot.cpp", '#include "plan/plan.h"\n', "src/ops/dot.cpp:1: ops includes")
        self.assert_one("src/api/grad.cpp", '\n#include "nn/dense.h"\n', "src/api/grad.cpp:2: api includes")

    def test_layers_see_public_headers_only(self):
        self.assert_one("src/nnx/linear.cpp", '#include "base/error.h"\n', "only public headers")
        self.assert_one("src/nn/dense.cpp", '#include "nnx/linear.h"\n', "only public headers")

    def test_includes_name_their_folder(self):
        self.assert_one("src/base/error.cpp", '#include "error.h"\n', "does not start with a folder")
        self.assert_one("src/util/text.cpp", "", "not in a known folder")

    def test_public_headers_stay_cheap_and_standard(self):
        for include in ["<llvm/IR/Module.h>", "<iostream>", '"base/error.h"', "<nlohmann/json.hpp>"]:
            self.assert_one("include/reprise/a.h", f"#pragma once\n#include {include}\n", "a public header")

    def test_public_headers_are_visible_outside(self):
        names = "namespace reprise {\nvoid f();\n}\n"
        self.assert_one("include/reprise/a.h", f"#pragma once\n{names}", "a.h:2: a public header declares outside")
        push, pop = "#pragma GCC visibility push(default)\n", "#pragma GCC visibility pop\n"
        self.assert_one("include/reprise/a.h", f"#pragma once\n{push}{names}", "a.h:3: a public header declares outside")
        self.assertEqual(self.offences({"include/reprise/a.h": f"#pragma once\n{push}{names}{pop}"}), [])

    def test_foreign_headers_stay_in_the_sources_of_their_folder(self):
        self.assert_one("src/runtime/run.cpp", '#include "llvm/IR/Module.h"\n', "only in src/codegen")
        self.assert_one("src/codegen/jit.h", "#pragma once\n#include <dnnl.hpp>\n", "only in src/products")
        self.assert_one("src/nn/dense.cpp", "#include <nlohmann/json.hpp>\n", "only in src/io")
        self.assert_one("src/io/zip.h", "#pragma once\n#include <zlib.h>\n", "only in src/io")

    def test_shape_of_files(self):
        self.assert_one("src/base/error.h", "", "#pragma once")
        self.assert_one("src/base/error.cpp", "\n" * 500, "500 lines")
        self.assert_one("docs/map.md", "TO" "DO\n", "do it now")


if __name__ == "__main__":
    unittest.main()
