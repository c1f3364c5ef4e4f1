"""From a thread to its document: the entry as of any moment, the terms by field, the vectors."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from bot.domain.thread import Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.index.document import bare_document, document_of, entry_of
from bot.reading.digest import digest
from tests.memory.samples import START, at, issue


def closed(*events: tuple[str, float], **fields: object) -> Thread:
    """An issue that was closed after five hours."""
    timeline = tuple(TimelineEvent(name, at(hours)) for name, hours in events)
    thread = issue(7, 9, "The login crashes", state="closed", closed_at=at(5), closed_by="hubot", events=timeline)
    return replace(thread, **fields)  # type: ignore[arg-type]


def stated(original: int | str | None, moment: datetime | None = None) -> Outcome:
    return Outcome(OutcomeKind.DUPLICATE, at=moment, duplicate_of=original)


def test_an_entry_holds_what_ranking_needs() -> None:
    thread = closed(labels=("bug",))
    entry = entry_of(thread, Outcome())
    assert (entry.id, entry.kind, entry.title, entry.author) == (7, thread.kind, thread.title, "octocat")
    assert (entry.state, entry.labels) == ("closed", ("bug",))
    assert (entry.created_at, entry.updated_at) == (START, at(9))
    assert entry.length == len(thread.title) + len(thread.body)
    assert (entry.duplicate_of, entry.duplicate_at) == (None, None)


def test_an_entry_holds_when_the_thread_was_closed_and_reopened() -> None:
    events = (("closed", 1), ("reopened", 2), ("closed", 5))
    assert entry_of(closed(*events), Outcome()).state_changes == (at(1), at(2), at(5))
    assert entry_of(closed(*events[:2], state="open", closed_at=None), Outcome()).state_changes == (at(1), at(2))
    assert entry_of(issue(7), Outcome()).state_changes == ()


@pytest.mark.parametrize(("stated_hours", "known_hours"), [(None, 5), (3, 5), (5, 5), (8, 8)])
def test_a_duplicate_is_known_once_it_was_stated_and_the_thread_was_closed(
    stated_hours: float | None, known_hours: float
) -> None:
    entry = entry_of(closed(), stated(3, None if stated_hours is None else at(stated_hours)))
    assert (entry.duplicate_of, entry.duplicate_at) == (3, at(known_hours))
    assert [entry.duplicate_of_at(at(known_hours - 0.1)), entry.duplicate_of_at(at(known_hours))] == [None, 3]


def test_an_open_duplicate_has_no_moment_since_which_it_is_known() -> None:
    entry = entry_of(issue(7, role="MEMBER"), stated(3, at(2)))
    assert (entry.duplicate_of, entry.duplicate_at) == (3, None)


def test_an_outcome_that_names_no_thread_makes_no_duplicate() -> None:
    assert entry_of(closed(), stated(None, at(2))).duplicate_at is None


def test_the_outcome_is_read_from_the_thread_if_none_is_given() -> None:
    comment = Message("hubot", "MEMBER", at(5), "Duplicate of #3.", id=1)
    entry = bare_document(closed(comments=(comment,))).entry
    assert (entry.duplicate_of, entry.duplicate_at) == (3, at(5))


@pytest.mark.parametrize(("role", "has_role"), [("", False), ("NONE", True), ("MEMBER", True)])
def test_a_document_records_whether_its_author_has_a_role(role: str, has_role: bool) -> None:
    assert bare_document(issue(7, role=role)).has_role is has_role


@pytest.mark.parametrize(("role", "original"), [("NONE", None), ("", None), ("MEMBER", 3)])
def test_an_unknown_author_alone_makes_no_duplicate(role: str, original: int | None) -> None:
    entry = entry_of(closed(role=role, closed_by="octocat", comments=(), events=()), stated(3))
    assert (entry.duplicate_of, entry.duplicate_of_at(at(9)), entry.duplicate_of_at(None)) == (3, original, original)


def test_a_bare_document_is_the_document_without_notes() -> None:
    thread = closed(
        comments=(Message("hubot", "MEMBER", at(5), "We decided to use Postgres. See src/login.py.", id=1),)
    )
    full = document_of(thread, vector=b"\1\2")
    assert "postgr" in full.notes["decisions"]
    assert bare_document(thread, vector=b"\1\2") == replace(full, notes={})
    assert document_of(thread, digest(thread)) == replace(full, vector=None)
