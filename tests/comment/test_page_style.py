"""The report, the digest and the server's pages share one style sheet: nothing in it is left over, and focus shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from bot.comment.render import SHIPPED_FOLDER
from tests.browser import browser, open_watched
from tests.server.pages.test_status_page_browser import PAGES
from tools.picture import digest, report

__all__ = ["browser"]

STYLE = (SHIPPED_FOLDER / "pages.css").read_text(encoding="utf-8")
WITHOUT_A_RULE = {"start", "tick"}
NOT_IN_SAMPLES = {"empty", "none", "heading"}
"""Only a digest with an empty list, and comments by a repository's own templates, have these."""
FOCUSED = """(() => {
    const focused = document.activeElement, style = getComputedStyle(focused), place = focused.getBoundingClientRect();
    return [focused.tagName, style.outlineStyle, style.outlineWidth, place.width > 8 && place.height > 8];
})()"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Every kind of page, with most of what it can show."""
    folder = tmp_path_factory.mktemp("pages")
    (maintainers,) = digest(folder / "store").values()
    return {**report(folder), "maintainers": maintainers, **{name: make() for name, make in PAGES.items()}}


@pytest.mark.slow
def test_every_page_has_the_same_style(pages: dict[str, str]) -> None:
    assert {re.findall(r"<style>(.*?)</style>", page, re.DOTALL)[0].strip() for page in pages.values()} == {
        STYLE.strip()
    }


@pytest.mark.slow
def test_each_class_has_a_rule_and_each_rule_a_page(pages: dict[str, str]) -> None:
    used = {name for page in pages.values() for names in re.findall(r'class="([^"]*)"', page) for name in names.split()}
    selectors = re.sub(r"\{[^{}]*\}|/\*.*?\*/", " ", STYLE, flags=re.DOTALL)
    styled = set(re.findall(r"\.([a-z][\w-]*)", selectors))
    assert used - styled <= WITHOUT_A_RULE
    assert styled - used <= NOT_IN_SAMPLES


@pytest.mark.browser
@pytest.mark.parametrize("window", ["light", "dark"])
@pytest.mark.parametrize("name", ["report", "maintainers", "day", "groups", "delivery"])
def test_whatever_has_the_keyboard_focus_is_outlined(
    browser: Browser, tmp_path: Path, pages: dict[str, str], name: str, window: str
) -> None:
    page = open_watched(browser, tmp_path, pages[name], window)
    seen = []
    for _ in range(12):
        page.keyboard.press("Tab")
        seen.append(page.evaluate(FOCUSED))
    outlined = [focus for focus in seen if focus[0] != "BODY"]
    assert outlined
    assert [focus for focus in outlined if focus[1:] != ["solid", "2px", True]] == []
