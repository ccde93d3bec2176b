#!/usr/bin/env python3
"""Draws the folders of src/ and which of them includes which, from the #include lines of the sources.

  draw_folders.py           writes docs/folders.svg
  draw_folders.py --check   changes nothing, fails when the drawing is not that of the sources

A row for each folder, in data order: a file includes only its own folder and those above. An arc goes from a folder to
each folder that it includes and that no other included folder includes in turn: what is left out follows from what is
drawn. Users of the public headers come last, with no arcs.
"""
import argparse
import sys
from pathlib import Path

import check_layers

ROW, TOP, LEFT, WIDTH = 38, 16, 16, 130
STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .folder { font: 13px ui-monospace, monospace; }
  rect { fill: #f6f8fa; stroke: #8c959f; rx: 5; }
  .user rect { fill: none; stroke-dasharray: 4 3; }
  path { stroke: #59636e; fill: none; }
  marker path { fill: #59636e; stroke: none; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    rect { fill: #161b22; stroke: #6e7681; }
    path { stroke: #9198a1; }
    marker path { fill: #9198a1; }
  }
</style>"""
HEAD = ('<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 L8 4 L0 8 z"/></marker></defs>')


def sources(root, folder):
    return [f for f in sorted((root / "src" / folder).rglob("*")) if f.suffix in {".h", ".cpp"}]


def edges(root):
    """{folder: set of the other folders that its files include}, of those in data order."""
    known = set(check_layers.ORDER)
    return {folder: {path.split("/")[0]
                     for file in sources(root, folder)
                     for _, angled, path in check_layers.includes(file.read_text(encoding="utf-8"))
                     if not angled and "/" in path} & known - {folder}
            for folder in check_layers.ORDER}


def reduced(graph):
    """Without the edges that follow from others."""
    def reach(folder, seen):
        for target in graph[folder]:
            if target not in seen:
                seen.add(target)
                reach(target, seen)
        return seen
    below = {folder: reach(folder, set()) for folder in graph}
    return {folder: {t for t in targets if not any(t in below[o] for o in targets if o != t)}
            for folder, targets in graph.items()}


def drawing(root):
    graph = edges(root)
    rows = check_layers.ORDER + check_layers.USERS
    height = 2 * TOP + ROW * len(rows)
    middle = {folder: TOP + ROW * i + 14 for i, folder in enumerate(rows)}
    count = sum(len(t) for t in graph.values())
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 560 {height}" role="img" aria-labelledby="title">',
           f'<title id="title">The {len(rows)} folders of src/ in data order, {count} pairs where one includes the '
           'other</title>', STYLE, HEAD]
    for folder in rows:
        y = middle[folder]
        kind = ' class="user"' if folder in check_layers.USERS else ""
        out.append(f'<g{kind}><rect x="{LEFT}" y="{y - 14}" width="{WIDTH}" height="28"/>'
                   f'<text class="folder" x="{LEFT + 12}" y="{y + 5}">{folder}/</text></g>')
    for folder, targets in reduced(graph).items():
        for target in sorted(targets, key=rows.index):
            a, b, x = middle[folder] - 4, middle[target] + 4, LEFT + WIDTH
            bow = x + 14 + 26 * (rows.index(folder) - rows.index(target))
            out.append(f'<path d="M{x} {a} C{bow} {a} {bow} {b} {x + 2} {b}" marker-end="url(#head)"/>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("root", nargs="?", type=Path, default=Path(__file__).parent.parent)
    options = parser.parse_args()
    file = options.root / "docs" / "folders.svg"
    text = drawing(options.root)
    if not options.check:
        file.write_text(text, encoding="utf-8")
        return 0
    if file.is_file() and file.read_text(encoding="utf-8") == text:
        return 0
    print("docs/folders.svg is not the drawing of src/: run tools/draw_folders.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
