"""The page of a try in Chromium: nothing for axe to blame, no errors, no scrolling to the side, no script."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.doors.try_page import Tried, render_try
from bot.evaluation.results import Backtest
from tests.comment.payloads import PAYLOADS
from tests.evaluation.samples import START, backtest, replayed, shown
from tests.evaluation.test_report_browser import AXE, TOO_WIDE, WATCH, WINDOWS, axe
from tools.screenshot import Browser, Tab, find_chromium, running

pytestmark = pytest.mark.browser

REPO = "octocat/hello-world"
COMMENT = f"""<!-- precedent:v1 id=action -->

**Seen before**

- [The worker stops](https://github.com/{REPO}/issues/11) · **fixed**, 3 March 2026
  “It is the proxy.” · `worker.py`
  <details><summary>How it went</summary>

  > hubot, 2026-03-02:
  > ```
  > {"x" * 500}
  > ```

  </details>

<sub>Precedent, a bot, wrote this from the memory of this repository.</sub>
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with running(find_chromium()) as found:
        yield found


def tried(sample: Backtest, *, is_private: bool = False) -> Tried:
    return Tried(sample, "https://github.com", is_private, 12_345, START, START, "the defaults of the program")


def usual() -> Tried:
    hits = (shown(11, 0.9, True), shown(12, 0.4))
    linked = replayed(3, shown(9, 0.5, True), reason="nothing in memory is close enough", markdown="")
    quiet = replayed(2, reason="nothing in memory is close enough")
    return tried(backtest(replayed(20, *hits, markdown=COMMENT), linked, quiet, repo=REPO), is_private=True)


def hostile() -> Tried:
    texts = [text.encode("utf-8", "replace").decode() for text in PAYLOADS]
    threads = [replayed(n, shown(9, 0.9), title=text, markdown=text) for n, text in enumerate(texts, 20)]
    wide = replayed(5_000, shown(9, 0.9), title="x" * 5_000, markdown="x" * 5_000)
    silent = replayed(5_001, title="\u05d0" * 300, reason="y" * 300)
    return tried(backtest(*threads, wide, silent, repo=REPO))


def empty() -> Tried:
    return tried(backtest(repo=REPO))


def opened(browser: Browser, sample: Tried, window: str, folder: Path) -> Tab:
    width, height, dark = WINDOWS[window]
    file = folder / "try.html"
    file.write_text(render_try(sample), encoding="utf-8")
    tab = Tab(browser, dark)
    tab.call("Page.addScriptToEvaluateOnNewDocument", source=WATCH)
    tab.resize(width, height)
    tab.open(file)
    return tab


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("sample", [usual(), hostile(), empty()], ids=["usual", "hostile", "empty"])
def test_axe_finds_nothing_and_nothing_goes_wrong(browser: Browser, sample: Tried, window: str, tmp_path: Path) -> None:
    tab = opened(browser, sample, window, tmp_path)
    tab.run("for (const part of document.querySelectorAll('details')) part.open = true")
    tab.picture()
    tab.run(axe())
    assert tab.run(AXE) == []
    assert tab.run(TOO_WIDE) == 0
    assert tab.run("problems") == []


def test_no_script_runs_and_nothing_is_loaded(browser: Browser, tmp_path: Path) -> None:
    tab = opened(browser, hostile(), "light", tmp_path)
    assert tab.run("document.querySelectorAll('script, img, iframe, form, [onerror], [style]').length") == 0
    tab.run("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    assert tab.run("window.ran || 0") == 0
    assert [found for found in tab.run("problems") if found.startswith("securitypolicyviolation: ")]


def test_what_it_would_not_have_said_is_folded(browser: Browser, tmp_path: Path) -> None:
    tab = opened(browser, usual(), "light", tmp_path)
    assert tab.run("[...document.querySelectorAll('h3')].map(one => one.checkVisibility())") == [True, False, False]
    assert tab.run("document.querySelector('.comment details').open") is False
    tab.run("document.querySelector('.silent summary').click()")
    assert tab.run("[...document.querySelectorAll('.silent h3')].every(one => one.checkVisibility())") is True
    assert "Nothing in memory is close enough: the nearest is #9, with a similarity of 0.50." in tab.run(
        "[...document.querySelectorAll('.silent p')].map(one => one.textContent)"
    )
