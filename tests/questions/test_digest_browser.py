"""The digest in Chromium: axe finds no fault, no errors, no sideways scrolling, and what matters is in sight."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from bot.questions.digest import MaintainerReport
from bot.questions.digest_views import report_page
from tests.browser import TOO_WIDE, WINDOWS, axe_violations, browser, open_watched, resize, show_all
from tests.examples import share
from tests.questions.digest_samples import HOME, create_memory, report
from tests.questions.test_digest_page import EMPTY, hostile

__all__ = ["browser"]

pytestmark = pytest.mark.browser

Open = Callable[[MaintainerReport, str], Page]
BOTTOM = "document.querySelector('{}').getBoundingClientRect().bottom"
LONG = "x" * 5_000
SAMPLES = ["usual", "empty", "words without an end", "from right to left"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, MaintainerReport]:
    usual = report(create_memory(tmp_path_factory.mktemp("digest") / "store"))
    return dict(zip(SAMPLES, (usual, EMPTY, hostile(LONG), hostile("\u202e\u05d0" * 300)), strict=True))


@pytest.fixture
def open_digest(browser: Browser, tmp_path: Path) -> Open:
    return lambda digest, window: open_watched(browser, tmp_path, report_page(digest, HOME), window)


@pytest.mark.parametrize(("sample", "window"), share(product(SAMPLES, WINDOWS), 2))
def test_axe_finds_nothing_and_there_are_no_errors(
    open_digest: Open, reports: dict[str, MaintainerReport], sample: str, window: str
) -> None:
    page = open_digest(reports[sample], window)
    show_all(page)
    assert axe_violations(page) == []
    assert page.evaluate(TOO_WIDE) == 0
    assert page.evaluate("problems") == []


def test_counts_and_the_things_to_look_at_first_are_on_the_first_screen(
    open_digest: Open, reports: dict[str, MaintainerReport]
) -> None:
    for window in ("light", "dark", "phone"):
        page = open_digest(reports["usual"], window)
        script = BOTTOM.format(".first li:last-child" if window != "phone" else ".first li:first-child")
        assert page.evaluate(script) <= WINDOWS[window][1]


def test_nothing_is_wider_than_the_smallest_phone(open_digest: Open, reports: dict[str, MaintainerReport]) -> None:
    page = open_digest(reports["usual"], "phone")
    resize(page, 360, 640)
    show_all(page)
    assert page.evaluate(TOO_WIDE) == 0


def test_dark_is_dark(open_digest: Open, reports: dict[str, MaintainerReport]) -> None:
    script = "getComputedStyle(document.body).backgroundColor"
    assert open_digest(reports["usual"], "dark").evaluate(script) == "rgb(19, 21, 23)"
    assert open_digest(reports["usual"], "light").evaluate(script) == "rgb(246, 246, 243)"


@pytest.mark.night
def test_a_count_leads_to_its_section(open_digest: Open, reports: dict[str, MaintainerReport]) -> None:
    page = open_digest(reports["usual"], "phone")
    page.evaluate("document.querySelector('a[href=\"#duplicates_of_closed\"]').click()")
    assert page.evaluate("document.getElementById('duplicates_of_closed').getBoundingClientRect().top") < 844
