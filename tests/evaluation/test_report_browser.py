"""The report in Chromium: axe finds no fault, no errors, no sideways scrolling, and controls that work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from bot.evaluation.report import render_report
from bot.evaluation.results import Backtest, Grade
from tests.evaluation.samples import backtest, generated, replayed, shown
from tests.examples import share
from tools.screenshot import Browser, Tab, find_chromium, running

pytestmark = pytest.mark.browser

WINDOWS = {"light": (1200, 900, False), "dark": (1200, 900, True), "phone": (390, 844, False)}
AXE_PACKAGES = ("axe_playwright_python", "axe_core_python")
WATCH = """
window.problems = [];
for (const name of ["error", "unhandledrejection", "securitypolicyviolation"])
  addEventListener(name, event => problems.push(`${name}: ${event.message || event.reason || event.blockedURI}`), true);
for (const name of ["error", "warn"]) console[name] = (...parts) => problems.push(parts.join(" "));
"""
AXE = """
axe.run(document, {runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]}).then(found =>
  found.violations.map(one => `${one.id}: ${one.nodes.length} × ${one.nodes[0].html} ${one.nodes[0].failureSummary}`))
"""
SHOWN = (
    "[...document.querySelectorAll('.entry')].filter(entry => entry.checkVisibility())"
    ".map(entry => entry.dataset.kinds.split(' ')[0])"
)
TOO_WIDE = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


def axe() -> str:
    """The source of axe-core, from the file that the variable AXE names or else from an installed package."""
    if named := os.environ.get("AXE"):
        return Path(named).read_text(encoding="utf-8")
    for package in AXE_PACKAGES:
        if (spec := find_spec(package)) and spec.origin:
            return (Path(spec.origin).parent / "axe.min.js").read_text(encoding="utf-8")
    raise FileNotFoundError("axe-core: install axe-core-python, or name an axe.min.js in the variable AXE")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running(find_chromium()) as chromium:
        yield chromium


def open_watched(browser: Browser, folder: Path, page: str, window: str) -> Tab:
    """The page in a window of WINDOWS, with WATCH at work."""
    width, height, dark = WINDOWS[window]
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    tab = Tab(browser, dark)
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    tab.resize(width, height)
    tab.open(file)
    return tab


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path) -> Any:
    return lambda sample, window: open_watched(browser, tmp_path, render_report(sample), window)


def hostile() -> Backtest:
    """A replay that is hard to lay out: endless words, text from right to left, and an empty title."""
    word = "x" * 5_000
    hits = (shown(11, 0.9, True, title=word, why=(word, "\u202eback")), shown(12, 0.4, title="\u05d0" * 300))
    return backtest(
        replayed(1, *hits, title=word, markdown=word),
        replayed(2, title=""),
        repo=f"octocat/{word}",
        evidence={word: word},
    )


def press(tab: Tab, key: str, code: int, text: str = "") -> None:
    for kind in ("keyDown", "keyUp"):
        tab.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=code, text=text)


@pytest.mark.parametrize(("sample", "window"), share(product((generated(60), backtest(), hostile()), WINDOWS), 2))
def test_axe_finds_nothing_and_there_are_no_errors(open_report: Any, sample: Backtest, window: str) -> None:
    tab = open_report(sample, window)
    tab.run("for (const part of document.querySelectorAll('details')) part.open = true")
    tab.picture()
    tab.run(axe())
    assert tab.run(AXE) == []
    assert tab.run(TOO_WIDE) == 0
    assert tab.run("problems") == []


def test_axe_would_find_a_colour_that_is_too_pale(open_report: Any) -> None:
    tab = open_report(generated(3), "light")
    tab.run("document.querySelector('h1').style.color = '#ccc'")
    tab.run(axe())
    assert [violation.split(":")[0] for violation in tab.run(AXE)] == ["color-contrast"]


def test_the_content_security_policy_is_enforced(open_report: Any) -> None:
    tab = open_report(generated(3), "light")
    tab.run("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    tab.run("document.body.append(Object.assign(document.createElement('img'), {src: 'https://example.com/x.png'}))")
    assert tab.run("window.ran || 0") == 0
    assert [problem for problem in tab.run("problems") if problem.startswith("securitypolicyviolation: ")]


def test_nothing_is_wider_than_the_smallest_phone(open_report: Any) -> None:
    tab = open_report(generated(30), "phone")
    tab.resize(360, 640)
    tab.run("for (const part of document.querySelectorAll('details')) part.open = true")
    tab.picture()
    assert tab.run(TOO_WIDE) == 0


def test_filters_show_their_grade_and_say_how_many(open_report: Any) -> None:
    sample = generated(60)
    entries = [(thread.grade.value, thread.has_comment) for thread in reversed(sample.replayed)]
    tab = open_report(sample, "light")
    for position, kind in enumerate(["", "comment", *Grade]):
        tab.run(f"document.querySelectorAll('[data-show]')[{position}].click()")
        expected = [
            grade for grade, has_comment in entries if kind in ("", grade) or (kind == "comment" and has_comment)
        ]
        assert tab.run(SHOWN) == expected
        assert tab.run("document.getElementById('count').textContent") == f"{len(expected)} of 60 issues"
        assert tab.run("[...document.querySelectorAll('[aria-pressed=true]')].map(b => b.dataset.show)") == [kind]


def test_the_report_opens_on_the_comments_or_on_everything_if_there_are_none(open_report: Any) -> None:
    assert set(open_report(generated(60), "light").run(SHOWN)) <= {"success", "assist", "noise"}
    assert open_report(backtest(replayed(1), replayed(2)), "light").run(SHOWN) == ["quiet", "quiet"]
    mentioning = backtest(replayed(1, mentions=1, markdown="#9"), replayed(2, shown(11, 0.9)), replayed(3))
    assert open_report(mentioning, "light").run(SHOWN) == ["noise", "quiet"]


def test_search_and_filter_work_with_the_keyboard_alone(open_report: Any) -> None:
    threads = [replayed(key, shown(key + 90, 0.9), title=f"Snapshot {key}") for key in (1, 2, 3)]
    tab = open_report(backtest(*threads, replayed(4, title="Backup stops")), "light")
    for _ in range(40):
        press(tab, "Tab", 9)
        if tab.run("document.activeElement.id") == "search":
            break
    tab.call("Input.insertText", text="SNAPSHOT  2")
    assert tab.run(SHOWN) == ["noise"]
    tab.call("Input.insertText", text=" nowhere")
    assert tab.run("document.getElementById('nothing').checkVisibility()") is True
    press(tab, "Tab", 9)
    press(tab, "Enter", 13, "\r")
    assert tab.run("[document.activeElement.id, document.getElementById('search').value]") == ["search", ""]
    assert tab.run(SHOWN) == ["quiet", "noise", "noise", "noise"]


def test_reasons_and_comments_are_searched_but_not_the_words_of_the_page(open_report: Any) -> None:
    tab = open_report(
        backtest(replayed(1, shown(9, 0.9, why=("same file: worker.py",)), markdown="an *answer*")), "light"
    )
    for words, expected in (("worker.py", 1), ("*answer*", 1), ("confidence", 0), ("#9", 1)):
        script = f"search.value = {words!r}; search.dispatchEvent(new Event('input'))"
        tab.run(f"var search = document.getElementById('search'); {script}")
        assert len(tab.run(SHOWN)) == expected


def test_a_thousand_threads_are_searched_within_a_second(open_report: Any) -> None:
    tab = open_report(generated(1000), "phone")
    tab.run("document.querySelector('[data-show=\"\"]').click()")
    milliseconds = tab.run(
        "new Promise(done => { const start = performance.now(); const search = document.getElementById('search');"
        "search.value = 'import enospc'; search.dispatchEvent(new Event('input'));"
        "requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))); })"
    )
    assert 0 < len(tab.run(SHOWN)) < 1000
    assert milliseconds < 1000


@pytest.mark.night
def test_without_scripts_every_entry_is_visible_and_no_control_is(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_report(generated(30)), encoding="utf-8")
    tab = Tab(browser)
    tab.resize(1200, 900)
    tab.call("Emulation.setScriptExecutionDisabled", value=True)
    tab.open(file)
    tab.call("Emulation.setScriptExecutionDisabled", value=False)
    assert len(tab.run(SHOWN)) == 30
    assert tab.run("document.getElementById('controls').checkVisibility()") is False
