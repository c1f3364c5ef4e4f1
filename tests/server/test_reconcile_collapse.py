"""Deliveries that wait together become the events that are worth handling."""

from __future__ import annotations

from bot.github.events import Event
from bot.server.model import Delivery, RepositoryKey
from bot.server.reconcile import coalesced


def gathered(*events: Event) -> list[tuple[Event, list[int]]]:
    rows = [
        Delivery(seq, f"1:{seq}", RepositoryKey(1, 2), event, "", True, "working", 0)
        for seq, event in enumerate(events, 1)
    ]
    return [(group.event, [each.seq for each in group.deliveries]) for group in coalesced(rows)]


def issue(action: str, number: int = 5) -> Event:
    return Event("issues", action, number)


def comment(key: int, number: int = 5, action: str = "created") -> Event:
    return Event("issue_comment", action, number, comment_id=key)


def test_what_happened_to_an_issue_is_one_event_that_may_be_answered() -> None:
    found = gathered(issue("opened"), issue("labeled"), issue("edited"), issue("closed"))
    assert found == [(issue("edited"), [1, 2, 3, 4])]


def test_comments_are_one_event_that_names_them_all() -> None:
    found = gathered(comment(11), comment(12), comment(13))
    expected = Event("issue_comment", "created", 5, comment_id=13, earlier=(11, 12))
    assert found == [(expected, [1, 2, 3])]


def test_an_opened_issue_is_no_less_for_a_comment_that_came_after_it() -> None:
    assert [event for event, _ in gathered(issue("opened"), comment(11))] == [issue("opened"), comment(11)]


def test_what_is_gone_is_only_gone() -> None:
    assert gathered(issue("opened"), comment(11), issue("deleted")) == [(issue("deleted"), [1, 2, 3])]


def test_issues_come_in_the_order_of_their_first_deliveries_and_looking_again_comes_last() -> None:
    found = gathered(Event("catch-up"), issue("opened", 9), issue("opened", 3), Event("push"), issue("closed", 9))
    assert [event.number or event.name for event, _ in found] == [9, 3, "push", "catch-up"]
    assert [seqs for _, seqs in found] == [[2, 5], [3], [4], [1]]


def test_an_edited_comment_brings_nobody_an_answer() -> None:
    assert gathered(comment(11, action="edited")) == [(comment(11, action="edited"), [1])]
