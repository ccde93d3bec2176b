#!/usr/bin/env python3
"""Compiles and runs the code of README and docs, and compares what it prints with what the page says.

  check_snippets.py generate PAGE OUT.cpp               # the page's ```cpp blocks as one translation unit
  check_snippets.py compare PAGE PROGRAM [options]      # runs it; --update writes what it prints into the page

The blocks of a page are read in order and share one scope, as if they stood in one file: declarations go to a namespace,
statements into its main(); what stands in namespace reprise stays there. Every page may use reprise/reprise.h, <iostream>,
`namespace rp = reprise` and `rp::Array`; other headers are included by the block that needs them. A block with a main() of its
own is a program with a scope of its own. A ```text block is what the ```cpp block before it prints; a line `...` in it stands
for any lines, and columns of source locations, which differ between compilers, do not count. In a ```console block lines that
begin with `$ ` are run by a shell, with --path before PATH, and the others are what they print. ```sh, ```cmake and other
languages are for reading.

A comment right before a block, invisible on the page, says what else is meant:

  <!-- snippet: fresh -->                 a new main() begins here: names of earlier blocks can be used for other things
  <!-- snippet: throws TypeError -->      the code throws; the ```text block after it is the message
  <!-- snippet: does not compile -->      the ```text block after it is part of what the compiler says
  <!-- snippet: numbers vary -->          before an output: of numbers, which depend on the machine, only the places count
  <!-- snippet: file NAME -->             the block is a file for the console blocks after it
  <!-- snippet: part of FILE -->          these lines stand in FILE, in this order; it is used elsewhere
  <!-- snippet: shown only: REASON -->    a block that is not run, a drawing for example

and `<!-- snippet: hidden`, code, `-->` on lines of their own is code that the reader need not see.
"""
import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

DIRECTIVE = re.compile(r"^<!-- snippet: (.*?)(?: -->)?$")
DECLARATION = re.compile(r"(template|struct|class|enum|namespace|using|inline|constexpr|constinit|extern|static)\b")
FUNCTION = re.compile(r"(?!return\b|else\b|new\b)(?:const )?[A-Za-z_][\w:]*(?:<[^()=]*>)?[&*]? [a-z_]\w*\([^=]*\)(?: const)? \{")
LITERAL_OR_COMMENT = re.compile(r'//[^\n]*|"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'')
MARK = "\x1e"
READ_ONLY = {"sh", "cmake", "json", "python"}


class Block:
    """A fenced block of a page, or hidden code: its language, lines, and the directives before it."""

    def __init__(self, language, lines, line, directives):
        self.language, self.lines, self.line, self.directives = language, lines, line, directives

    def directive(self, name):
        """What follows `name` in one of the directives; None if there is none."""
        for text in self.directives:
            if text == name or text.startswith(name + " ") or text.startswith(name + ":"):
                return text[len(name):].strip(" :")
        return None

    def agrees(self, expected, printed):
        compared = without_numbers if self.directive("numbers vary") is not None else list
        return agrees(compared(expected), compared(printed))

    @property
    def is_program(self):
        return self.language == "cpp" and any(line.startswith("int main() {") for line in self.lines)

    @property
    def is_compiled(self):
        return self.language == "cpp" and all(
            self.directive(d) is None for d in ["part of", "shown only", "does not compile", "file"])


def blocks(text):
    """The blocks of a page in order; `line` is the number of the line that opens the fence."""
    found, directives, lines = [], [], text.splitlines()
    i = 0
    while i < len(lines):
        line, start = lines[i], i
        fence = re.match(r"^( *)(```+)(.*)$", line)
        directive = DIRECTIVE.match(line)
        if fence or (directive and not line.endswith("-->")):
            end = fence[1] + fence[2] if fence else "-->"
            body = []
            i += 1
            while i < len(lines) and lines[i].rstrip() != end:
                body.append(lines[i][len(fence[1]):] if fence else lines[i])
                i += 1
            if fence:
                found.append(Block(fence[3].strip(), body, start + 1, directives))
            else:
                found.append(Block("cpp", body, start + 1, directive[1].split(", ")))
            directives = []
        elif directive:
            directives = directive[1].split(", ")
        elif line.strip():
            directives = []
        i += 1
    return found


def items(lines):
    """Yields (index of the first line, lines, kind) for the includes, declarations and statements of C++ code."""
    current, depth = [], 0
    for index, line in enumerate(lines):
        code = LITERAL_OR_COMMENT.sub(lambda m: "" if m[0].startswith("//") else '""', line).strip()
        if not current and not code:
            continue
        if not current:
            start = index
        current.append(line)
        depth += sum(code.count(c) for c in "({[") - sum(code.count(c) for c in ")}]")
        if depth == 0 and (code.endswith((";", "}")) or code.startswith("#")):
            yield start, current, kind_of(current)
            current = []
    if current:
        yield start, current, kind_of(current)


def kind_of(lines):
    first = next(line for line in lines if line.strip() and not line.strip().startswith("//"))
    if first.startswith("#"):
        return "include"
    return "declaration" if DECLARATION.match(first) or FUNCTION.match(first) else "statement"


class Scope:
    """Code that shares names: a namespace with a main(), inside the namespace of the scope before it if there is one."""

    def __init__(self, number, outer, is_program):
        self.is_program = is_program
        self.path = (outer.path if outer else []) + [f"scope_{number}"]
        self.declarations, self.statements = [], []

    def text(self):
        """The namespace, but for its closing braces."""
        body = [f"namespace {self.path[-1]} {{", *self.declarations]
        return body if self.is_program else [*body, "void main() {", *self.statements, "}"]


def placed(start, lines, source):
    """Lines of a block as the compiler sees them: with the page's name and the line within the block."""
    return [f'#line {start + 1} "{source}"', *lines]


def throwing(kind, lines):
    return ["try {", *lines, f"}} catch (const rp::{kind}& error) {{", 'std::cout << error.what() << "\\n";', "}"]


def add_block(scope, number, block, source, includes, library):
    mark = [f'std::cout << "\\036{number}\\n";']
    statements = []
    for start, lines, kind in items(block.lines):
        if kind == "include":
            includes.append(lines[0])
        elif lines[0].startswith("namespace reprise"):
            library += placed(start, lines, source)
        elif kind == "declaration":
            if block.is_program:
                lines = [line.replace("int main() {", "void main() {" + mark[0]) for line in lines]
            scope.declarations += placed(start, lines, source)
        else:
            statements += placed(start, lines, source)
    kind = block.directive("throws")
    scope.statements += mark + (throwing(kind, statements) if kind is not None else statements)


def translation_unit(page, text):
    """The page as C++: a namespace per scope, and a function that runs them in order, which the page's stem finds."""
    stem, source = stem_of(page), stem_of(page) + ".cpp"
    includes, library, scopes = [], [], []
    for number, block in enumerate(blocks(text)):
        if not block.is_compiled:
            continue
        last = scopes[-1] if scopes else None
        if last is None or block.is_program or last.is_program:
            scopes.append(Scope(number, None, block.is_program))
        elif block.directive("fresh") is not None:
            scopes.append(Scope(number, last, False))
        add_block(scopes[-1], number, block, source, includes, library)
    out = [f"// {page} as code, by tools/check_snippets.py", "#include <iostream>", "#include <map>", "#include <string>"]
    if scopes:
        out += dict.fromkeys(["#include <reprise/reprise.h>", *includes])
    out += [*library, "std::map<std::string, void (*)()>& pages();", f"namespace page_{stem} {{"]
    if scopes:
        out += ["namespace rp = reprise;", "using rp::Array;"]
    for scope, after in zip(scopes, scopes[1:] + [None]):
        out += scope.text()
        if after is None or len(after.path) == 1:
            out.append("}" * len(scope.path))
    out += ["void run() {", *[f"  {'::'.join(scope.path)}::main();" for scope in scopes], "}"]
    out += [f'const bool added = pages().emplace("{stem}", run).second;', "}"]
    return "\n".join(out) + "\n"


def stem_of(page):
    """docs/remat.md -> remat, src/README.md -> src_readme"""
    path = Path(page).with_suffix("")
    parts = [p.lower() for p in path.parts if p != "docs"]
    return "_".join(parts[-2:] if parts[-1] == "readme" else parts[-1:])


# -------------------------------------------------------------------------------------------------------- compare

def without_columns(line):
    return re.sub(r"(\.cpp:\d+):\d+", r"\1", line.rstrip())


def without_numbers(lines):
    """Lines with `#` for each number and one space between words: tables are as wide as their numbers."""
    return [re.sub(r" +", " ", re.sub(r"\d[\d.,]*(?:e[+-]?\d+)?", "#", line)) for line in lines]


def trimmed(lines):
    """Lines without spaces at their ends, and without empty ones at both ends."""
    return "\n".join(line.rstrip() for line in lines).strip("\n").split("\n")


def agrees(expected, printed):
    """Whether lines are those expected, where `...` stands for any lines."""
    expected, printed = trimmed(expected), trimmed(printed)
    pattern = "".join(r"(?:.*\n)*" if line.strip() == "..." else re.escape(without_columns(line)) + r"\n"
                      for line in expected)
    return re.fullmatch(pattern, "".join(without_columns(line) + "\n" for line in printed)) is not None


def difference(expected, printed):
    return "\n".join(difflib.unified_diff(list(map(without_columns, expected)), list(map(without_columns, printed)),
                                          "the page", "the program", lineterm=""))


def printed_by_block(output):
    """What the program printed, by the number of the block that was running."""
    found, current = {}, []
    for line in output.rstrip("\n").split("\n"):  # not splitlines: it splits at the mark
        if line.startswith(MARK):
            current = found.setdefault(int(line[1:]), [])
        else:
            current.append(line)
    return found


def stand_in(lines, text):
    """Whether the lines stand in a text in this order; indentation and what stands between them do not count."""
    rest = iter([line.strip() for line in text.splitlines()])
    return all(line.strip() in rest for line in lines if line.strip())


def compiler_says(block, compile_command):
    items_of = list(items(block.lines))
    includes = [lines[0] for _, lines, kind in items_of if kind == "include"]
    declared = [line for _, lines, kind in items_of if kind == "declaration" for line in lines]
    statements = [line for _, lines, kind in items_of if kind == "statement" for line in lines]
    code = ["#include <reprise/reprise.h>", "#include <iostream>", *includes, "namespace rp = reprise;", "using rp::Array;",
            *declared, "int main() {", *statements, "}"]
    run = subprocess.run([*compile_command, "-std=c++20", "-fsyntax-only", "-x", "c++", "-"], input="\n".join(code) + "\n",
                         capture_output=True, text=True, check=False)
    return None if run.returncode == 0 else run.stderr


def run_console(block, path, folder):
    """Runs the commands of a console block one after the other in the folder: the block as it should be, and the first
    command that prints something else, with the difference."""
    environment = dict(os.environ, PATH=f"{Path(path).resolve()}:{os.environ['PATH']}")
    starts = [i for i, line in enumerate(block.lines) if line.startswith("$ ")]
    lines, problem = [], None if starts else "a console block has no line with `$ `"
    for i, end in zip(starts, starts[1:] + [len(block.lines)]):
        command = block.lines[i][2:]
        run = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, text=True, check=False)
        expected, printed = block.lines[i + 1:end], run.stdout.splitlines()
        same = block.agrees(expected, printed)
        lines += [block.lines[i], *(expected if same else trimmed(printed))]
        if not same and problem is None:
            problem = f"`{command}` prints something else\n{difference(expected, printed)}"
    return lines, problem


class Compare:
    """Compares the blocks of one page with what its code does."""

    def __init__(self, root, page, program, options):
        self.root, self.page, self.options = root, page, options
        self.blocks = blocks((root / page).read_text(encoding="utf-8"))
        self.offences, self.updates, self.printed = [], {}, {}
        if any(block.is_compiled for block in self.blocks):
            self.run(program)
        with tempfile.TemporaryDirectory() as folder:  # of the console blocks
            for number, block in enumerate(self.blocks):
                self.check(number, block, Path(folder))

    def fail(self, block, message):
        self.offences.append(f"{self.page}:{block.line}: {message}")

    def run(self, program):
        with tempfile.TemporaryDirectory() as folder:
            run = subprocess.run([program, stem_of(self.page)], cwd=folder, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, check=False)
        self.printed = printed_by_block(run.stdout)
        if run.returncode != 0:
            last = self.blocks[max(self.printed, default=0)]
            self.fail(last, f"the program ends with {run.returncode} here\n" + run.stdout[-2000:])

    def check(self, number, block, folder):
        part, file = block.directive("part of"), block.directive("file")
        if block.directive("shown only") is not None:
            if not block.directive("shown only"):
                self.fail(block, "`shown only` needs a reason")
        elif part is not None:
            if not stand_in(block.lines, (self.root / part).read_text(encoding="utf-8")):
                self.fail(block, f"these lines are not in {part}")
        elif file is not None:
            (folder / file).write_text("\n".join(block.lines) + "\n", encoding="utf-8")
        elif block.language == "console":
            lines, problem = run_console(block, self.options.path, folder)
            if problem:
                self.fail(block, problem)
                self.updates[block.line] = (len(block.lines), lines)
        elif block.language == "text":
            self.check_output(number, block)
        elif block.language == "cpp":
            self.check_code(number, block)
        elif block.language not in READ_ONLY:
            self.fail(block, f"language '{block.language}': use cpp, text, console or one of {', '.join(sorted(READ_ONLY))}")

    def check_code(self, number, block):
        is_last = number + 1 == len(self.blocks) or self.blocks[number + 1].language != "text"
        needs = next((d for d in ["throws", "does not compile"] if block.directive(d) is not None), None)
        if needs and is_last:
            self.fail(block, f"`{needs}` needs a text block with the message")

    def check_output(self, number, block):
        code = self.blocks[number - 1] if number > 0 else None
        if code is None or code.language != "cpp":
            self.fail(block, "a text block is what the cpp block before it prints; there is none")
        elif code.directive("does not compile") is not None:
            said = compiler_says(code, [self.options.compiler, *self.options.flag])
            if said is None:
                self.fail(code, "the code compiles")
            elif " ".join(block.lines) not in said:
                self.fail(block, f"the compiler says something else:\n{said}")
        else:
            printed = self.printed.get(number - 1, [])
            if not block.agrees(block.lines, printed):
                self.fail(block, f"the program prints something else\n{difference(block.lines, printed)}")
                self.updates[block.line] = (len(block.lines), printed)


def update(path, updates):
    lines = path.read_text(encoding="utf-8").splitlines()
    for start, (count, printed) in sorted(updates.items(), reverse=True):
        lines[start:start + count] = trimmed(printed)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["generate", "compare"])
    parser.add_argument("page", help="from the root of the project: docs/remat.md")
    parser.add_argument("file", type=Path, help="the file to write, or the program to run")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    parser.add_argument("--compiler", default="g++", help="for code that does not compile")
    parser.add_argument("--flag", action="append", default=[], help="of that compiler")
    parser.add_argument("--path", default="", help="a folder with programs for console blocks")
    parser.add_argument("--update", action="store_true", help="write what is printed into the page")
    options = parser.parse_args()
    if options.action == "generate":
        text = (options.root / options.page).read_text(encoding="utf-8")
        options.file.write_text(translation_unit(options.page, text), encoding="utf-8")
        return 0
    compared = Compare(options.root, options.page, options.file.resolve(), options)
    print("\n".join(compared.offences))
    if options.update and compared.updates:
        update(options.root / options.page, compared.updates)
    return 1 if compared.offences else 0


if __name__ == "__main__":
    sys.exit(main())
