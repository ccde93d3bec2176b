#!/usr/bin/env python3
"""Users compile the public headers with their own warnings: no warning may come from ours.

  header_warnings.py include examples g++ [clang++]

Each compiler reads all headers, and examples that use many of their templates, in C++20 and C++23. What it says about
the examples themselves does not count.
"""
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FLAGS = ["-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Wsign-conversion"]
EXAMPLES = ["03_checkpoint", "07_scan_over_layers", "08_linen", "09_nnx"]
STANDARDS = ["c++20", "c++2b"]  # clang++ 14 knows C++23 by this name only


def warnings(compiler, standard, include, source):
    """The lines of `source`'s compilation with warnings about our headers; all lines if it fails."""
    command = [compiler, f"-std={standard}", "-fsyntax-only", *FLAGS, f"-I{include}", str(source)]
    result = subprocess.run(command, capture_output=True, text=True)
    lines = result.stderr.splitlines()
    if result.returncode != 0:
        return [" ".join(command), *lines]
    return [f"{compiler} {standard}: {line}" for line in lines if "warning:" in line and line.startswith(str(include))]


def all_headers(include, folder):
    """A file that includes every header by itself."""
    source = Path(folder) / "all_headers.cpp"
    headers = sorted(header.relative_to(include) for header in include.rglob("*.h"))
    source.write_text("".join(f"#include <{header}>\n" for header in headers))
    return source


def main():
    include, examples, compilers = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), sys.argv[3:]
    with tempfile.TemporaryDirectory() as folder, ThreadPoolExecutor(2) as pool:
        sources = [all_headers(include, folder), *(examples / f"{name}.cpp" for name in EXAMPLES)]
        work = [(compiler, standard, include, source)
                for compiler in compilers for standard in STANDARDS for source in sources]
        found = {line for lines in pool.map(lambda job: warnings(*job), work) for line in lines}
    print("\n".join(sorted(found)))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
