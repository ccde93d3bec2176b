#!/usr/bin/env python3
"""Checks that the sources keep the architecture; prints every offence as file:line and fails on any.

  - a folder of src/ includes itself and the folders before it in ORDER, nothing else of ours
  - nn, nnx, optim and io are users: they include only public headers and their own folder
  - dist is beside the core: nothing includes it, and MPI appears only there
  - public headers include only public headers and the standard library, and only what is cheap; what they declare is
    visible outside a shared library
  - LLVM appears only in codegen/*.cpp and products/*.cpp, oneDNN only in products/*.cpp (and in the header that joins
    its versions), JSON and zlib only in io/*.cpp
  - headers start with #pragma once, sources have fewer than 500 lines, nothing is left to be done later
"""
import re
import sys
from pathlib import Path

ORDER = ["base", "array", "program", "ops", "transform", "control", "functions", "plan",
         "remat", "engine", "codegen", "products", "runtime", "report", "api", "dist"]
USERS = ["nn", "nnx", "optim", "io"]
EXPENSIVE = {"iostream", "ranges", "regex"}
FOREIGN = [({"codegen", "products"}, re.compile(r"^(llvm|llvm-c)\b")),
           ({"products"}, re.compile(r"^(dnnl|oneapi)\b")),
           ({"io"}, re.compile(r"^(nlohmann/|zlib\.h)")),
           ({"dist"}, re.compile(r"^mpi\.h"))]
JOINING = {"dnnl_api.h"}
MAX_LINES = 500
TEXT_FOLDERS = ["include", "src", "tests", "examples", "bench", "tools", "docs", "cmake"]
TEXT_SUFFIXES = {".h", ".cpp", ".py", ".cmake", ".md"}

VISIBLE = ["#pragma GCC visibility push(default)", "#pragma GCC visibility pop"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
LATER = re.compile(r"\b(TO" r"DO|FIX" r"ME)\b")


def includes(text):
    """Yields (line number, is_angled, path)."""
    for number, line in enumerate(text.splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match[1] == "<", match[2]


def is_standard(angled, path):
    return angled and "/" not in path and "." not in path


def public_header_offences(text):
    for number, angled, path in includes(text):
        if path.startswith("reprise/"):
            continue
        if not is_standard(angled, path):
            yield number, f"a public header includes {path}, allowed are reprise/ and the standard library"
        elif path in EXPENSIVE:
            yield number, f"a public header includes <{path}>, which is slow to compile"
    lines = text.splitlines()
    names = [number for number, line in enumerate(lines, 1) if re.match(r"namespace .*{$", line)]
    if names and any(lines.count(pragma) != 1 for pragma in VISIBLE):
        yield names[0], f"a public header declares outside of {VISIBLE[0]} and {VISIBLE[1]}"


def source_offences(folder, name, text):
    for number, angled, path in includes(text):
        if owners := next((f for f, names in FOREIGN if names.match(path)), None):
            if folder not in owners or not (name.endswith(".cpp") or name in JOINING or folder == "dist"):
                places = " and ".join(f"src/{owner}/*.cpp" for owner in sorted(owners))
                yield number, f"{path} may be included only in {places}"
            continue
        if angled or path.startswith("reprise/"):
            continue
        target = path.split("/")[0]
        if "/" not in path or target not in ORDER + USERS:
            yield number, f'"{path}" does not start with a folder of src/'
        elif target == folder:
            continue
        elif folder in USERS:
            yield number, f"{folder} includes {path}, it may include only public headers"
        elif target in USERS or ORDER.index(target) > ORDER.index(folder):
            yield number, f"{folder} includes {path}, which comes after it"


def file_offences(root, file):
    """Yields (line number, message) for one file below root."""
    text = file.read_text(encoding="utf-8")
    parts = file.relative_to(root).parts
    is_code = file.suffix in {".h", ".cpp"}

    if parts[0] == "include" and is_code:
        yield from public_header_offences(text)
    if parts[0] == "src" and is_code:
        folder = parts[1] if len(parts) > 2 else ""
        if folder in ORDER + USERS:
            yield from source_offences(folder, file.name, text)
        else:
            yield 1, "not in a known folder of src/"

    if parts[0] in {"include", "src"}:
        if file.suffix == ".h" and "#pragma once" not in text:
            yield 1, "header without #pragma once"
        lines = text.count("\n")
        if is_code and lines >= MAX_LINES:
            yield lines, f"{lines} lines, the limit is {MAX_LINES}"

    for number, line in enumerate(text.splitlines(), 1):
        if match := LATER.search(line):
            yield number, f"{match[0]}: do it now, or describe it in an issue"


def tree_offences(root):
    """Returns all offences below root as lines of text."""
    return [f"{file.relative_to(root)}:{number}: {message}"
            for top in TEXT_FOLDERS
            for file in sorted((root / top).rglob("*"))
            if file.suffix in TEXT_SUFFIXES and file.is_file()
            for number, message in file_offences(root, file)]


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    offences = tree_offences(root)
    for offence in offences:
        print(offence)
    print(f"check_layers: {len(offences)} offence(s)")
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
