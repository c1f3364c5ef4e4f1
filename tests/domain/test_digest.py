"""What the index holds of a thread, and what it says about a moment in the past."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from bot.domain.digest import IndexEntry
from bot.domain.thread import Kind, Outcome, Thread, TimelineEvent
from bot.index.document import entry_of

START = datetime(2020, 1, 1, tzinfo=UTC)


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


ENTRY = IndexEntry(7, Kind.ISSUE, "It crashes", "octocat", "closed", START, at(9), state_changes=(at(2), at(4), at(6)))


def test_an_entry_knows_whether_its_thread_was_open_at_a_moment() -> None:
    assert [ENTRY.open_at(at(hours)) for hours in (0, 1.9, 2, 3, 4, 5, 6, 99)] == [
        *(True, True, False, False, True, True, False, False)
    ]


def test_an_entry_without_a_moment_goes_by_its_state() -> None:
    assert not ENTRY.open_at(None)
    assert replace(ENTRY, state="open", state_changes=()).open_at(None)
    assert replace(ENTRY, state="open", state_changes=()).open_at(at(9))


def test_an_entry_knows_since_when_its_thread_was_closed() -> None:
    since = [ENTRY.closed_since(at(hours)) for hours in (1, 2, 3, 4, 5, 6, 99)]
    assert since == [None, at(2), at(2), None, None, at(6), at(6)]


@given(st.lists(st.integers(0, 9), max_size=6).map(sorted), st.integers(0, 9))
def test_a_thread_is_open_exactly_when_it_is_closed_since_no_moment(state_changes: list[int], hours: int) -> None:
    entry = replace(ENTRY, state_changes=tuple(map(at, state_changes)))
    assert entry.open_at(at(hours)) is (entry.closed_since(at(hours)) is None)


def test_a_duplicate_is_known_from_the_moment_of_its_mark_on() -> None:
    entry = replace(ENTRY, duplicate_of=3, duplicate_at=at(4))
    assert [entry.duplicate_of_at(at(hours)) for hours in (3.9, 4, 5)] == [None, 3, 3]
    assert entry.duplicate_of_at(None) == 3


def test_a_duplicate_without_a_date_is_known_only_today() -> None:
    entry = replace(ENTRY, duplicate_of="ABC-1")
    assert entry.duplicate_of_at(None) == "ABC-1"
    assert entry.duplicate_of_at(at(99)) is None


STORY = st.lists(st.tuples(st.sampled_from(["closed", "reopened"]), st.integers(1, 8)), max_size=6)


@given(STORY, st.one_of(st.none(), st.integers(1, 8)), st.integers(0, 9))
def test_an_entry_agrees_with_the_thread_as_of_any_moment(
    story: list[tuple[str, int]], closed: int | None, hours: int
) -> None:
    thread = Thread(
        *(7, "It crashes", "Always", "octocat", START),
        state="open" if closed is None else "closed",
        closed_at=None if closed is None else at(closed),
        events=tuple(TimelineEvent(name, at(when)) for name, when in story),
    )
    entry, then = entry_of(thread, Outcome()), thread.as_of(at(hours))
    assert entry.open_at(at(hours)) is not then.is_closed
    assert entry.closed_since(at(hours)) == then.closed_at
