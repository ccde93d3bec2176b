"""Tests of tools/check_tables.py on a tree of two files."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_tables  # noqa: E402

HEAD = "| what | test |\n|---|---|\n"
SOURCE = 'TEST_CASE("one case") {}\nTEST_CASE(\n    "a title in "\n    "two parts") {}\n'


class CheckTables(unittest.TestCase):
    def offences(self, table):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, text in {"docs/golden_sections.md": table, "tests/a/b_test.cpp": SOURCE}.items():
                (root / name).parent.mkdir(parents=True)
                (root / name).write_text(text)
            return check_tables.tree_offences(root)

    def test_named_cases_and_reasons_are_fine(self):
        self.assertEqual([], self.offences(
            HEAD + '| x | `a/b_test.cpp` "one case", `a/b_test.cpp` "a title in two parts" |\n'
            "| y | not here: Python only |\n"))

    def test_offences(self):
        for row, expected in [('| x | `a/b_test.cpp` "one" |', 'has no case "one"'),
                              ('| x | `a/c_test.cpp` "one case" |', "no file tests/a/c_test.cpp"),
                              ("| x | somewhere |", "neither a test nor a reason"),
                              ("| not here: | somewhere |", "neither a test nor a reason")]:
            offences = self.offences(HEAD + row + "\n")
            self.assertEqual(len(offences), 1, offences)
            self.assertIn(expected, offences[0])
            self.assertTrue(offences[0].startswith("docs/golden_sections.md:3: "))

    def test_figures_of_the_readme_are_recorded_ones(self):
        self.assertEqual([], list(check_tables.figure_offences("| a | 946 ms, **130 MiB** |\n", "| gpt | 946 | 130 |\n")))
        self.assertEqual([(1, "947 is recorded neither in bench/RESULTS.md nor in docs/memory.md")],
                         list(check_tables.figure_offences("| a | 947 ms, 130 MiB |\n", "| gpt | 946 | 130 |\n")))


if __name__ == "__main__":
    unittest.main()
