"""The report in Chromium: axe finds no fault, no errors, no sideways scrolling, and controls that work."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from bot.evaluation.report import render_report
from bot.evaluation.results import Backtest, Grade
from tests.browser import TOO_WIDE, WINDOWS, axe_violations, browser, open_watched, resize, show_all
from tests.evaluation.samples import backtest, generated, replayed, shown
from tests.examples import share

__all__ = ["browser"]

pytestmark = pytest.mark.browser

SHOWN = (
    "[...document.querySelectorAll('.entry')].filter(entry => entry.checkVisibility())"
    ".map(entry => entry.dataset.kinds.split(' ')[0])"
)


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


@pytest.mark.parametrize(("sample", "window"), share(product((generated(60), backtest(), hostile()), WINDOWS), 2))
def test_axe_finds_nothing_and_there_are_no_errors(open_report: Any, sample: Backtest, window: str) -> None:
    page = open_report(sample, window)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    show_all(page)
    assert axe_violations(page) == []
    assert page.evaluate(TOO_WIDE) == 0
    assert page.evaluate("problems") == []


def test_axe_would_find_a_colour_that_is_too_pale(open_report: Any) -> None:
    page = open_report(generated(3), "light")
    page.evaluate("document.querySelector('h1').style.color = '#ccc'")
    assert [violation.split(":")[0] for violation in axe_violations(page)] == ["color-contrast"]


def test_the_content_security_policy_is_enforced(open_report: Any) -> None:
    page = open_report(generated(3), "light")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    page.evaluate(
        "document.body.append(Object.assign(document.createElement('img'), {src: 'https://example.com/x.png'}))"
    )
    assert page.evaluate("window.ran || 0") == 0
    assert [problem for problem in page.evaluate("problems") if problem.startswith("securitypolicyviolation: ")]


def test_nothing_is_wider_than_the_smallest_phone(open_report: Any) -> None:
    page = open_report(generated(30), "phone")
    resize(page, 360, 640)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    show_all(page)
    assert page.evaluate(TOO_WIDE) == 0


def test_filters_show_their_grade_and_say_how_many(open_report: Any) -> None:
    sample = generated(60)
    entries = [(thread.grade.value, thread.has_comment) for thread in reversed(sample.replayed)]
    page = open_report(sample, "light")
    for position, kind in enumerate(["", "comment", *Grade]):
        page.evaluate(f"document.querySelectorAll('[data-show]')[{position}].click()")
        expected = [
            grade for grade, has_comment in entries if kind in ("", grade) or (kind == "comment" and has_comment)
        ]
        assert page.evaluate(SHOWN) == expected
        assert page.evaluate("document.getElementById('count').textContent") == f"{len(expected)} of 60 issues"
        pressed = page.evaluate("[...document.querySelectorAll('[aria-pressed=true]')].map(b => b.dataset.show)")
        assert pressed == [kind]


def test_the_report_opens_on_the_comments_or_on_everything_if_there_are_none(open_report: Any) -> None:
    assert set(open_report(generated(60), "light").evaluate(SHOWN)) <= {"success", "assist", "noise"}
    assert open_report(backtest(replayed(1), replayed(2)), "light").evaluate(SHOWN) == ["quiet", "quiet"]
    mentioning = backtest(replayed(1, mentions=1, markdown="#9"), replayed(2, shown(11, 0.9)), replayed(3))
    assert open_report(mentioning, "light").evaluate(SHOWN) == ["noise", "quiet"]


def test_search_and_filter_work_with_the_keyboard_alone(open_report: Any) -> None:
    threads = [replayed(key, shown(key + 90, 0.9), title=f"Snapshot {key}") for key in (1, 2, 3)]
    page = open_report(backtest(*threads, replayed(4, title="Backup stops")), "light")
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.id") == "search":
            break
    page.keyboard.insert_text("SNAPSHOT  2")
    assert page.evaluate(SHOWN) == ["noise"]
    page.keyboard.insert_text(" nowhere")
    assert page.evaluate("document.getElementById('nothing').checkVisibility()") is True
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert page.evaluate("[document.activeElement.id, document.getElementById('search').value]") == ["search", ""]
    assert page.evaluate(SHOWN) == ["quiet", "noise", "noise", "noise"]


def test_reasons_and_comments_are_searched_but_not_the_words_of_the_page(open_report: Any) -> None:
    page = open_report(
        backtest(replayed(1, shown(9, 0.9, why=("same file: worker.py",)), markdown="an *answer*")), "light"
    )
    for words, expected in (("worker.py", 1), ("an answer", 1), ("closed then", 0), ("#9", 1)):
        script = f"search.value = {words!r}; search.dispatchEvent(new Event('input'))"
        page.evaluate(f"var search = document.getElementById('search'); {script}")
        assert len(page.evaluate(SHOWN)) == expected


def test_a_thousand_threads_are_searched_within_a_second(open_report: Any) -> None:
    page = open_report(generated(1000), "phone")
    page.evaluate("document.querySelector('[data-show=\"\"]').click()")
    milliseconds = page.evaluate(
        "new Promise(done => { const start = performance.now(); const search = document.getElementById('search');"
        "search.value = 'import enospc'; search.dispatchEvent(new Event('input'));"
        "requestAnimationFrame(() => setTimeout(() => done(performance.now() - start))); })"
    )
    assert 0 < len(page.evaluate(SHOWN)) < 1000
    assert milliseconds < 1000


@pytest.mark.night
def test_without_scripts_every_entry_is_visible_and_no_control_is(browser: Browser, tmp_path: Path) -> None:
    file = tmp_path / "report.html"
    file.write_text(render_report(generated(30)), encoding="utf-8")
    page = browser.new_page(java_script_enabled=False)
    page.goto(file.as_uri())
    assert len(page.evaluate(SHOWN)) == 30
    assert page.evaluate("document.getElementById('controls').checkVisibility()") is False
