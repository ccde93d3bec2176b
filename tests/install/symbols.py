#!/usr/bin/env python3
"""A shared library shows what the public headers declare, and nothing else.

  symbols.py libreprise.so.0 include

Of every function and variable that the library defines for others, the name or that of its class must be a word of
some public header. Inline functions and templates, which every program has for itself (weak symbols), do not count.
"""
import re
import subprocess
import sys
from pathlib import Path

STRONG = "TDBRSG"
OF_THE_LINKER = {"__bss_start", "_edata", "_end", "_init", "_fini"}
OF_A_CLASS = r"(?:vtable|VTT|typeinfo|typeinfo name|guard variable|construction vtable) for "


def own_names(symbol):
    """reprise::f(int) -> f; reprise::A::g() -> g, A; reprise::operator<<(...) -> operator; vtable for reprise::A -> A"""
    symbol = re.sub(f"^{OF_A_CLASS}", "", symbol).replace("(anonymous namespace)", "anonymous_namespace")
    if "operator" in symbol:
        return {"operator"}
    symbol = re.sub(r"\[abi:\w+\]", "", symbol).split("(")[0]
    while "<" in symbol:  # arguments of templates, from the inside
        symbol = re.sub(r"<[^<>]*>", "", symbol)
    *scopes, name = symbol.split(" ")[-1].split("::")
    return {name.lstrip("~")} | {scope for scope in scopes[-1:] if scope[:1].isupper()}


def strangers(library, include):
    """The strong symbols of `library`, and those of them whose names no header has."""
    words = set()
    for header in Path(include).rglob("*.h"):
        words |= set(re.findall(r"\w+", header.read_text()))
    shown = subprocess.run(["nm", "--dynamic", "--defined-only", "--demangle", library],
                           check=True, capture_output=True, text=True).stdout
    symbols = [match.groups() for match in re.finditer(r"^[0-9a-f]+ (\w) (.+)$", shown, re.M)]
    strong = {name for kind, name in symbols if kind in STRONG} - OF_THE_LINKER
    return strong, sorted(name for name in strong if not own_names(name) & words)


def main():
    strong, found = strangers(sys.argv[1], sys.argv[2])
    print(f"{len(strong)} symbols, {len(found)} of them not declared in {sys.argv[2]}")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found or not strong else 0


if __name__ == "__main__":
    sys.exit(main())
