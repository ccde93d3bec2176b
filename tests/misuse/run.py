#!/usr/bin/env python3
"""Compiles programs that misuse the library and checks that the compiler says the promised sentence.

  run.py g++ include

Each file of cases/ is the inside of main(), after the public header. Its first line is one of

  // error: sentence     the sentence stands within the first five lines of what the compiler prints
  // deep error: text    it stands somewhere: behind what the standard library says about its own templates
  // warning: sentence   it compiles, and the sentence stands within the first five lines
  // error or warning: sentence   as the compiler likes
  // fine                it compiles and nothing is said

The two compilers' own words may differ: `sentence | sentence`. The second line may be `// include: reprise/nn.h` for
another header.
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


def not_precompiled(compile_start):
    """The same without: g++ forgets in precompiled headers which warnings they ask for."""
    return [*compile_start[:-1], "reprise/reprise.h"]


def offence(compile_start, case):
    """What is wrong with the compiler's answer to one case; None when nothing is."""
    text = case.read_text()
    first, second = (text.splitlines() + [""])[:2]
    header = second.removeprefix("// include: ")
    include_line = "" if header == second else f"#include <{header}>"
    start = not_precompiled(compile_start) if first.startswith("// warning") else compile_start
    command = [*start, "-x", "c++", "-"]
    run = subprocess.run(command, input=PROGRAM % (include_line, text), capture_output=True, text=True, check=False)
    said = run.stderr
    if first == "// fine":
        return None if run.returncode == 0 and not said else f"must compile without a word:\n{said}"
    kind, colon, sentences = first.removeprefix("// ").partition(": ")
    if not colon or kind not in ("error", "deep error", "warning", "error or warning"):
        return "does not start with // error:, // deep error:, // warning:, // error or warning: or // fine"
    if kind != "error or warning" and (run.returncode == 0) != (kind == "warning"):
        return f"compiles, but must say: {sentences}" if run.returncode == 0 else f"does not compile:\n{said}"
    place = said if kind == "deep error" else "\n".join(said.splitlines()[:5])
    return None if any(s in place for s in sentences.split(" | ")) else f"does not say {kind}: {sentences}\n{said}"


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
