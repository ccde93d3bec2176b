#!/usr/bin/env python3
"""Writes the API reference from the comments of include/reprise, one Markdown page per header.

  api_reference.py OUT              # OUT/index.md, OUT/remat.md, ...
  api_reference.py --undocumented   # prints public names that no comment speaks of; fails if there are any

A page has the comment at the head of the header, its sections (`// ---- name`) and, section by section, the declarations as
they stand there, without bodies, private members and namespace detail. Declarations without a blank line between them form
a group and share the comment above it. A header that only includes others is not a page.
"""
import argparse
import re
import sys
from pathlib import Path

RULER = re.compile(r"^// -{10,} ?(.*)$")
LITERAL = re.compile(r'"(?:\\.|[^"\\])*"|\'(?:\\.|[^\'\\])\'')
TYPE_HEAD = re.compile(r"^(?:template <.*?> )?(?:requires.*? )?(struct|class|union|enum class|enum)\s+(?:\[\[\w+\]\] )?(\w+)(?!.*\()")
HIDDEN = re.compile(r"^(?:friend|static_assert|extern|~|template <> )|\breprise_\w+")
KEYWORDS = {"operator", "requires", "if", "decltype", "sizeof", "alignof", "noexcept"}


class Declaration:
    """One declaration: its text without a body, the comment above its group, the comment behind it, its members."""

    def __init__(self, text, comment, trailing, starts_group):
        self.text, self.comment, self.trailing, self.starts_group = text, comment, trailing, starts_group
        self.members = None  # of a struct, class or enum
        self.section = ""

    @property
    def name(self):
        head = TYPE_HEAD.match(flat(self.text))
        if head:
            return head[2]
        text = re.sub(r"^template\s+(?:requires ?\((?:[^()]|\([^()]*\))*\) )?", "", strip_angles(flat(self.text)))
        if text.startswith("#define"):
            return re.match(r"#define (\w+)", text)[1]
        alias = re.match(r"using (\w+) =", text) or re.match(r"(?:inline )?(?:constexpr |constinit )?concept (\w+)", text)
        if alias:
            return alias[1]
        if re.match(r"using [\w:]+::(\w+)", text):
            return re.match(r"using [\w:]+::(\w+)", text)[1]
        call = re.search(r"(operator\s*(?:\(\)|\[\]|[^\s\w(]+|\s[\w :&]+)|~?\w+)\s*\(", text)
        if call and call[1] not in KEYWORDS:
            return call[1]
        variable = re.search(r"(\w+)\s*(?:\{|=|;|$)", text)
        return variable[1] if variable else text


def flat(text):
    return re.sub(r"\s+", " ", text).strip()


def strip_angles(text):
    """Without template arguments, so that the first parenthesis is that of the parameters."""
    while True:
        shorter = re.sub(r"(?<!operator)(?<!operator<)<[^<>()]*(?:\([^()]*\)[^<>()]*)*>", "<>", text)
        shorter = shorter.replace("<>", "")
        if shorter == text:
            return text
        text = shorter


def matching(text, start):
    """The position of the bracket that closes the one at `start`; strings and comments do not count."""
    depth, i = 0, start
    while i < len(text):
        if text.startswith("//", i):
            i = text.find("\n", i)
            continue
        literal = LITERAL.match(text, i) if text[i] in "\"'" else None
        if literal and not (text[i] == "'" and text[i - 1].isdigit()):
            i = literal.end()
            continue
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(text[i], 0)
        if depth == 0:
            return i
        i += 1
    raise ValueError(f"no closing bracket for {text[start:start + 60]!r}")


class Reader:
    """Reads the declarations of one scope: a file, the inside of a namespace or of a type."""

    def __init__(self, text, section=""):
        self.text, self.at, self.section = text, 0, section
        self.found, self.comment, self.blank, self.is_public = [], [], True, True

    def line_end(self, start=None):
        end = self.text.find("\n", self.at if start is None else start)
        return len(self.text) if end < 0 else end

    def read(self):
        while self.at < len(self.text):
            rest = self.text[self.at:]
            line = self.text[self.at:self.line_end()].strip()
            if rest[0] == "\n" or not line:
                self.at = self.line_end() + 1
                if not line:
                    self.comment, self.blank = [], True
            elif line.startswith("//"):
                self.read_comment(line)
            elif line.startswith("#"):
                self.read_preprocessor(line)
            elif re.match(r"(public|private|protected):", line):
                self.is_public = line.startswith("public")
                self.at = self.line_end() + 1
            elif line.startswith("}") or re.fullmatch(r"REPRISE_(?!UNAVAILABLE)\w+(\(.*\))?", line):
                self.at = self.line_end() + 1
            else:
                self.read_declaration()
        return self.found

    def read_comment(self, line):
        ruler = RULER.match(line)
        if ruler:
            self.section, self.comment = ruler[1], []
        else:
            self.comment.append(re.sub(r"^// ?", "", line))
        self.blank = True
        self.at = self.line_end() + 1

    def read_preprocessor(self, line):
        while self.text[self.at:self.line_end()].endswith("\\"):
            self.at = self.line_end() + 1
        self.at = self.line_end() + 1
        macro = re.match(r"#define (\w+\([^)]*\))", line)
        if macro and self.comment and not re.search(r"_(?:\d+|PICK|UNAVAILABLE)\(", macro[1]):
            self.add(Declaration("#define " + macro[1], self.comment, "", True))
            self.comment = []

    def read_declaration(self):
        """Up to the `;` or the body that ends it."""
        start, i, depth = self.at, self.at, 0
        while i < len(self.text):
            c = self.text[i]
            if self.text.startswith("//", i):
                i = self.line_end(i)
            elif c in "\"'" and LITERAL.match(self.text, i):
                i = LITERAL.match(self.text, i).end()
                continue
            elif c in "()":
                depth += 1 if c == "(" else -1
            elif c == ";" and depth == 0:
                self.finish(start, i, i + 1, None)
                return
            elif c == "{":
                end = matching(self.text, i)
                if depth == 0 and self.open_brace(start, i, end):
                    return
                i = end
            i += 1
        self.at = len(self.text)

    def open_brace(self, start, i, end):
        """Handles a brace outside of parentheses; true if it ended the declaration."""
        head = flat(re.sub(r"//[^\n]*", "", self.text[start:i]))
        body = self.text[i + 1:end]
        namespace = re.match(r"(?:inline )?namespace ([\w:]*)", head)
        if namespace:
            if not re.search(r"\b(detail|tree)\b", namespace[1]) and namespace[1]:
                inner = Reader(body, self.section)
                self.found += inner.read()
                self.section = inner.section
            self.comment, self.blank, self.at = [], True, end + 1
            return True
        if TYPE_HEAD.match(head):
            self.finish(start, i, self.text.index(";", end) + 1, body)
            return True
        after = self.text[end + 1:].lstrip()[:1]
        if after == ";" or (after == "," and "(" not in head) or head.endswith("="):
            return False  # an initialiser
        if re.search(r"requires$", head) or (":" in head and after in ",{" and after):
            return False
        self.finish(start, i, end + 1, None)
        return True

    def finish(self, start, stop, after, body):
        text = self.text[start:stop]
        end = self.line_end(after)
        rest = self.text[after:end].strip()
        trailing = rest.removeprefix("//").strip() if rest.startswith("//") else ""
        self.at = end + 1 if rest.startswith("//") or not rest else after
        if "REPRISE_UNAVAILABLE" in text:  # misuse that is answered with a sentence, nothing to use
            return
        declaration = Declaration(without_body(text), self.comment, trailing, self.blank)
        if body is not None:
            is_enum = flat(text).startswith("enum")
            declaration.members = body if is_enum else [
                m for m in Reader(dedented(body)).read_type(flat(text))
                if not (m.name == declaration.name and "detail::" in m.text)]  # constructors for the library itself
        self.comment, self.blank = [], False
        self.add(declaration)

    def read_type(self, head):
        self.is_public = not re.search(r"(^|> )class ", head)
        return self.read()

    def add(self, declaration):
        text = flat(declaration.text)
        is_forward = re.match(r"^(template <.*> )?(struct|class) \w+$", text) and declaration.members is None
        is_member = re.search(r"^[^(=]*\w::~?\w+\s*\(", strip_angles(text)) is not None  # defined outside of its class
        hidden = is_forward or is_member or HIDDEN.search(text) or "= delete" in text
        if self.is_public and not hidden:
            declaration.section = self.section
            declaration.trailing = re.sub(r"^NOLINT:? ?.*$", "", declaration.trailing)
            self.found.append(declaration)
        elif declaration.starts_group:
            self.blank = True


def without_body(text):
    """A declaration without the initialisers of a constructor and its indentation."""
    lines = [re.sub(r"\s*//.*$", "", line) for line in text.rstrip().splitlines()]
    text = "\n".join(line for line in lines if line.strip())
    depth = 0
    for i, c in enumerate(text):
        depth += {"(": 1, ")": -1}.get(c, 0)
        if c == ":" and depth == 0 and text[:i].rstrip().endswith(")") and text[i + 1:i + 2] == " ":
            return text[:i].rstrip()
    return text


def dedented(text):
    lines = text.strip("\n").splitlines()
    indents = [len(line) - len(line.lstrip()) for line in lines if line.strip() and not re.match(r" ?\w+:$|#", line)]
    cut = min(indents, default=0)
    return "\n".join(line[cut:] if line[:cut].strip() == "" else line.lstrip() for line in lines) + "\n"


class Header:
    """A header as its head comment and its public declarations."""

    def __init__(self, path, root):
        self.path = path.relative_to(root).as_posix()
        text = path.read_text(encoding="utf-8")
        intro = re.match(r"(?://.*\n)+", text)
        self.intro = [re.sub(r"^// ?", "", line) for line in intro[0].splitlines()] if intro else []
        body = text[intro.end() if intro else 0:]
        self.declarations = unique(Reader(body).read())

    @property
    def page(self):
        return self.path.removeprefix("include/reprise/").removesuffix(".h").replace("/", "_") + ".md"

    @property
    def title(self):
        return self.path.removeprefix("include/")

    def summary(self):
        """The first sentence of the head comment, or what stands before its colon."""
        paragraph = " ".join(self.intro).split("  ")[0].removesuffix("//").strip()
        sentence = re.split(r"(?<=[.?]) (?=[A-Z])", paragraph)[0].rstrip(":., ")
        return sentence if len(sentence) < 160 else sentence.split(": ")[0]


def unique(declarations):
    """Without definitions of what was declared before."""
    seen, kept = set(), []
    for d in declarations:
        key = re.sub(r"\s*=\s*[^,()]*(?:\([^()]*\))?(?=[,)])", "", flat(d.text))
        if key not in seen:
            kept.append(d)
        seen.add(key)
    return kept


def groups(declarations):
    """Declarations that share a comment."""
    found = []
    for d in declarations:
        if d.starts_group or not found or found[-1][0].section != d.section:
            found.append([])
        found[-1].append(d)
    return found


def code_lines(d, indent=""):
    """A declaration as lines of code, members included; of types that have no public name only that there is one."""
    text = re.sub(r"^(\s*)(?:inline )?detail::\w+(?:<[^()]*?>)? (?=\w+\()", r"\1auto ", d.text, flags=re.MULTILINE)
    lines = [indent + line for line in text.splitlines()]
    if d.members is None:
        lines[-1] += "" if d.text.startswith("#") else ";"
    elif isinstance(d.members, str):
        lines = [indent + flat(d.text) + " { " + flat(d.members).rstrip(",") + " };"]
    elif not d.members:
        lines[-1] += " {};"
    else:
        lines[-1] += " {"
        for i, m in enumerate(d.members):
            if m.comment:
                lines += [""] * (i > 0) + [f"{indent}  // {line}".rstrip() for line in m.comment]
            lines += code_lines(m, indent + "  ")
        lines.append(indent + "};")
    if d.trailing:
        lines[-1 if d.members is None else 0] += "  // " + d.trailing
    return lines


def prose(lines):
    """A comment as Markdown: indented lines are code."""
    out, code = [], []
    for line in [*lines, ""]:
        if line.startswith("  "):
            code.append(line[2:])
            continue
        if code:
            out += ["", "```cpp", *code, "```", ""]
            code = []
        out.append("".join(part if part.startswith("`") else re.sub(r"([<*_\[])", r"\\\1", part)
                           for part in re.split(r"(`[^`]*`)", line)))
    return out


def page_text(header):
    out = [f"# {header.title}", "", *prose(header.intro)]
    section = None
    for group in groups(header.declarations):
        if group[0].section != section:
            section = group[0].section
            if section:
                out += ["", f"## {section[0].upper() + section[1:]}"]
        out += ["", *prose(group[0].comment), "```cpp"]
        for d in group:
            out += code_lines(d)
        out.append("```")
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).rstrip() + "\n"


def headers(root):
    found = [Header(path, root) for path in sorted((root / "include").rglob("*.h"))]
    return [h for h in found if h.declarations]


def undocumented(all_headers):
    """Public names that no comment speaks of: none above the group, none behind, no section of a list."""
    for header in all_headers:
        for group in groups(header.declarations):
            spoken = group[0].comment or any(d.trailing for d in group)
            if not spoken and not (group[0].section and len(group) > 1):
                yield header.path, ", ".join(dict.fromkeys(d.name for d in group))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--undocumented", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    found = headers(options.root)
    if options.undocumented:
        names = list(undocumented(found))
        print("\n".join(f"{path}: no comment speaks of {name}" for path, name in names))
        return 1 if names else 0
    options.out.mkdir(parents=True, exist_ok=True)
    index = ["# API reference", "", "Made from the comments of the public headers; `reprise/reprise.h` includes the core, `nn.h`, `nnx.h`,",
             "`optim.h` and `io.h` are included beside it.", "", "| header | what it has |", "|---|---|"]
    for header in found:
        (options.out / header.page).write_text(page_text(header), encoding="utf-8")
        index.append(f"| [{header.title}]({header.page}) | {header.summary()} |")
    (options.out / "index.md").write_text("\n".join(index) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
