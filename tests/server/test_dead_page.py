"""The page of dead deliveries: its groups, what only an operator gets, and what its forms can ask for."""

from __future__ import annotations

import re
from html import unescape

import pytest

from bot.server.access import Role
from bot.server.dead_letters import Operation, replay_or_drop
from bot.server.dead_page import GROUPS, NEWEST, DeadView, dead_page, parse_operation
from bot.server.delivery_filter import DeliveryFilter
from bot.server.model import Result, RunReport
from bot.server.status_page import PAGE, dead_link, delivery_page, policy, status_page
from tests.server.gallery import NOW, Days, Past, a_day, empty, opened
from tests.server.queues import leased
from tests.server.test_status_page import links, text_of

AWAY, DENIED = "GitHub did not answer (502): tried 8 times", "the token may not do this: issues: write"
HOSTILE = '"><script>alert(1)</script> & \u202e%'


def dead(*reasons: str) -> Days:
    """A day on which deliveries were put aside for these reasons, a minute apart, in turn in four repositories."""
    count = len(reasons)
    return a_day([Past(9 + count - n, n % 4, opened(n), "failed", why, state="dead") for n, why in enumerate(reasons)])


def page(ledger: Days, role: Role = Role.OPERATE, view: DeadView | None = None) -> str:
    return dead_page(ledger, NOW, role, view or DeadView())


def forms(shown: str) -> list[dict[str, str]]:
    """What each button of the page sends."""
    found = []
    for form in re.findall(r'<form method="post" action="/dead">(.*?)</form>', shown, re.DOTALL):
        fields = dict(re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)"', form))
        buttons = re.findall(r'<button name="(\w+)" value="(\w+)"', form)
        found += [{name: unescape(text) for name, text in fields.items()} | {name: value} for name, value in buttons]
    return found


def states(ledger: Days) -> list[str]:
    return [row.state for row in reversed(ledger.deliveries(limit=99)) if row.name and row.event.action == "opened"]


def test_groups_say_how_many_since_when_and_where() -> None:
    text = text_of(page(dead(DENIED, AWAY, AWAY, AWAY))).replace("\u00a0", " ").replace(" ,", ",")
    assert "Deliveries that were put aside 4 deliveries. They are not retried automatically" in text
    first, second = text.index(f"{AWAY} 3 deliveries"), text.index(f"{DENIED} 1 delivery")
    assert first < second
    assert "3 deliveries · the first came 12 min ago, the last 10 min ago" in text
    assert "· octo-org/harbour, octo-org/lighthouse and octo-org/tide-tables" in text
    assert "octo-org/tide-tables #3 issue opened, delivery 4, 10 min ago" in text


def test_only_an_operator_gets_buttons_and_only_then_may_forms_be_sent() -> None:
    ledger = dead(AWAY)
    looking, operating = page(ledger, Role.LOOK), page(ledger)
    assert not re.search("<(form|button|input)", looking)
    assert policy() in unescape(looking)
    assert "sign in with the operator's password" in text_of(looking)
    assert "/operate" in links(looking)
    assert len(forms(operating)) == 4
    assert policy(has_forms=True) in unescape(operating)
    assert policy(has_forms=True) == policy().replace("form-action 'none'", "form-action 'self'")
    assert "sign in" not in text_of(operating)


def test_each_button_does_what_it_says() -> None:
    ledger = dead(HOSTILE, AWAY, HOSTILE)
    asked = forms(page(ledger))
    one = {"number": "2", "action": "replay"}
    assert one in asked
    group = [fields for fields in asked if fields.get("reason") == HOSTILE]
    assert [fields["action"] for fields in group] == ["replay", "drop"]
    for fields, after in ((one, ["dead", "waiting", "dead"]), (group[1], ["dropped", "waiting", "dropped"])):
        wanted = parse_operation(fields | {"why": "archived"}, "octocat")
        assert wanted is not None
        replay_or_drop(ledger, wanted)
        assert states(ledger)[:3] == after
    assert {row.reason for row in ledger.deliveries(state="dropped")} == {"archived"}


def test_what_was_put_aside_after_the_page_was_shown_is_not_dropped_with_its_group() -> None:
    ledger = dead(AWAY, AWAY)
    (_, drop) = (fields for fields in forms(page(ledger)) if "reason" in fields)
    replay_or_drop(ledger, Operation("replay", "octocat", [2]))
    ledger.time = NOW + 5
    again = ledger.delivery(2)
    assert again is not None
    work = ledger.begin(leased(ledger, again[0].repository))
    assert work is not None
    ledger.end(work, [Result(each.seq, "dead", AWAY) for each in work.deliveries], RunReport())
    wanted = parse_operation(drop, "octocat")
    assert wanted is not None
    replay_or_drop(ledger, wanted)
    assert states(ledger)[:2] == ["dropped", "dead"]


def test_one_that_is_no_longer_dead_is_not_dropped() -> None:
    ledger = dead(AWAY)
    replay_or_drop(ledger, Operation("replay", "octocat", [1]))
    wanted = parse_operation({"number": "1", "action": "drop"}, "octocat")
    assert wanted is not None
    assert replay_or_drop(ledger, wanted).seq == 0
    assert states(ledger)[0] == "waiting"


@pytest.mark.parametrize(
    "form",
    [
        {},
        {"action": "replay"},
        {"action": "replay", "reason": AWAY},
        {"action": "replay", "reason": AWAY, "seen": "-1"},
        {"action": "replay", "reason": AWAY, "seen": "0"},
        {"action": "delete", "number": "1"},
        {"action": "drop", "number": "0"},
        {"action": "drop", "number": "1e3"},
        {"action": "drop", "number": "9" * 400},
        {"action": "drop", "number": "١"},
    ],
)
def test_an_incomplete_form_asks_for_nothing(form: dict[str, str]) -> None:
    assert parse_operation(form, "octocat") is None


def test_line_ends_of_a_reason_come_back_as_browsers_send_them() -> None:
    wanted = parse_operation({"action": "drop", "reason": "two\r\nlines", "seen": "5"}, "octocat")
    assert wanted is not None
    assert wanted.chosen == DeliveryFilter("dead", reason="two\nlines", ended=5)


def test_reasons_are_text_and_lead_to_their_group() -> None:
    ledger = dead(HOSTILE, AWAY)
    shown = page(ledger)
    assert "<script" not in shown
    assert "alert(1)" in text_of(shown)
    alone = page(ledger, view=DeadView(HOSTILE))
    assert "alert(1)" in text_of(alone)
    assert AWAY not in text_of(alone)
    assert "/dead" in links(alone)
    assert "No delivery has this reason any more." in text_of(page(ledger, view=DeadView("unknown")))


def test_a_group_without_a_reason_is_one_of_its_own() -> None:
    ledger = dead("", AWAY)
    assert "No reason is known" in text_of(page(ledger))
    replay, drop = (fields for fields in forms(page(ledger)) if fields.get("reason") == "")
    assert (replay["action"], drop["action"]) == ("replay", "drop")
    wanted = parse_operation(drop, "octocat")
    assert wanted is not None
    replay_or_drop(ledger, wanted)
    assert states(ledger)[:2] == ["dropped", "dead"]


def test_every_delivery_of_a_large_group_is_reached_once() -> None:
    ledger = dead(*[AWAY] * 60)
    assert f"{60 - NEWEST} more" in text_of(page(ledger))
    assert dead_link(AWAY) in links(page(ledger))
    shown: list[str] = []
    before = 0
    for _ in range(3):
        part = page(ledger, view=DeadView(AWAY, before))
        found = [link for link in links(part) if link.startswith("/deliveries/")]
        assert len(found) <= PAGE
        shown += found
        older = [link for link in links(part) if "before=" in link]
        before = int(older[0].rpartition("=")[2]) if older else 0
    assert before == 0
    assert shown == [f"/deliveries/{row.seq}" for row in ledger.deliveries(state="dead", limit=99)]


def test_only_the_largest_groups_are_shown() -> None:
    shown = page(dead(*(f"reason {n}" for n in range(GROUPS + 5))))
    assert shown.count("<section") == GROUPS
    assert "There are more reasons" in text_of(shown)


def test_the_outcome_comes_from_the_audit() -> None:
    ledger = dead(AWAY, AWAY)
    record = replay_or_drop(ledger, Operation("replay", "octocat", [1, 2, 3]))
    assert "2 deliveries will be tried again. 1 had changed meanwhile." in text_of(
        page(ledger, view=DeadView(audited=1))
    )
    assert record.seq == 1
    assert "There are none." in text_of(page(ledger))
    replay_or_drop(ledger, Operation("drop", "octocat", [1]))
    assert "1 delivery was dropped." in text_of(page(ledger, view=DeadView(audited=2)))
    for unknown in (0, 3):
        assert "There was nothing to do." in text_of(page(ledger, view=DeadView(audited=unknown)))
    assert 'role="status"' not in page(ledger)


def test_the_other_pages_lead_here() -> None:
    ledger = dead(AWAY)
    assert "/dead" in links(status_page(ledger, (), NOW))
    assert "/dead" not in links(status_page(empty(), (), NOW))
    assert dead_link(AWAY) in links(delivery_page(ledger.delivery(1), NOW))


def test_a_page_without_any_says_so() -> None:
    assert "There are none." in text_of(page(empty()))
