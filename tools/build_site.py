#!/usr/bin/env python3
"""Builds the documentation as a site: `build_site.py OUT` makes OUT/html with mkdocs (Debian package mkdocs).

The pages are staged in OUT/pages under the paths they have in the repository, so that links work in both places; files that
pages link to (sources, pictures) are staged beside them, and the API reference is added as docs/api. The build is strict: a
link that leads nowhere fails it, in mkdocs and then in the finished pages.
"""
import re
import shutil
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import api_reference
import check_links

ROOT = Path(__file__).resolve().parent.parent


def listing(folder):
    """A page for a folder that has none, so that links to it show its files."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and not p.name.startswith("."))
    name = folder.relative_to(ROOT)
    return f"# {name}\n\n" + "".join(f"- [{p.name}]({p.name})\n" for p in files), files


def with_folder_pages(text, page):
    """The page, with links to folders replaced by links to their pages."""
    def replaced(match):
        target = match[1]
        is_folder = not urlsplit(target).scheme and target and (page.parent / target).is_dir()
        return match[0].replace(f"({target})", f"({target.rstrip('/')}/README.md)") if is_folder else match[0]
    return check_links.LINK.sub(replaced, text)


def without_directives(text):
    """Comments for tools/check_snippets.py are no part of the page."""
    return re.sub(r"^<!-- snippet: .*?-->\n+", "", text, flags=re.MULTILINE | re.DOTALL)


def stage(pages):
    """Copies the pages and what they link to."""
    waiting, staged = check_links.pages(ROOT) + [ROOT / "bench" / "RESULTS.md"], set()
    while waiting:
        source = waiting.pop()
        if source in staged or not source.exists():
            continue
        staged.add(source)
        to = pages / source.relative_to(ROOT)
        if source.is_dir():
            page = source / "README.md"
            if page.exists():
                waiting.append(page)
            else:
                text, files = listing(source)
                to.mkdir(parents=True, exist_ok=True)
                (to / "README.md").write_text(text, encoding="utf-8")
                waiting += files
            continue
        to.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix != ".md":
            shutil.copyfile(source, to)
            continue
        text = source.read_text(encoding="utf-8")
        to.write_text(with_folder_pages(without_directives(text), source), encoding="utf-8")
        waiting += [(source.parent / urlsplit(target).path).resolve() for _, target in check_links.links(text)
                    if not urlsplit(target).scheme and urlsplit(target).path]


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    out = Path(sys.argv[1]).resolve()
    shutil.rmtree(out / "pages", ignore_errors=True)
    stage(out / "pages")
    sys.argv[1:] = [str(out / "pages" / "docs" / "api")]
    api_reference.main()
    shutil.copyfile(ROOT / "mkdocs.yml", out / "mkdocs.yml")
    shutil.copytree(ROOT / "docs" / "theme", out / "theme", dirs_exist_ok=True)
    run = subprocess.run(["mkdocs", "build", "--strict", "--clean", "--quiet", "-f", str(out / "mkdocs.yml")], check=False)
    offences = list(check_links.site_offences(out / "html")) if run.returncode == 0 else []
    print("\n".join(offences))
    return run.returncode or (1 if offences else 0)


if __name__ == "__main__":
    sys.exit(main())
