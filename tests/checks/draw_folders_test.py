"""Tests of tools/draw_folders.py on a tree of a few small files."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2] / "tools"))
import draw_folders  # noqa: E402


def tree(files):
    folder = tempfile.TemporaryDirectory()
    for name, text in files.items():
        path = Path(folder.name) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


FILES = {"src/base/a.h": "#pragma once\n",
         "src/array/b.h": '#include "base/a.h"\n#include <vector>\n#include "reprise/array.h"\n',
         "src/program/c.cpp": '#include "base/a.h"\n#include "array/b.h"\n#include "program/d.h"\n'}


class DrawFolders(unittest.TestCase):
    def test_edges_are_the_includes_of_other_folders(self):
        with tree(FILES) as root:
            graph = draw_folders.edges(Path(root))
        self.assertEqual(graph["program"], {"base", "array"})
        self.assertEqual(graph["array"], {"base"})
        self.assertEqual(graph["base"], set())

    def test_what_follows_from_others_is_not_drawn(self):
        with tree(FILES) as root:
            graph = draw_folders.reduced(draw_folders.edges(Path(root)))
        self.assertEqual(graph["program"], {"array"})
        self.assertEqual(graph["array"], {"base"})

    def test_the_drawing_changes_with_the_sources(self):
        with tree(FILES) as root:
            before = draw_folders.drawing(Path(root))
            (Path(root) / "src/ops").mkdir()
            (Path(root) / "src/ops/e.h").write_text('#include "program/c.h"\n')
            after = draw_folders.drawing(Path(root))
        self.assertIn("3 pairs", before)
        self.assertNotEqual(before, after)


if __name__ == "__main__":
    unittest.main()
