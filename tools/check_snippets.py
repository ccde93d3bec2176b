#!/usr/bin/env python3
"""Checks that the C++ code of guides in docs/ is code that is compiled; prints every offence and fails on any.

  - each ```cpp block of a guide stands, line by line, in its program; indentation does not count
"""
import re
import sys
from pathlib import Path

GUIDES = {"docs/linen.md": "examples/linen_guide.cpp", "docs/nnx.md": "tests/nnx/guide_test.cpp"}
BLOCK = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)


def stripped(text):
    """The lines without indentation and empty ones, as one text that starts and ends with a newline."""
    return "\n" + "".join(line.strip() + "\n" for line in text.splitlines() if line.strip())


def offences(guide, program):
    """Yields (line number, message) for blocks of the guide that the program does not have."""
    code = stripped(program)
    for block in BLOCK.finditer(guide):
        if stripped(block[1]) not in code:
            yield guide.count("\n", 0, block.start()) + 1, "this code is not in the guide's program"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    found = [f"{guide}:{number}: {message} {program}"
             for guide, program in GUIDES.items()
             for number, message in offences((root / guide).read_text(encoding="utf-8"),
                                             (root / program).read_text(encoding="utf-8"))]
    for line in found:
        print(line)
    print(f"check_snippets: {len(found)} offence(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
