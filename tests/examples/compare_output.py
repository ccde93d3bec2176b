#!/usr/bin/env python3
"""Runs an example and compares what it prints with a stored text.

  compare_output.py build/release/examples/checkpoint_tutorial examples/tutorials/checkpoint_tutorial.expected
  compare_output.py --update PROGRAM EXPECTED        # stores what the program prints now

Columns of source locations differ between compilers and are left out: tutorial.cpp:12:9 counts as tutorial.cpp:12.
"""
import argparse
import difflib
import re
import subprocess
import sys
from pathlib import Path


def without_columns(text):
    return re.sub(r"(\.cpp:\d+):\d+", r"\1", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--update", action="store_true", help="store the output instead of comparing it")
    parser.add_argument("program", type=Path)
    parser.add_argument("expected", type=Path)
    options = parser.parse_args()
    run = subprocess.run([options.program.resolve()], capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{options.program} failed with {run.returncode}\n{run.stderr}")
    printed = without_columns(run.stdout)
    if options.update:
        options.expected.write_text(printed)
        return
    stored = options.expected.read_text()
    if printed != stored:
        sys.stdout.writelines(difflib.unified_diff(stored.splitlines(True), printed.splitlines(True),
                                                   str(options.expected), str(options.program)))
        sys.exit(f"the output differs; if that is right: {sys.argv[0]} --update {options.program} {options.expected}")


if __name__ == "__main__":
    main()
