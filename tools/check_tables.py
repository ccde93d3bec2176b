#!/usr/bin/env python3
"""Checks the tables of docs/ that say which test covers what, and the figures of README; prints every offence and fails on any.

  - a test is named `folder/file_test.cpp` "title of the case"; the file must have a case of that title
  - every row names a test, or says in its last cell why there is none: "not here: ..."
  - times and memory (ms, MiB) in the tables of README stand in bench/RESULTS.md or docs/memory.md
"""
import re
import sys
from pathlib import Path

TABLES = ["docs/upstream_remat_tests.md", "docs/golden_sections.md", "docs/flax_tests.md", "docs/nnx_tests.md"]
REFERENCE = re.compile(r'`([\w/]+_test\.cpp)` "([^"]+)"')
CASE = re.compile(r'TEST_CASE\(\s*((?:"(?:[^"\\]|\\.)*"\s*)+)\)')
LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"')
NO_TEST = "not here:"


def titles(source):
    """The titles of the cases in a test file; adjacent literals are one."""
    return {"".join(LITERAL.findall(literals)) for literals in CASE.findall(source)}


def rows(text):
    """Yields (line number, row) for the rows of Markdown tables, without headings and rules."""
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        is_heading = number < len(lines) and lines[number].startswith("|--")
        if line.startswith("|") and not line.startswith("|--") and not is_heading:
            yield number, line


def table_offences(text, tests):
    for number, row in rows(text):
        references = REFERENCE.findall(row)
        if not references and NO_TEST not in row.rstrip("| ").split("|")[-1]:
            yield number, f'neither a test nor a reason ("{NO_TEST} ...")'
        for file, title in references:
            path = tests / file
            if not path.is_file():
                yield number, f"no file tests/{file}"
            elif title not in titles(path.read_text(encoding="utf-8")):
                yield number, f'tests/{file} has no case "{title}"'


def figure_offences(readme, results):
    recorded = set(re.findall(r"\d[\d.]*", results))
    for number, row in rows(readme):
        for figure in re.findall(r"(\d[\d.]*) (?:ms|MiB)\b", row):
            if figure not in recorded:
                yield number, f"{figure} is recorded neither in bench/RESULTS.md nor in docs/memory.md"


def tree_offences(root):
    readme, *recorded = [(root / name).read_text(encoding="utf-8") if (root / name).is_file() else "" for name in
                         ["README.md", "bench/RESULTS.md", "docs/memory.md"]]
    figures = [f"README.md:{number}: {message}" for number, message in figure_offences(readme, "\n".join(recorded))]
    return figures + [f"{name}:{number}: {message}"
            for name in TABLES if (root / name).is_file()
            for number, message in table_offences((root / name).read_text(encoding="utf-8"), root / "tests")]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    offences = tree_offences(root)
    for offence in offences:
        print(offence)
    print(f"check_tables: {len(offences)} offence(s)")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
