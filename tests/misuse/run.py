#!/usr/bin/env python3
"""Compiles programs that misuse the library and checks that the compiler says the promised sentence.

  run.py g++ include

Each file of cases/ is the inside of main(), after the public header. Its first line is `// error: sentence`, or `// fine`
for a program that must compile; its second may be `// include: reprise/nn.h` for another header.
"""
import subprocess
import sys
from pathlib import Path

PROGRAM = """#include <reprise/reprise.h>
%s
namespace rp = reprise;
using rp::Array;
int main() {
%s}
"""


def offence(compiler, include, case):
    """What is wrong with the compiler's answer to one case; None when nothing is."""
    text = case.read_text()
    first, second = (text.splitlines() + [""])[:2]
    header = second.removeprefix("// include: ")
    include_line = "" if header == second else f"#include <{header}>"
    command = [compiler, "-std=c++20", "-fsyntax-only", f"-I{include}", "-x", "c++", "-"]
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
    offences = [f"{case.name} {problem}" for case in cases if (problem := offence(compiler, include, case))]
    if offences or not cases:
        sys.exit("\n".join(offences) or "no cases")


if __name__ == "__main__":
    main()
