#!/usr/bin/env python3
"""Compiles programs that misuse the library and checks that the compiler says the promised sentence.

  run.py g++ include

Each file of cases/ is the inside of main(), after the public header. Its first line is `// error: sentence`, or `// fine`
for a program that must compile; its second may be `// include: reprise/nn.h` for another header.
"""
import subprocess
import sys
import tempfile
from pathlib import Path

PROGRAM = """%s
namespace rp = reprise;
using rp::Array;
int main() {
%s}
"""


def precompiled(compiler, include, folder):
    """The options by which a program starts with the public header, read once for all cases."""
    header = Path(folder) / "start.h"
    header.write_text("#include <reprise/reprise.h>\n")
    options = [compiler, "-std=c++20", f"-I{include}"]
    subprocess.run([*options, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
    return [*options, "-fsyntax-only", "-include", str(header)]


def offence(compile_start, case):
    """What is wrong with the compiler's answer to one case; None when nothing is."""
    text = case.read_text()
    first, second = (text.splitlines() + [""])[:2]
    header = second.removeprefix("// include: ")
    include_line = "" if header == second else f"#include <{header}>"
    command = [*compile_start, "-x", "c++", "-"]
    run = subprocess.run(command, input=PROGRAM % (include_line, text), capture_output=True, text=True, check=False)
    if first == "// fine":
        return None if run.returncode == 0 else f"does not compile:\n{run.stderr}"
    sentence = first.removeprefix("// error: ")
    if sentence == first:
        return "does not start with // error: or // fine"
    if run.returncode == 0:
        return f"compiles, but must say: {sentence}"
    return None if sentence in run.stderr else f"does not say: {sentence}\n{run.stderr}"


def main():
    compiler, include = sys.argv[1:]
    cases = sorted((Path(__file__).parent / "cases").glob("*.cpp"))
    with tempfile.TemporaryDirectory() as folder:
        start = precompiled(compiler, include, folder)
        offences = [f"{case.name} {problem}" for case in cases if (problem := offence(start, case))]
    if offences or not cases:
        sys.exit("\n".join(offences) or "no cases")


if __name__ == "__main__":
    main()
