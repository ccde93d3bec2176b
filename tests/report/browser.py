#!/usr/bin/env python3
"""Opens reports of real runs in a headless browser: no complaints, no network, everything answers.

  browser.py <test_report> <chromium> <folder> [--pictures <docs folder>]

The program writes the pages into the folder; with --pictures docs/report-light.png and -dark.png are made anew.
"""
import base64
import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from devtools import Browser, Page  # noqa: E402

failures = []


def check(what, is_true, got=""):
    if not is_true:
        failures.append(f"{what} {got}".rstrip())
        print(f"FAILED {what}", got)


def text(page, selector):
    return page.evaluate(f"document.querySelector({selector!r})?.textContent ?? ''")


def chosen_step(page):
    return int(page.evaluate("document.querySelector('#chart').getAttribute('aria-valuenow')"))


def on_chart(page, x, y):
    """A point of the picture, in parts of its width and height."""
    box = page.evaluate("(() => { const b = document.querySelector('#chart').getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    return box[0] + x * box[2], box[1] + y * box[3]


def check_pointer(page):
    page.mouse("mouseMoved", *on_chart(page, 0.2, 0.6))
    check("pointing shows a note", page.evaluate("!document.querySelector('#tip').hidden"))
    tip = text(page, "#tip")
    step = chosen_step(page)
    check("the note names the step and its pass", f"step {step}" in tip and "forward" in tip, tip)
    check("the note tells bytes and a source line", "residuals" in tip and "transformer.h:" in tip, tip)
    check("the step's card follows", f"Step {step}:" in text(page, "#step"), text(page, "#step"))
    page.click(*on_chart(page, 0.2, 0.62))
    check("a click on a band lists its values", "Alive at this step: residuals" in text(page, "#live h2"), text(page, "#live h2"))
    row = page.evaluate("[...document.querySelectorAll('#live tbody tr:first-child td')].map((c) => c.textContent)")
    check("a value has bytes, a type, a maker, a line and readers",
          len(row) == 7 and "KiB" in row[0] and row[1].startswith("f32[") and row[3] == "residuals" and " in " in row[4]
          and "transformer.h:" in row[5] and row[6][0].isdigit(), row)
    page.mouse("mouseMoved", *on_chart(page, 0.8, 0.5))
    check("a kept step stays", chosen_step(page) == step)
    page.evaluate("document.querySelector('#live tbody button').click()")
    check("a value shows its life", "lives from step" in text(page, "#chart .strong") and "read by" in text(page, "#value"))


def check_keys(page):
    page.evaluate("document.querySelector('#chart').focus()")
    page.press("Home")
    check("Home goes to the first step", chosen_step(page) == 0)
    page.press("ArrowRight")
    check("an arrow goes on by one", chosen_step(page) == 1)
    page.press("End")
    check("End goes to the last step", chosen_step(page) == page.evaluate("programs[state.chosen].steps.length - 1"))
    page.press("p")
    check("p goes to the peak", "the peak" in text(page, "#step"), text(page, "#step"))


def check_tables(page):
    peaks = page.evaluate("[...document.querySelectorAll('#programs tbody tr')].map((r) => r.textContent)")
    check("the table has a row for each policy", len(peaks) == 3 and all("MiB" in p for p in peaks), peaks)
    for tab in ("rules", "plan"):
        page.evaluate(f"document.querySelector('#tab-{tab}').click()")
        titles = page.evaluate("[...document.querySelectorAll('#residuals th')].map((h) => h.textContent)")
        for i, title in enumerate(titles):
            page.evaluate(f"document.querySelectorAll('#residuals th button')[{i}].click()")
            check(f"{tab} can be sorted by {title}", page.evaluate(f"document.querySelectorAll('#residuals th')[{i}].getAttribute('aria-sort')") != "none")
        page.evaluate("document.querySelectorAll('#residuals th button')[1].click()")
        cells = page.evaluate("[...document.querySelectorAll('#residuals tbody tr')].map((r) => r.cells[1]?.textContent).filter((t) => t)")
        check(f"{tab} is in order", len(cells) > 5 and cells == page.evaluate(
            f"{cells!r}.sort((a, b) => a.localeCompare(b, 'en', {{ numeric: true }}))"), cells[:5])
    check("reasons are there", "products are not computed again" in text(page, "#residuals"))


def check_legend(page):
    before = page.evaluate("document.querySelectorAll('#chart path.band').length")
    page.evaluate("document.querySelector('[data-legend=residuals]').click()")
    after = page.evaluate("document.querySelectorAll('#chart path.band').length")
    check("a band can be left out", after < before, (before, after))
    page.evaluate("document.querySelector('[data-legend=residuals]').click()")
    lines = page.evaluate("document.querySelectorAll('#chart .rival').length")
    page.evaluate("document.querySelector('#programs tr:nth-child(2) input').click()")
    check("a line can be left out", page.evaluate("document.querySelectorAll('#chart .rival').length") == lines - 1)
    page.evaluate("document.querySelector('#programs tr:nth-child(2) input').click()")
    page.evaluate("document.querySelector('#programs tr:nth-child(2) .name button').click()")
    check("another policy can be shown in full", text(page, "#chart-title").startswith("nothing_saveable"), text(page, "#chart-title"))
    page.evaluate("document.querySelector('#theme').click()")
    check("the theme can be changed", page.evaluate("document.documentElement.dataset.theme") == "dark")
    page.evaluate("localStorage.clear()")  # or it would be remembered for the pages below


def check_transformer(browser, url):
    page = Page(browser, url)
    check_pointer(page)
    check_keys(page)
    check_tables(page)
    check_legend(page)
    check("the peak that is drawn is the plan's", page.evaluate("programs.every((p) => p.total[p.peakStep] === p.memory.peak)"))
    linked = Page(browser, url + "#program=nothing_saveable&step=100&tab=plan")
    check("a link opens a program, a step and a list", text(linked, "#step h2").startswith("Step 100:") and
          text(linked, "#chart-title").startswith("nothing_saveable") and "kept" in text(linked, "[aria-selected=true]"))
    narrow = Page(browser, url, width=380, height=800)
    check("a narrow window scrolls in one direction", narrow.evaluate("document.documentElement.scrollWidth") <= 380)
    return [page, linked, narrow]


def check_others(browser, url):
    page = Page(browser, url)
    check("names of programs do no harm", page.evaluate("window.harmed") is None)
    check("names of programs are shown as they are", "<img src=x" in text(page, "#programs"), text(page, "#programs"))
    for i in range(4):
        page.evaluate(f"chooseProgram({i})")
        check("every program is drawn", page.evaluate("document.querySelector('#chart svg .outline') !== null"))
        check("the peak that is drawn is the plan's", page.evaluate(f"programs[{i}].total[programs[{i}].peakStep] === programs[{i}].memory.peak"))
    page.evaluate("chooseProgram(0); choose(programs[0].steps.findIndex((s) => s.body > 0), true)")
    check("a step of a loop tells how often", "scan, 6 times" in text(page, "#step"), text(page, "#step"))
    return [page]


def check_deep(browser, url):
    page = Page(browser, url)
    check("columns are not wider than steps", page.evaluate("chart.columns(programs[0]).length <= chart.width"))
    page.mouse("mouseMoved", *on_chart(page, 0.7, 0.7))
    check("a large page answers", f"Step {chosen_step(page)}:" in text(page, "#step"))
    return [page]


def take_pictures(browser, url, folder):
    views = {"light": "#program=none&step=28", "dark": "#program=nothing_saveable&step=72"}
    for scheme, place in views.items():
        page = Page(browser, url + place, scheme, width=1280, height=1040)
        (folder / f"report-{scheme}.png").write_bytes(base64.b64decode(page.screenshot()))


def main():
    program, chromium, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run([program, "--no-colors", "--source-file=*/page_test.cpp"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "REPRISE_REPORT_FOLDER": str(folder)})
    browser = Browser(chromium)
    try:
        url = (folder / "transformer.html").resolve().as_uri()
        pages = check_transformer(browser, url)
        pages += check_others(browser, (folder / "others.html").resolve().as_uri())
        pages += check_deep(browser, (folder / "deep.html").resolve().as_uri())
        for scheme in ("light", "dark"):
            pages.append(Page(browser, url, scheme))
            check("the theme follows the system", pages[-1].evaluate("document.documentElement.dataset.theme") == scheme)
        for page in pages:
            check("the browser has nothing to complain about", not page.complaints(), page.complaints())
        take_pictures(browser, url, Path(sys.argv[5]) if sys.argv[4:5] == ["--pictures"] else folder)
    finally:
        browser.close()
    print(f"{len(failures)} failure(s)")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
