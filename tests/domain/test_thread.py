"""Threads: what they were at an earlier time, and when they last changed."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields, replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.domain.thread import Kind, Message, OutcomeKind, Thread, TimelineEvent, Tombstone

START = datetime(2020, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def message(hours: float, edited: float | None = None, role: str = "NONE") -> Message:
    return Message("hubot", role, at(hours), "text", updated_at=None if edited is None else at(edited))


CLOSED = Thread(
    7, "It crashes", "Always", "octocat", START, state="closed", state_reason="completed",
    closed_at=at(5), closed_by="hubot", comments=(message(1), message(4), message(6)),
    events=(TimelineEvent("closed", at(5)), TimelineEvent("referenced", at(7))),
)  # fmt: skip


def test_a_thread_as_of_a_moment_knows_nothing_that_came_later() -> None:
    before = CLOSED.as_of(at(4))
    assert (before.state, before.state_reason, before.closed_at, before.closed_by) == ("open", None, None, None)
    assert not before.is_closed
    assert before.comments == (message(1), message(4))
    assert before.events == ()
    assert (before.id, before.title, before.body, before.created_at) == (7, "It crashes", "Always", START)


def test_a_thread_as_of_its_closing_is_closed() -> None:
    then = CLOSED.as_of(at(5))
    assert then.is_closed
    assert (then.closed_at, then.closed_by, then.state_reason) == (at(5), "hubot", "completed")
    assert [event.name for event in then.events] == ["closed"]


def test_a_thread_as_of_its_creation_is_its_opening_text() -> None:
    assert CLOSED.as_of(START).comments == ()
    assert CLOSED.as_of(START).revised_at == START


def test_the_messages_of_a_thread_begin_with_its_opening_text() -> None:
    by_bot = replace(CLOSED, is_bot=True)
    assert by_bot.messages == (Message("octocat", "NONE", START, "Always", is_bot=True), *CLOSED.comments)


@given(st.floats(0, 9), st.floats(0, 9))
def test_looking_back_twice_is_looking_back_to_the_earlier_moment(first: float, second: float) -> None:
    assert CLOSED.as_of(at(first)).as_of(at(second)) == CLOSED.as_of(at(min(first, second)))


def timeline(*names_and_hours: tuple[str, float]) -> tuple[TimelineEvent, ...]:
    return tuple(TimelineEvent(name, at(hours), actor=f"{name} at {hours:g}") for name, hours in names_and_hours)


REOPENED = replace(
    CLOSED,
    events=timeline(("closed", 1), ("reopened", 2), ("labeled", 2.5), ("closed", 3), ("reopened", 4), ("closed", 5)),
)


def test_a_thread_flips_each_time_it_is_closed_or_reopened() -> None:
    assert REOPENED.state_changes == (at(1), at(2), at(3), at(4), at(5))
    assert CLOSED.state_changes == (at(5),)
    assert replace(CLOSED, state="open", closed_at=None, events=()).state_changes == ()


@pytest.mark.parametrize(
    ("state", "events", "state_changes"),
    [
        ("closed", (), (5,)),
        ("closed", (("closed", 2),), (5,)),
        ("closed", (("closed", 4.9),), (5,)),
        ("closed", (("closed", 2), ("reopened", 3)), (2, 3, 5)),
        ("closed", (("closed", 2), ("reopened", 7)), (5,)),
        ("closed", (("closed", 2), ("reopened", 5.5), ("closed", 6)), (5,)),
        ("closed", (("closed", 5), ("closed", 2), ("reopened", 3)), (2, 3, 5)),
        ("closed", (("reopened", 1), ("closed", 2), ("closed", 3), ("reopened", 4)), (2, 4, 5)),
        ("open", (("closed", 2),), ()),
        ("open", (("closed", 2), ("reopened", 3)), (2, 3)),
        ("open", (("closed", 2), ("reopened", 3), ("closed", 4)), (2, 3)),
    ],
)
def test_missing_events_are_inferred_from_the_state_and_the_time_of_closing(
    state: str, events: tuple[tuple[str, float], ...], state_changes: tuple[float, ...]
) -> None:
    thread = replace(CLOSED, state=state, closed_at=at(5) if state == "closed" else None, events=timeline(*events))
    assert thread.state_changes == tuple(map(at, state_changes))


def test_a_closed_thread_with_an_unknown_time_of_closing_has_no_flips() -> None:
    assert replace(CLOSED, closed_at=None, events=()).state_changes == ()


def test_a_reopened_thread_was_alternately_closed_and_open() -> None:
    then = {hours: REOPENED.as_of(at(hours)) for hours in (0.5, 1, 2, 3.5, 4, 6)}
    assert [past.state for past in then.values()] == ["open", "closed", "open", "closed", "open", "closed"]
    assert [past.closed_at for past in then.values()] == [None, at(1), None, at(3), None, at(5)]
    closers = ["closed at 1", "closed at 3", "hubot"]
    assert [past.closed_by for past in then.values() if past.is_closed] == closers
    assert [past.state_reason for past in then.values()] == [None] * 5 + ["completed"]


def test_a_thread_as_of_a_moment_has_no_reactions_to_comments_and_no_later_edit() -> None:
    reactions = (("+1", 3),)
    comments = (replace(message(1, edited=2), reactions=reactions), replace(message(1, edited=8), reactions=reactions))
    then = replace(CLOSED, updated_at=at(9), comments=comments).as_of(at(4))
    assert then.updated_at is None
    assert then.comments == (message(1, edited=2), message(1))
    assert then.revised_at == at(2)


STORY = st.lists(st.tuples(st.sampled_from(["closed", "reopened", "labeled"]), st.integers(1, 8)), max_size=7)


@example([("closed", 1), ("reopened", 1), ("closed", 1), ("reopened", 2)], None, 1, 0)
@given(STORY, st.one_of(st.none(), st.integers(1, 8)), st.integers(0, 9), st.integers(0, 9))
def test_whatever_happened_a_thread_as_of_a_moment_has_exactly_the_earlier_flips(
    story: list[tuple[str, float]], closed: int | None, first: int, second: int
) -> None:
    thread = replace(
        CLOSED,
        state="open" if closed is None else "closed",
        closed_at=None if closed is None else at(closed),
        events=timeline(*story),
    )
    then = thread.as_of(at(first))
    assert list(thread.state_changes) == sorted(thread.state_changes)
    assert then.state_changes == tuple(flip for flip in thread.state_changes if flip <= at(first))
    assert then.is_closed == (len(then.state_changes) % 2 == 1)
    assert then.as_of(at(second)) == thread.as_of(at(min(first, second)))


@given(st.floats(0, 9))
def test_a_thread_as_of_a_moment_was_last_revised_by_then(hours: float) -> None:
    assert START <= CLOSED.as_of(at(hours)).revised_at <= at(hours)


def test_a_thread_without_an_update_time_was_revised_when_something_last_happened() -> None:
    assert replace(CLOSED, comments=(), closed_at=None).revised_at == START
    assert replace(CLOSED, comments=()).revised_at == at(5)
    assert CLOSED.revised_at == at(6)
    assert replace(CLOSED, comments=(message(1, edited=8), message(6))).revised_at == at(8)


def test_githubs_own_update_time_overrides_everything_else() -> None:
    assert replace(CLOSED, updated_at=at(2)).revised_at == at(2)


def test_a_tombstone_was_revised_when_the_thread_disappeared() -> None:
    assert Tombstone(7, at(3)).revised_at == at(3)


@pytest.mark.parametrize("role", ["OWNER", "MEMBER", "COLLABORATOR"])
def test_whoever_can_write_is_a_maintainer(role: str) -> None:
    assert message(1, role=role).by_maintainer


@pytest.mark.parametrize("role", ["NONE", "CONTRIBUTOR", "FIRST_TIMER", "MANNEQUIN", "owner", ""])
def test_nobody_else_is_a_maintainer(role: str) -> None:
    assert not message(1, role=role).by_maintainer


def test_kinds_are_written_as_their_words() -> None:
    assert [str(kind) for kind in Kind] == ["issue", "pull", "page", "session", "discussion"]
    assert f"{OutcomeKind.NOT_PLANNED}" == "not planned"


def test_a_thread_cannot_be_changed() -> None:
    for field in fields(CLOSED):
        with pytest.raises(FrozenInstanceError):
            setattr(CLOSED, field.name, None)
    assert hash(CLOSED) == hash(replace(CLOSED))
