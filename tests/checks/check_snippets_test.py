"""Tests of tools/check_snippets.py."""
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_snippets  # noqa: E402

PROGRAM = "int main() {\n  f();\n\n  g();\n}\n"


class CheckSnippets(unittest.TestCase):
    def offences(self, guide):
        return list(check_snippets.offences(guide, PROGRAM))

    def test_code_of_the_program_is_fine_however_indented(self):
        self.assertEqual([], self.offences("# Guide\n```cpp\nf();\ng();\n```\n```sh\nrm\n```\n"))

    def test_other_code_is_an_offence_with_its_line(self):
        for block in ["h();", "f();\nh();", "main() {"]:
            with self.subTest(block):
                found = self.offences(f"# Guide\n\n```cpp\n{block}\n```\n")
                self.assertEqual([3], [number for number, _ in found])


if __name__ == "__main__":
    unittest.main()
