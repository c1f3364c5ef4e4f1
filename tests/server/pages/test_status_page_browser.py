"""The status page in Chromium: axe finds no problem, nothing is refused or too wide, in light and dark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from bot.domain.kinds import Kind
from bot.server.pages.access import Role
from bot.server.pages.deliveries import DeadView, dead_page, delivery_page
from bot.server.pages.health import readiness_checks
from bot.server.pages.status_page import server_digest_page, status_page
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.installations import SectionNumbers, StoredDigest
from tests.browser import TOO_WIDE, WINDOWS, axe_violations, browser, open_watched, resize
from tests.server.pages.test_dead_page import AWAY, DENIED, HOSTILE, inbox_with_dead
from tests.server.sample_inbox import NOW, OPTIONS, SampleInbox, empty_inbox, hostile_inbox, sample_inbox

__all__ = ["browser"]

pytestmark = pytest.mark.browser


def status(inbox: SampleInbox, delivery_filter: DeliveryFilter | None = None) -> str:
    return status_page(inbox, readiness_checks(inbox, OPTIONS, NOW), NOW, delivery_filter)


def hostile_groups() -> SampleInbox:
    """Return an inbox with names and reasons that are hard to lay out."""
    inbox = hostile_inbox()
    reasons = ("x" * 300, "\u05d0" * 80 + "\u202eback", HOSTILE, "")
    with inbox.database.transaction() as changing:
        for seq, reason in enumerate(reasons * 2, 1):
            sql = "update deliveries set state = 'dead', reason = :reason where seq = :seq"
            changing.change(sql, reason=reason, seq=seq)
    return inbox


SECTIONS = (
    SectionNumbers("Possibly back", 2, ((90, Kind.ISSUE), (91, Kind.ISSUE))),
    SectionNumbers("Decided since", 99, tuple((number, Kind.DISCUSSION) for number in range(1, 60))),
)
PAGES: dict[str, Callable[[], str]] = {
    "day": lambda: status(sample_inbox()),
    "hostile": lambda: status(hostile_inbox(), DeliveryFilter(before=40)),
    "empty": lambda: status(empty_inbox()),
    "delivery": lambda: delivery_page(sample_inbox().delivery(6), NOW),
    "dead": lambda: delivery_page(sample_inbox().delivery(5), NOW),
    "hostile-delivery": lambda: delivery_page(hostile_inbox().delivery(4), NOW),
    "gone": lambda: delivery_page(None, NOW),
    "groups": lambda: dead_page(inbox_with_dead(DENIED, *[AWAY] * 40), NOW, Role.OPERATE, DeadView(audited=0)),
    "groups-to-look-at": lambda: dead_page(inbox_with_dead(DENIED, AWAY), NOW, Role.VIEW, DeadView()),
    "hostile-groups": lambda: dead_page(hostile_groups(), NOW, Role.OPERATE, DeadView()),
    "one-group": lambda: dead_page(inbox_with_dead(*[AWAY] * 40), NOW, Role.OPERATE, DeadView(AWAY, 30)),
    "digest": lambda: server_digest_page(
        StoredDigest(NOW, NOW, SECTIONS), "octo-org/compass", "https://x.example", NOW
    ),
    "hostile-digest": lambda: server_digest_page(StoredDigest(NOW, NOW, SECTIONS), "x" * 200, "", NOW),
    "no-digest": lambda: server_digest_page(None, "octo-org/compass", "", NOW),
    "no-group": lambda: dead_page(empty_inbox(), NOW, Role.OPERATE, DeadView()),
}


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Any:
    return lambda name, window: open_watched(browser, tmp_path, PAGES[name](), window)


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("name", PAGES)
def test_no_page_has_an_accessibility_problem_a_refused_resource_or_overflow(
    open_page: Any, name: str, window: str
) -> None:
    page = open_page(name, window)
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("problems") == []
    assert axe_violations(page) == []
    assert page.evaluate(TOO_WIDE) == 0
    resize(page, 320, 640)
    assert page.evaluate(TOO_WIDE) == 0


def test_the_style_is_applied(open_page: Any) -> None:
    for window, colour in (("light", "rgb(246, 246, 243)"), ("dark", "rgb(19, 21, 23)")):
        assert open_page("day", window).evaluate("getComputedStyle(document.body).backgroundColor") == colour


def test_no_script_can_run(open_page: Any) -> None:
    page = open_page("day", "light")
    page.evaluate("document.body.append(Object.assign(document.createElement('script'), {text: 'window.ran = 1'}))")
    assert page.evaluate("window.ran || 0") == 0


def test_on_a_phone_the_first_figure_of_a_repository_has_a_label(open_page: Any) -> None:
    page = open_page("day", "phone")
    label = page.evaluate("getComputedStyle(document.querySelector('td'), '::before').content")
    assert "Last run" in label


def test_on_a_phone_the_list_of_repositories_is_still_a_table(open_page: Any) -> None:
    page = open_page("day", "phone")
    nodes = page.context.new_cdp_session(page).send("Accessibility.getFullAXTree")["nodes"]
    roles = [node["role"]["value"] for node in nodes if not node["ignored"]]
    assert (roles.count("table"), roles.count("columnheader"), roles.count("rowheader")) == (1, 6, 4)
    assert roles.count("cell") == 20


def test_buttons_are_large_enough_for_a_thumb(open_page: Any) -> None:
    page = open_page("groups", "phone")
    heights = page.evaluate("[...document.querySelectorAll('button, summary')].filter(one => one.checkVisibility())"
                      ".map(one => one.getBoundingClientRect().height)")  # fmt: skip
    assert min(heights) >= 32


@pytest.mark.night
def test_links_are_large_enough_for_a_thumb(open_page: Any) -> None:
    page = open_page("day", "phone")
    heights = page.evaluate(
        "[...document.querySelectorAll('.filters a')].map(one => one.getBoundingClientRect().height)"
    )
    assert min(heights) >= 32
