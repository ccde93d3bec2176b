"""Tests of tools/check_links.py."""
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import check_links  # noqa: E402


class CheckLinks(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.root = Path(self.folder.name).resolve()
        self.write("docs/other.md", "# Other page\n\n## A `code` part, and more\n\n```sh\n# not a heading\n```\n\n## Twice\n\n## Twice\n")
        self.write("picture.png", "")

    def tearDown(self):
        self.folder.cleanup()

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def offences(self, text):
        page = self.write("README.md", text)
        found = [offence.split(": ", 1) for offence in check_links.page_offences(self.root, page)]
        return [(int(place.removeprefix("README.md:")), problem) for place, problem in found]

    def test_links_to_files_folders_headings_and_the_web_are_fine(self):
        self.assertEqual([], self.offences(
            "# Top\n[a](docs/other.md) [b](docs) [c](docs/other.md#a-code-part-and-more) [d](#top)\n"
            "[e](docs/other.md#twice-1) ![f](picture.png) <img src=\"picture.png\"> [g](https://example.org/x)\n"))

    def test_missing_files_and_headings_are_offences_with_their_line(self):
        self.assertEqual([(2, "docs/none.md: no such file"), (3, "#nowhere: no such heading"),
                          (3, "docs/other.md#not-a-heading: no such heading"), (4, "gone.png: no such file")],
                         self.offences("# Top\n[a](docs/none.md)\n[b](#nowhere) [c](docs/other.md#not-a-heading)\n"
                                       "<source srcset=\"gone.png\">\n"))

    def test_links_that_work_on_one_machine_only_are_offences(self):
        for target in ["/etc/passwd", "../outside.md", "http://example.org", "https://localhost:8000/x", "file:///tmp/x"]:
            with self.subTest(target):
                self.assertEqual(1, len(self.offences(f"[a]({target})\n")))

    def test_paths_in_code_exist(self):
        self.assertEqual([(2, "docs/gone.md: no such file")],
                         self.offences("`docs/other.md` `docs` `docs/*.md`\n`docs/gone.md`\n```sh\n`docs/nothing`\n```\n"))

    def test_code_has_no_links(self):
        self.assertEqual([], self.offences("`f[0](x)`\n\n```cpp\nauto f = [](x) {};\n```\n"))

    def test_pages_of_a_site_point_to_each_other(self):
        self.write("site/index.html", '<a href="b.html#part">x</a><a href="#top">y</a><img src="gone.png"><a id="top">')
        self.write("site/b.html", '<h1 id="part">x</h1><a href="index.html#missing">y</a><a href="https://example.org">z</a>')
        self.assertEqual(["b.html: index.html#missing: no such heading", "index.html: gone.png: no such file"],
                         list(check_links.site_offences(self.root / "site")))


if __name__ == "__main__":
    unittest.main()
