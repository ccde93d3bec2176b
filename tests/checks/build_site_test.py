"""Tests of tools/build_site.py, without mkdocs."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import build_site  # noqa: E402


class BuildSite(unittest.TestCase):
    def test_directives_of_snippets_are_left_out(self):
        text = "Words.\n\n<!-- snippet: hidden\nint a;\n-->\n\n<!-- snippet: fresh -->\n```cpp\nf();\n```\n<!-- kept -->\n"
        self.assertEqual("Words.\n\n```cpp\nf();\n```\n<!-- kept -->\n", build_site.without_directives(text))

    def test_hidden_code_may_contain_brackets(self):
        self.assertEqual("", build_site.without_directives("<!-- snippet: hidden\n#include <map>\nif (a > b) {}\n-->\n"))

    def test_links_to_folders_lead_to_their_pages(self):
        page = build_site.ROOT / "README.md"
        self.assertEqual("[a](docs/README.md) [b](docs/remat.md) [c](#here)",
                         build_site.with_folder_pages("[a](docs/) [b](docs/remat.md) [c](#here)", page))

    def test_pages_are_staged_with_what_they_link_to_under_their_own_paths(self):
        with tempfile.TemporaryDirectory() as folder:
            build_site.stage(Path(folder))
            for name in ["README.md", "CONTRIBUTING.md", "LICENSE", "docs/remat.md", "docs/architecture.svg", "src/README.md",
                         "src/program/primitive.h", "bench/RESULTS.md", "examples/README.md"]:
                self.assertTrue((Path(folder) / name).exists(), name)


if __name__ == "__main__":
    unittest.main()
