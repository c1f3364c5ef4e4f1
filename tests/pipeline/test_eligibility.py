"""Whom a run answers: by what was answered before, never by what was remembered."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.changes import AnswerRecord
from bot.domain.thread import Kind, Message, RepositoryAddress, Thread
from bot.github.events import Event
from bot.github.updates import Updates
from bot.pipeline.eligibility import due_threads, question_hash, reason_to_pass
from bot.pipeline.run_context import RunState
from bot.settings.schema import IgnoreSettings, Settings

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
PLACE = RepositoryAddress("octo-org/hello-world")
FRESH = Thread(7, "Crash", "It crashes.", "octocat", NOW - timedelta(hours=1))
OLD = replace(FRESH, created_at=NOW - timedelta(days=30))
OPENED, EDITED, CLOSED = (Event("issues", action, 7) for action in ("opened", "edited", "closed"))
SCHEDULE = Event("schedule")
CREATED = Event("issue_comment", "created", 7, comment_id=5)
REMARK = Message("hubot", "NONE", NOW, "Me too.", id=5)
IGNORED = "its author is a bot or ignored"
POINTER = replace(REMARK, text="Like #3.")


def said(thread: Thread, state: str = "said", hours: int = 0) -> AnswerRecord:
    return AnswerRecord(7, state, NOW - timedelta(hours=hours), question=question_hash(thread, PLACE))


def is_due(thread: Thread, event: Event, before: AnswerRecord | None = None, within: int = 24) -> bool:
    known = {before.id: before} if before else {}
    look = RunState(event, Updates(), NOW, PLACE, known, within=timedelta(hours=within))
    return due_threads([thread], look) == [thread]


@pytest.mark.parametrize(
    ("thread", "event", "expected"),
    [
        (FRESH, OPENED, True),
        (FRESH, SCHEDULE, True),
        (FRESH, CLOSED, True),
        (FRESH, Event("push"), True),
        (FRESH, replace(OPENED, number=8), True),
        (OLD, OPENED, True),
        (OLD, EDITED, True),
        (OLD, SCHEDULE, False),
        (OLD, CLOSED, False),
        (OLD, replace(OPENED, number=8), False),
        (replace(OLD, comments=(REMARK,)), CREATED, False),
        (replace(OLD, comments=(POINTER,)), CREATED, True),
        (replace(OLD, comments=(replace(POINTER, is_bot=True),)), CREATED, False),
        (replace(OLD, body="See #3.", comments=(POINTER,)), CREATED, False),
        (replace(OLD, comments=(POINTER,)), replace(CREATED, action="edited"), False),
        (replace(OLD, comments=(POINTER, replace(REMARK, id=6))), replace(CREATED, comment_id=6), False),
        (
            replace(OLD, comments=(POINTER, replace(REMARK, id=6))),
            replace(CREATED, comment_id=6, earlier=(5,)),
            True,
        ),
        (
            replace(OLD, comments=(POINTER, replace(POINTER, id=6))),
            replace(CREATED, comment_id=6, earlier=(5,)),
            True,
        ),
        (OLD, Event("workflow_dispatch", number=7), True),
        (OLD, Event("workflow_dispatch"), False),
    ],
)
def test_a_thread_that_was_never_answered(thread: Thread, event: Event, *, expected: bool) -> None:
    assert is_due(thread, event) is expected


@pytest.mark.parametrize("event", [OPENED, EDITED, CREATED, SCHEDULE])
@pytest.mark.parametrize("state", ["said", "silent", "withdrawn", "removed"])
@pytest.mark.parametrize("thread", [FRESH, OLD])
def test_the_same_question_is_answered_once(thread: Thread, state: str, event: Event) -> None:
    assert not is_due(thread, event, said(thread, state))


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"title": "Crash on start"}, True),
        ({"body": "It hangs."}, True),
        ({"comments": (POINTER,)}, True),
        ({"comments": (REMARK,)}, False),
        ({"labels": ("bug",)}, False),
        ({"updated_at": NOW}, False),
    ],
)
def test_another_question_is_answered_when_somebody_asks_or_it_is_fresh(
    changed: dict[str, object], *, expected: bool
) -> None:
    for thread, event in ((FRESH, SCHEDULE), (FRESH, OPENED), (OLD, EDITED), (OLD, CREATED)):
        assert is_due(replace(thread, **changed), event, said(thread)) is expected  # type: ignore[arg-type]
    assert not is_due(replace(OLD, **changed), SCHEDULE, said(OLD))  # type: ignore[arg-type]
    assert not is_due(replace(FRESH, **changed), CLOSED, said(FRESH))  # type: ignore[arg-type]


def test_a_promise_is_kept_for_a_day() -> None:
    assert is_due(OLD, SCHEDULE, said(OLD, "pending", hours=23))
    assert not is_due(OLD, SCHEDULE, said(OLD, "pending", hours=25))
    assert is_due(OLD, SCHEDULE, said(OLD, "pending", hours=25), within=48)


def test_what_another_run_is_about_to_say_is_left_to_it() -> None:
    promised = replace(said(FRESH, "pending"), text_hash="x")
    assert not is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=1)))
    assert not is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=2, microseconds=-1)))
    assert is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=2)))
    assert is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=3)))
    assert is_due(FRESH, OPENED, promised)


def test_how_old_an_issue_may_be_can_be_set() -> None:
    assert not is_due(FRESH, SCHEDULE, within=1)
    assert is_due(OLD, SCHEDULE, within=24 * 31)


def test_the_oldest_comes_first() -> None:
    threads = [replace(FRESH, id=number, created_at=NOW - timedelta(minutes=number)) for number in (3, 9, 5)]
    assert [thread.id for thread in due_threads(threads, RunState(SCHEDULE, Updates(), NOW, PLACE))] == [9, 5, 3]


def test_a_question_is_the_text_and_what_it_points_at() -> None:
    pointing = replace(FRESH, body="#1 and #2")
    again = replace(pointing, comments=(replace(POINTER, text="#2"),))
    assert question_hash(pointing, PLACE) == question_hash(again, PLACE)
    assert question_hash(FRESH, PLACE) != question_hash(replace(FRESH, comments=(POINTER,)), PLACE)
    assert len(question_hash(replace(FRESH, body="\ud800"), PLACE)) == 16


@pytest.mark.parametrize(
    ("thread", "settings", "reason"),
    [
        (FRESH, Settings(), ""),
        (FRESH, Settings(mode="off"), "the mode is off"),
        (replace(FRESH, kind=Kind.PULL), Settings(), "pull requests are not answered"),
        (replace(FRESH, kind=Kind.PULL), Settings(pulls=True), ""),
        (replace(FRESH, is_bot=True), Settings(), IGNORED),
        (FRESH, Settings(ignore=IgnoreSettings(authors=("OctoCat",))), IGNORED),
        (FRESH, Settings(ignore=IgnoreSettings(authors=("octo",))), ""),
        (replace(FRESH, author="ci[bot]"), Settings(ignore=IgnoreSettings(authors=("ci[bot]",))), IGNORED),
        (FRESH, Settings(ignore=IgnoreSettings(people=("octocat",))), "its author asked to be left alone"),
        (
            replace(FRESH, labels=("A/[x]",)),
            Settings(ignore=IgnoreSettings(labels=("a/[x]",))),
            "it carries an ignored label",
        ),
        (replace(FRESH, labels=("kind/x",)), Settings(ignore=IgnoreSettings(labels=("kind/[x]", "*"))), ""),
        (replace(FRESH, state="closed"), Settings(), "it is closed already"),
        (replace(FRESH, locked=True), Settings(), "the conversation is locked"),
    ],
)
def test_why_a_thread_is_never_answered(thread: Thread, settings: Settings, reason: str) -> None:
    assert reason_to_pass(thread, settings) == reason
