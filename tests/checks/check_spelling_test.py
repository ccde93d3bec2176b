"""Tests of tools/check_spelling.py; the dictionary is a set, so that they run without aspell."""
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_spelling  # noqa: E402


class CheckSpelling(unittest.TestCase):
    def offences(self, text, own=()):
        def unknown(found):
            return found - {"The", "colour", "of", "code", "here", "don't"}
        return list(check_spelling.offences({"p.md": text}, set(own), unknown))

    def test_words_of_the_dictionary_and_of_the_project_are_fine(self):
        self.assertEqual([], self.offences("The colour of remat's code\nhere: don't\n", ["remat"]))

    def test_other_words_are_offences_with_their_line(self):
        self.assertEqual(["p.md:2: color"], self.offences("The\ncolor\n"))

    def test_code_addresses_paths_and_comments_are_not_prose(self):
        self.assertEqual([], self.offences(
            "The `cde` of\n```cpp\nintt x;\n```\n[code](speling.md) <!-- tmp\nabc --> https://exmpl.org src/xyz a_bcd f.cpp <img alt=\"q\">\n"))

    def test_a_word_of_the_project_that_no_page_uses_is_an_offence(self):
        self.assertEqual(["docs/words.txt: no page uses remat"], self.offences("The code\n", ["remat"]))


if __name__ == "__main__":
    unittest.main()
