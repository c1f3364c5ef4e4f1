"""Which threads a run answers: it depends on earlier answers, never on what memory knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from bot.domain.post import Post
from bot.domain.thread import Kind, Message, RepositoryAddress, Thread
from bot.github.events import Event
from bot.github.updates import Updates
from bot.pipeline import eligibility
from bot.pipeline.comments import threads_to_answer
from bot.pipeline.eligibility import question_hash, reason_to_pass
from bot.pipeline.fetch import fetch_changes
from bot.pipeline.tools import Facts
from bot.settings.schema import IgnoreSettings, Settings
from tests.pipeline.sample_repository import SampleRepository

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
ADDRESS = RepositoryAddress("octo-org/hello-world")
FRESH = Thread(7, "Crash", "It crashes.", "octocat", NOW - timedelta(hours=1))
OLD = replace(FRESH, created_at=NOW - timedelta(days=30))
OPENED, EDITED, CLOSED = (Event("issues", action, 7) for action in ("opened", "edited", "closed"))
SCHEDULE = Event("schedule")
CREATED = Event("issue_comment", "created", 7, comment_id=5)
PLAIN_COMMENT = Message("hubot", "NONE", NOW, "Me too.", id=5)
IGNORED = "its author is a bot or ignored"
REFERENCE_COMMENT = replace(PLAIN_COMMENT, text="Like #3.")


def answer_record(thread: Thread, state: str = "said", hours: int = 0) -> Post:
    return Post(7, state, NOW - timedelta(hours=hours), question=question_hash(thread, ADDRESS))


def is_due(thread: Thread, event: Event, before: Post | None = None, within: int = 24) -> bool:
    answers = {before.id: before} if before else {}
    run_state = Facts(event, Updates(), NOW, ADDRESS, answers, max_age=timedelta(hours=within))
    return eligibility.is_due(thread, run_state)


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
        (replace(OLD, comments=(PLAIN_COMMENT,)), CREATED, False),
        (replace(OLD, comments=(REFERENCE_COMMENT,)), CREATED, True),
        (replace(OLD, comments=(replace(REFERENCE_COMMENT, is_bot=True),)), CREATED, False),
        (replace(OLD, body="See #3.", comments=(REFERENCE_COMMENT,)), CREATED, False),
        (replace(OLD, comments=(REFERENCE_COMMENT,)), replace(CREATED, action="edited"), False),
        (
            replace(OLD, comments=(REFERENCE_COMMENT, replace(PLAIN_COMMENT, id=6))),
            replace(CREATED, comment_id=6),
            False,
        ),
        (
            replace(OLD, comments=(REFERENCE_COMMENT, replace(PLAIN_COMMENT, id=6))),
            replace(CREATED, comment_id=6, earlier=(5,)),
            True,
        ),
        (
            replace(OLD, comments=(REFERENCE_COMMENT, replace(REFERENCE_COMMENT, id=6))),
            replace(CREATED, comment_id=6, earlier=(5,)),
            True,
        ),
        (OLD, Event("workflow_dispatch", number=7), True),
        (OLD, Event("workflow_dispatch"), False),
    ],
)
def test_when_an_unanswered_thread_is_due(thread: Thread, event: Event, *, expected: bool) -> None:
    assert is_due(thread, event) is expected


@pytest.mark.parametrize("event", [OPENED, EDITED, CREATED, SCHEDULE])
@pytest.mark.parametrize("state", ["said", "silent", "withdrawn", "removed"])
@pytest.mark.parametrize("thread", [FRESH, OLD])
def test_the_same_question_is_answered_once(thread: Thread, state: str, event: Event) -> None:
    assert not is_due(thread, event, answer_record(thread, state))


@pytest.mark.parametrize(
    ("edits", "expected"),
    [
        ({"title": "Crash on start"}, True),
        ({"body": "It hangs."}, True),
        ({"comments": (REFERENCE_COMMENT,)}, True),
        ({"comments": (PLAIN_COMMENT,)}, False),
        ({"labels": ("bug",)}, False),
        ({"updated_at": NOW}, False),
    ],
)
def test_a_changed_question_is_answered_on_its_event_or_while_it_is_fresh(
    edits: dict[str, object], *, expected: bool
) -> None:
    for thread, event in ((FRESH, SCHEDULE), (FRESH, OPENED), (OLD, EDITED), (OLD, CREATED)):
        assert is_due(replace(thread, **edits), event, answer_record(thread)) is expected  # type: ignore[arg-type]
    assert not is_due(replace(OLD, **edits), SCHEDULE, answer_record(OLD))  # type: ignore[arg-type]
    assert not is_due(replace(FRESH, **edits), CLOSED, answer_record(FRESH))  # type: ignore[arg-type]


def test_a_promise_stays_due_for_a_day() -> None:
    assert is_due(OLD, SCHEDULE, answer_record(OLD, "pending", hours=23))
    assert not is_due(OLD, SCHEDULE, answer_record(OLD, "pending", hours=25))
    assert is_due(OLD, SCHEDULE, answer_record(OLD, "pending", hours=25), within=48)


def test_an_answer_in_progress_is_left_to_the_other_run() -> None:
    promised = replace(answer_record(FRESH, "pending"), content="x")
    assert not is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=1)))
    assert not is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=2, microseconds=-1)))
    assert is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=2)))
    assert is_due(FRESH, OPENED, replace(promised, trying_since=NOW - timedelta(minutes=3)))
    assert is_due(FRESH, OPENED, promised)


def test_the_maximum_age_of_an_issue_can_be_set() -> None:
    assert not is_due(FRESH, SCHEDULE, within=1)
    assert is_due(OLD, SCHEDULE, within=24 * 31)


def test_the_issue_of_the_event_comes_first_then_the_oldest(sample: SampleRepository) -> None:
    first, second, third = (sample.github.open_issue("monalisa", f"Ink {turn}", "Dry.") for turn in range(3))
    memory = sample.memory()
    run = sample.tools(memory)
    facts = fetch_changes(Event("issues", "opened", second), run)
    memory.stage(facts.changes)
    threads = [thread.id for thread in threads_to_answer(facts, run)]
    assert [number for number in threads if number in (first, second, third)] == [second, first, third]
    memory.close()


def test_a_question_consists_of_its_text_and_its_references() -> None:
    referring = replace(FRESH, body="#1 and #2")
    repeated = replace(referring, comments=(replace(REFERENCE_COMMENT, text="#2"),))
    assert question_hash(referring, ADDRESS) == question_hash(repeated, ADDRESS)
    assert question_hash(FRESH, ADDRESS) != question_hash(replace(FRESH, comments=(REFERENCE_COMMENT,)), ADDRESS)
    assert len(question_hash(replace(FRESH, body="\ud800"), ADDRESS)) == 16


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
        (replace(FRESH, state="closed"), Settings(), "it is already closed"),
        (replace(FRESH, locked=True), Settings(), "the conversation is locked"),
    ],
)
def test_the_reason_why_a_thread_is_never_answered(thread: Thread, settings: Settings, reason: str) -> None:
    assert reason_to_pass(thread, settings) == reason
