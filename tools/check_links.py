#!/usr/bin/env python3
"""Checks the links of the documentation; prints every offence and fails on any.

  - a relative link, of a page or of a picture, names a file or folder of the project
  - what follows `#` is a heading of the page it points to
  - a path in code that begins with a folder of the project (`src/plan/keep.h`) exists
  - a link to the web is https, and no page links to the machine it was written on

`check_links.py --site DIR` checks the pages of the built site instead: every href and src inside it resolves.
"""
import argparse
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

FENCE = re.compile(r"^( *)(```+).*?^\1\2\s*$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"`[^`\n]*`")
LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^)\s]+)(?:\s+\"[^\"]*\")?\)")
HTML_LINK = re.compile(r"<(?:a|img|source)\b[^>]*?(?:href|src|srcset)=\"([^\"]+)\"", re.DOTALL)
PATH = re.compile(r"`((?:bench|cmake|docs|examples|include|src|tests|tools)/[\w./-]+)`")
HEADING = re.compile(r"^#+ +(.*?)\s*$", re.MULTILINE)


def blanked(match):
    """Spaces instead of text, so that lines keep their numbers."""
    return re.sub(r"[^\n]", " ", match[0])


def anchors(text):
    """The anchors of the headings of a page, as GitHub and mkdocs make them."""
    found = {}
    for heading in HEADING.findall(FENCE.sub(blanked, text)):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "")
        anchor = re.sub(r"[^\w\- ]", "", plain.lower()).strip().replace(" ", "-")
        number = found.get(anchor, -1) + 1
        found[anchor] = number
        yield anchor if number == 0 else f"{anchor}-{number}"


def links(text):
    """Yields (line number, target) for the links of a page."""
    without_blocks = FENCE.sub(blanked, text)
    without_code = CODE.sub(blanked, without_blocks)
    for pattern in (LINK, HTML_LINK):
        for match in pattern.finditer(without_code):
            yield text.count("\n", 0, match.start()) + 1, match[1]


def paths(text):
    """Yields (line number, path) for the paths of the project that a page names in code."""
    without_blocks = FENCE.sub(blanked, text)
    for match in PATH.finditer(without_blocks):
        yield text.count("\n", 0, match.start()) + 1, match[1]


def offence(root, page, target):
    """What is wrong with one link; None when nothing is."""
    parts = urlsplit(target)
    if parts.scheme:
        is_local = re.match(r"(localhost|127\.|\[?::1)", parts.netloc)
        return None if parts.scheme == "https" and not is_local else f"{target}: not a https address of the web"
    if target.startswith("/"):
        return f"{target}: an absolute path"
    path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
    if not path.exists() or root not in [path, *path.parents]:
        return f"{target}: no such file"
    if parts.fragment and (path.suffix != ".md" or parts.fragment not in anchors(path.read_text(encoding="utf-8"))):
        return f"{target}: no such heading"
    return None


def page_offences(root, page):
    text = page.read_text(encoding="utf-8")
    for line, target in links(text):
        problem = offence(root, page, target)
        if problem:
            yield f"{page.relative_to(root)}:{line}: {problem}"
    for line, path in paths(text):
        if not (root / path).exists():
            yield f"{page.relative_to(root)}:{line}: {path}: no such file"


def pages(root):
    """README, CONTRIBUTING, docs, and the READMEs of folders."""
    return sorted([*root.glob("*.md"), *root.glob("docs/**/*.md"), *root.glob("[a-z]*/README.md")])


class Page(HTMLParser):
    """What a page of the site points to, and the ids it has."""

    def __init__(self, text):
        super().__init__()
        self.targets, self.ids = [], set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name in ("href", "src") and value:
                self.targets.append(value)
            if name in ("id", "name") and value:
                self.ids.add(value)


def site_offences(site):
    parsed = {path: Page(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    for page, content in parsed.items():
        if page.name == "404.html":  # its links are absolute, for any address that is not found
            continue
        for target in content.targets:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            path = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if path.is_dir():
                path = path / "index.html"
            if not path.exists():
                yield f"{page.relative_to(site)}: {target}: no such file"
            elif parts.fragment and path in parsed and parts.fragment not in parsed[path].ids:
                yield f"{page.relative_to(site)}: {target}: no such heading"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("root", type=Path, nargs="?", default=Path(__file__).parent.parent)
    parser.add_argument("--site", type=Path)
    options = parser.parse_args()
    if options.site:
        found = list(site_offences(options.site.resolve()))
    else:
        root = options.root.resolve()
        found = [line for page in pages(root) for line in page_offences(root, page)]
    for line in found:
        print(line)
    print(f"check_links: {len(found)} offence(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
