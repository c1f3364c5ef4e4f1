"""The page of dead deliveries: its groups, what only an operator sees, and what its forms can do."""

from __future__ import annotations

import re
from html import unescape
from urllib.parse import quote, unquote

import pytest

from bot.server.model import Result, RunReport
from bot.server.pages.access import Role
from bot.server.pages.deliveries import (
    GROUP_DELIVERIES,
    MAX_GROUPS,
    DeadView,
    dead_page,
    delivery_page,
    parse_operation,
)
from bot.server.pages.parts import PAGE_SIZE, dead_link, policy
from bot.server.pages.status_page import status_page
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.operations import Operation, replay_or_drop
from tests.server.pages.test_status_page import links, text_of
from tests.server.queues import begin_work
from tests.server.sample_inbox import NOW, PastDelivery, SampleInbox, empty_inbox, issue_opened, sample_inbox

AWAY, DENIED = "GitHub did not answer (502): tried 8 times", "the token may not do this: issues: write"
HOSTILE = '"><script>alert(1)</script> & \u202e%'


def inbox_with_dead(*reasons: str) -> SampleInbox:
    """An inbox with deliveries that died for these reasons, a minute apart, in four repositories in turn."""
    count = len(reasons)
    return sample_inbox(
        [
            PastDelivery(9 + count - n, n % 4, issue_opened(n), "failed", reason, state="dead")
            for n, reason in enumerate(reasons)
        ]
    )


def page(inbox: SampleInbox, role: Role = Role.OPERATE, view: DeadView | None = None) -> str:
    return dead_page(inbox, NOW, role, view or DeadView())


def forms(html: str) -> list[dict[str, str]]:
    """The fields that each button of the page sends."""
    all_fields = []
    for form in re.findall(r'<form method="post" action="/dead">(.*?)</form>', html, re.DOTALL):
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        buttons = re.findall(r'<button name="(\w+)" value="(\w+)"', form)
        all_fields += [
            {name: unescape(text) for name, text in fields.items()} | {name: value} for name, value in buttons
        ]
    return all_fields


def states(inbox: SampleInbox) -> list[str]:
    return [row.state for row in reversed(inbox.deliveries(limit=99)) if row.name and row.event.action == "opened"]


def test_each_group_shows_its_count_times_and_repositories() -> None:
    text = text_of(page(inbox_with_dead(DENIED, AWAY, AWAY, AWAY))).replace("\u00a0", " ").replace(" ,", ",")
    assert "Deliveries that were put aside 4 deliveries. They are not retried automatically" in text
    first, second = text.index(f"{AWAY} 3 deliveries"), text.index(f"{DENIED} 1 delivery")
    assert first < second
    assert "3 deliveries · the first came 12 min ago, the last 10 min ago" in text
    assert "· octo-org/harbour, octo-org/lighthouse and octo-org/tide-tables" in text
    assert "octo-org/tide-tables #3 issue opened, delivery 4, 10 min ago" in text


def test_only_an_operator_gets_buttons_and_a_policy_that_allows_forms() -> None:
    inbox = inbox_with_dead(AWAY)
    viewer_page, operator_page = page(inbox, Role.VIEW), page(inbox)
    assert not re.search("<(form|button|input)", viewer_page)
    assert policy() in unescape(viewer_page)
    assert "sign in with the operator's password" in text_of(viewer_page)
    assert "/operate" in links(viewer_page)
    assert len(forms(operator_page)) == 4
    assert policy(has_forms=True) in unescape(operator_page)
    assert policy(has_forms=True) == policy().replace("form-action 'none'", "form-action 'self'")
    assert "sign in" not in text_of(operator_page)


def test_each_button_does_what_it_says() -> None:
    inbox = inbox_with_dead(HOSTILE, AWAY, HOSTILE)
    all_forms = forms(page(inbox))
    replay_one = {"number": "2", "action": "replay"}
    assert replay_one in all_forms
    group = [fields for fields in all_forms if unquote(fields.get("reason", "")) == HOSTILE]
    assert [fields["action"] for fields in group] == ["replay", "drop"]
    for fields, expected in ((replay_one, ["dead", "waiting", "dead"]), (group[1], ["dropped", "waiting", "dropped"])):
        operation = parse_operation(fields | {"why": "archived"}, "octocat")
        assert operation is not None
        replay_or_drop(inbox, operation)
        assert states(inbox)[:3] == expected
    assert {row.reason for row in inbox.deliveries(DeliveryFilter(state="dropped"))} == {"archived"}


def test_dropping_a_group_spares_deliveries_that_died_after_the_page_was_shown() -> None:
    inbox = inbox_with_dead(AWAY, AWAY)
    (_, drop) = (fields for fields in forms(page(inbox)) if "reason" in fields)
    replay_or_drop(inbox, Operation("replay", "octocat", [2]))
    inbox.time = NOW + 5
    again = inbox.delivery(2)
    assert again is not None
    work = begin_work(inbox, again[0].repository)
    inbox.end(work, [Result(each.seq, "dead", AWAY) for each in work.deliveries], RunReport())
    operation = parse_operation(drop, "octocat")
    assert operation is not None
    replay_or_drop(inbox, operation)
    assert states(inbox)[:2] == ["dropped", "dead"]


def test_a_delivery_that_is_no_longer_dead_is_not_dropped() -> None:
    inbox = inbox_with_dead(AWAY)
    replay_or_drop(inbox, Operation("replay", "octocat", [1]))
    operation = parse_operation({"number": "1", "action": "drop"}, "octocat")
    assert operation is not None
    assert replay_or_drop(inbox, operation).seq == 0
    assert states(inbox)[0] == "waiting"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"action": "replay"},
        {"action": "replay", "reason": quote(AWAY)},
        {"action": "replay", "reason": quote(AWAY), "seen": "-1"},
        {"action": "replay", "reason": quote(AWAY), "seen": "0"},
        {"action": "delete", "number": "1"},
        {"action": "drop", "number": "0"},
        {"action": "drop", "number": "1e3"},
        {"action": "drop", "number": "9" * 400},
        {"action": "drop", "number": "١"},
    ],
)
def test_an_incomplete_form_asks_for_nothing(form: dict[str, str]) -> None:
    assert parse_operation(form, "octocat") is None


def test_the_reason_of_a_group_comes_back_as_it_was_stored() -> None:
    for reason in ("", "two\r\nlines", HOSTILE, "“né” 🚀"):
        inbox = inbox_with_dead(reason, reason)
        form = next(fields for fields in forms(page(inbox)) if "reason" in fields)
        operation = parse_operation(form, "octocat")
        assert operation is not None
        assert operation.chosen == DeliveryFilter("dead", reason=reason, ended=int(form["seen"]))


def test_reasons_are_escaped_and_link_to_their_group() -> None:
    inbox = inbox_with_dead(HOSTILE, AWAY)
    html = page(inbox)
    assert "<script" not in html
    assert "alert(1)" in text_of(html)
    alone = page(inbox, view=DeadView(HOSTILE))
    assert "alert(1)" in text_of(alone)
    assert AWAY not in text_of(alone)
    assert "/dead" in links(alone)
    assert "No delivery has this reason any more." in text_of(page(inbox, view=DeadView("unknown")))


def test_deliveries_without_a_reason_form_their_own_group() -> None:
    inbox = inbox_with_dead("", AWAY)
    assert "No reason is known" in text_of(page(inbox))
    replay, drop = (fields for fields in forms(page(inbox)) if fields.get("reason") == "")
    assert (replay["action"], drop["action"]) == ("replay", "drop")
    operation = parse_operation(drop, "octocat")
    assert operation is not None
    replay_or_drop(inbox, operation)
    assert states(inbox)[:2] == ["dropped", "dead"]


def test_paging_through_a_large_group_shows_every_delivery_once() -> None:
    inbox = inbox_with_dead(*[AWAY] * 60)
    assert f"{60 - GROUP_DELIVERIES} more" in text_of(page(inbox))
    assert dead_link(AWAY) in links(page(inbox))
    links_shown: list[str] = []
    before = 0
    for _ in range(3):
        part = page(inbox, view=DeadView(AWAY, before))
        new_links = [link for link in links(part) if link.startswith("/deliveries/")]
        assert len(new_links) <= PAGE_SIZE
        links_shown += new_links
        older = [link for link in links(part) if "before=" in link]
        before = int(older[0].rpartition("=")[2]) if older else 0
    assert before == 0
    assert links_shown == [f"/deliveries/{row.seq}" for row in inbox.deliveries(DeliveryFilter(state="dead"), limit=99)]


def test_only_the_largest_groups_are_shown() -> None:
    html = page(inbox_with_dead(*(f"reason {n}" for n in range(MAX_GROUPS + 5))))
    assert html.count("<section") == MAX_GROUPS
    assert "There are more reasons" in text_of(html)


def test_the_outcome_shown_comes_from_the_audit_log() -> None:
    inbox = inbox_with_dead(AWAY, AWAY)
    record = replay_or_drop(inbox, Operation("replay", "octocat", [1, 2, 3]))
    assert "2 deliveries will be tried again. 1 had changed meanwhile." in text_of(
        page(inbox, view=DeadView(audited=1))
    )
    assert record.seq == 1
    assert "There are none." in text_of(page(inbox))
    replay_or_drop(inbox, Operation("drop", "octocat", [1]))
    assert "1 delivery was dropped." in text_of(page(inbox, view=DeadView(audited=2)))
    for unknown in (0, 3):
        assert "There was nothing to do." in text_of(page(inbox, view=DeadView(audited=unknown)))
    assert 'role="status"' not in page(inbox)


def test_the_other_pages_link_to_the_dead_page() -> None:
    inbox = inbox_with_dead(AWAY)
    assert "/dead" in links(status_page(inbox, (), NOW))
    assert "/dead" not in links(status_page(empty_inbox(), (), NOW))
    assert dead_link(AWAY) in links(delivery_page(inbox.delivery(1), NOW))
