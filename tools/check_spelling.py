#!/usr/bin/env python3
"""Checks the spelling of the documentation with aspell, in British English; prints every offence and fails on any.

Code, links' targets and comments are not looked at, nor the tables of other projects' test names. docs/words.txt has the words of this project that no dictionary knows, one
per line, sorted; a word there that no page uses is an offence too.
"""
import re
import subprocess
import sys
from pathlib import Path

import check_links
import check_tables

WORDS = "docs/words.txt"
WORD = re.compile(r"[A-Za-z][A-Za-z']*[A-Za-z]")
ASIDE = re.compile(r"<!--.*?-->|<[^>\n]+>|https?://\S+|\]\([^)]*\)|\S*[/_@=]\S*|\b\S+\.(?:md|h|cpp|py|txt|json|npz|safetensors)\b",
                   re.DOTALL)


def prose(text):
    """The page without code and addresses, with the same lines."""
    for pattern in (check_links.FENCE, check_links.CODE, ASIDE):
        text = pattern.sub(check_links.blanked, text)
    return text


def words(text):
    """Yields (line number, word) of prose."""
    for number, line in enumerate(prose(text).splitlines(), 1):
        for word in WORD.findall(line):
            yield number, word.removesuffix("'s")


def unknown_to_aspell(found):
    run = subprocess.run(["aspell", "list", "--lang=en_GB", "--encoding=utf-8", "--ignore-case=false"],
                         input="\n".join(sorted(found)) + "\n", capture_output=True, text=True, check=True)
    return set(run.stdout.split())


def offences(texts, own, unknown):
    """texts: page -> text; own: the words of the project; unknown: a function from words to those that are wrong."""
    used = {page: list(words(text)) for page, text in texts.items()}
    all_words = {word for found in used.values() for _, word in found}
    wrong = unknown(all_words) - own
    for page, found in used.items():
        for number, word in found:
            if word in wrong:
                yield f"{page}:{number}: {word}"
    for word in sorted(own - all_words):
        yield f"{WORDS}: no page uses {word}"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    pages = [page for page in check_links.pages(root) if page.relative_to(root).as_posix() not in check_tables.TABLES]
    texts = {page.relative_to(root).as_posix(): page.read_text(encoding="utf-8") for page in pages}
    own = (root / WORDS).read_text(encoding="utf-8").split()
    found = list(offences(texts, set(own), unknown_to_aspell))
    if own != sorted(own, key=str.lower):
        found.append(f"{WORDS}: not sorted")
    for line in found:
        print(line)
    print(f"check_spelling: {len(found)} offence(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
