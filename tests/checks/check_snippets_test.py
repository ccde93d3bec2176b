"""Tests of tools/check_snippets.py."""
import argparse
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_snippets  # noqa: E402

FENCE = "```"


def page(*parts):
    """A page of (language, body) blocks and lines of text."""
    return "\n\n".join(p if isinstance(p, str) else f"{FENCE}{p[0]}\n{p[1]}\n{FENCE}" for p in parts) + "\n"


class Reading(unittest.TestCase):
    def test_blocks_have_language_line_and_the_directives_right_before_them(self):
        text = page("# Title", "<!-- snippet: fresh, throws TypeError -->", ("cpp", "f();"), ("text", "out"))
        code, output = check_snippets.blocks(text)
        self.assertEqual(("cpp", ["f();"], 5), (code.language, code.lines, code.line))
        self.assertEqual("TypeError", code.directive("throws"))
        self.assertEqual("", code.directive("fresh"))
        self.assertIsNone(output.directive("throws"))

    def test_a_directive_counts_only_for_the_block_after_it(self):
        (block,) = check_snippets.blocks(page("<!-- snippet: fresh -->", "Some words.", ("cpp", "f();")))
        self.assertIsNone(block.directive("fresh"))

    def test_hidden_code_is_a_block(self):
        (block,) = check_snippets.blocks("<!-- snippet: hidden\nint a = 1;\n-->\n")
        self.assertEqual(["int a = 1;"], block.lines)
        self.assertTrue(block.is_compiled)

    def test_code_is_split_into_includes_declarations_and_statements(self):
        code = ["#include <map>", "struct A {", "  int b;", "};", "", "Array f(Array x) { return x; }", "std::vector<int> g(int i) {",
                "  return {i};", "}", "template <class T>", "T h(T t) {", "  return t;", "}", 'auto s = "}{";  // {', "for (;;) {",
                "  f(1);", "}", "auto k = [](Array x) { return x; };", "return_value(1);"]
        kinds = [(start, kind) for start, _, kind in check_snippets.items(code)]
        self.assertEqual([(0, "include"), (1, "declaration"), (5, "declaration"), (6, "declaration"), (9, "declaration"),
                          (13, "statement"), (14, "statement"), (17, "statement"), (18, "statement")], kinds)

    def test_stems_tell_pages_apart(self):
        self.assertEqual(["remat", "readme", "src_readme"],
                         [check_snippets.stem_of(p) for p in ["docs/remat.md", "README.md", "src/README.md"]])


class Generating(unittest.TestCase):
    def unit(self, *parts):
        return check_snippets.translation_unit("docs/p.md", page(*parts))

    def test_blocks_share_a_scope_until_a_fresh_one_which_lies_inside(self):
        unit = self.unit(("cpp", "int a = 1;"), ("cpp", "a = 2;"), "<!-- snippet: fresh -->", ("cpp", "int a = 3;"))
        self.assertEqual(2, unit.count("void main() {"))
        self.assertIn("scope_0::main();", unit)
        self.assertIn("scope_0::scope_2::main();", unit)

    def test_lines_count_within_the_block_and_carry_the_name_of_the_page(self):
        self.assertIn('#line 2 "p.cpp"\ng();', self.unit(("cpp", "f();\ng();")))

    def test_a_program_keeps_its_main(self):
        unit = self.unit(("cpp", "#include <map>\n\nint main() {\n  f();\n}"))
        self.assertEqual(1, unit.count("main() {"))
        self.assertLess(unit.index("#include <map>"), unit.index("namespace"))

    def test_code_that_throws_is_caught_by_kind(self):
        self.assertIn("catch (const rp::TypeError& error)", self.unit("<!-- snippet: throws TypeError -->", ("cpp", "f();")))

    def test_a_page_without_code_includes_nothing_of_the_library(self):
        self.assertNotIn("reprise", self.unit(("sh", "ls"), "<!-- snippet: shown only: why -->", ("cpp", "f();")))


class Comparing(unittest.TestCase):
    def test_output_agrees_up_to_columns_and_left_out_lines(self):
        self.assertTrue(check_snippets.agrees(["a.cpp:3:9 (f)", "...", "end"], ["a.cpp:3:12 (f)", "x", "y", "end"]))
        self.assertFalse(check_snippets.agrees(["a.cpp:3:9 (f)"], ["a.cpp:4:9 (f)"]))
        self.assertFalse(check_snippets.agrees(["one"], ["one", "two"]))

    def offences(self, text, script="#!/bin/sh\n", others=None):
        """What is wrong with a page whose program is a shell script."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name, content in {"p.md": text, "program": script, **(others or {})}.items():
                (root / name).write_text(content)
            (root / "program").chmod(0o755)
            options = argparse.Namespace(compiler="g++", flag=[], path="")
            return check_snippets.Compare(root, "p.md", root / "program", options).offences

    def test_each_block_is_compared_with_what_it_printed(self):
        script = "#!/bin/sh\nprintf '\\0360\\none\\n\\0362\\ntwo\\n'\n"
        blocks = [("cpp", "f();"), ("text", "one"), ("cpp", "g();"), ("text", "two")]
        self.assertEqual([], self.offences(page(*blocks), script))
        blocks[3] = ("text", "three")
        (found,) = self.offences(page(*blocks), script)
        self.assertTrue(found.startswith("p.md:13: the program prints something else"), found)

    def test_varying_numbers_are_compared_by_place(self):
        script = "#!/bin/sh\nprintf '\\0360\\npeak 12 of 1.5e+07\\n'\n"
        parts = [("cpp", "f();"), "<!-- snippet: numbers vary -->", ("text", "peak 9 of 2.25e+06")]
        self.assertEqual([], self.offences(page(*parts), script))
        self.assertEqual(1, len(self.offences(page(parts[0], parts[2]), script)))

    def test_a_program_that_fails_is_an_offence_at_the_block_that_ran(self):
        (found,) = self.offences(page(("cpp", "f();"), ("cpp", "g();")), "#!/bin/sh\nprintf '\\0361\\n'\nexit 3\n")
        self.assertTrue(found.startswith("p.md:5: the program ends with 3"), found)

    def test_output_without_code_and_unknown_languages_are_offences(self):
        self.assertIn("there is none", self.offences(page(("text", "out")))[0])
        self.assertIn("language ''", self.offences(page(("", "out")))[0])
        self.assertIn("language 'cpp title'", self.offences(page(("cpp title", "f();")))[0])
        self.assertIn("needs a reason", self.offences(page("<!-- snippet: shown only: -->", ("cpp", "f();")))[0])
        self.assertIn("needs a text block", self.offences(page("<!-- snippet: throws Error -->", ("cpp", "f();")))[0])

    def test_a_part_of_a_file_is_looked_up_whatever_its_indentation(self):
        text = page("<!-- snippet: part of other -->", ("cmake", "a()\nb()"))
        self.assertEqual([], self.offences(text, others={"other": "if(x)\n  a()\n  # why\n  b()\nendif()\n"}))
        self.assertIn("not in other", self.offences(text, others={"other": "b()\na()\n"})[0])

    def test_commands_of_console_blocks_run_in_one_folder(self):
        self.assertEqual([], self.offences(page(("console", "$ echo hello > file\n$ cat file\nhello"))))
        self.assertEqual([], self.offences(page("<!-- snippet: file in.txt -->", ("text", "a\nb"), ("console", "$ wc -l in.txt\n2 in.txt"))))
        self.assertIn("`echo no` prints", self.offences(page(("console", "$ echo no\nyes")))[0])
        self.assertIn("no line with", self.offences(page(("console", "echo no")))[0])

    def test_code_that_must_not_compile_says_the_sentence(self):
        parts = ["<!-- snippet: does not compile -->", ("cpp", "missing();"), ("text", "reprise")]
        self.assertEqual([], self.offences(page(*parts)))  # there is no reprise/reprise.h on the path
        parts[2] = ("text", "something that no compiler says")
        self.assertIn("says something else", self.offences(page(*parts))[0])


if __name__ == "__main__":
    unittest.main()
