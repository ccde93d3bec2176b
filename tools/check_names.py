#!/usr/bin/env python3
"""Checks docs/from_jax.md against the public headers; prints every offence and fails on any.

  - every public name of the headers stands in the page, in code; operators and the structs of options that are only
    written in braces (names that end in Options, Fields) need not
  - every name that the page qualifies (rp::grad, nn::Dense, ...) is one of the headers
"""
import re
import sys
from pathlib import Path

import api_reference

PAGE = "docs/from_jax.md"
BRACED = re.compile(r"(Options|Fields)$")
# Public because templates need them; nobody writes them.
PLUMBING = {
    "ArrayData", "checked_array", "full_of_integer", "key_of_integer", "check_leaf_count", "leaves_of_dict", "apply_updates_to",
    "global_norm_of", "save_only_these_names_list", "save_any_names_but_these_list", "save_anything_except_these_names_list",
    "Names", "Ints", "OptionalArray", "OptionalDtype", "OptionalParam", "initializers", "Field", "Fields", "joined", "kind_of", "is_static", "Attributes", "CarryMark", "StateAxis", "OfTypeFilter", "StateLayout",
}


def declared(headers):
    """Public names of the headers, and those of their members."""
    names, members = {}, set()
    for header in headers:
        for d in header.declarations:
            if not d.name.startswith("operator"):
                names.setdefault(d.name, header.path)
            if isinstance(d.members, list):
                members.update(m.name for m in d.members)
            if d.text.startswith("inline constexpr"):  # several constants in one declaration
                names.update({name: header.path for name in re.findall(r"(\w+) =", d.text)})
    return names, members


def offences(page, names, members):
    code = " ".join(re.findall(r"`([^`]+)`", page))
    words = set(re.findall(r"\w+", code))
    for name, path in sorted(names.items()):
        if name not in words and name not in PLUMBING and not BRACED.search(name):
            yield f"{name} of {path} is missing"
    for qualified in sorted(set(re.findall(r"\b((?:rp|nn|nnx|optim)::[\w:]+)", code))):
        last = qualified.split("::")[-1]
        if last not in names and last not in members and last not in {"nn", "nnx", "optim", "lax", "random", "io",
                                                                      "checkpoint_policies", "initializers"}:
            yield f"{qualified} is not declared in a public header"


def main():
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent.parent).resolve()
    names, members = declared(api_reference.headers(root))
    found = list(offences((root / PAGE).read_text(encoding="utf-8"), names, members))
    for line in found:
        print(f"{PAGE}: {line}")
    print(f"check_names: {len(found)} offence(s)")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
