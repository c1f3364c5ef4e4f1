"""Reactions to our comments, as collected by a run that nobody waits for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.changes import AnswerRecord, Changes
from bot.github.client import GitHubClient
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.feedback import MAX_READS, collect_feedback, with_reactions
from bot.pipeline.outbox import DELETED
from tests.fakes.fixtures import github
from tests.fakes.github import FakeGitHub
from tests.github.conftest import client

__all__ = ["client", "github"]

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
BOT = "github-actions[bot]"


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(FolderStore(tmp_path / "store")).open()


def post_answers(github: FakeGitHub, memory: Memory, count: int = 1, **fields: Any) -> list[AnswerRecord]:
    """Open issues with one comment of ours each, an hour apart, the last one an hour ago, and store the answers."""
    records = []
    for turn in range(count):
        number = github.open_issue("octocat", f"Crash {turn}")
        comment = github.comment(number, BOT, "Seen before: #1")
        moment = NOW - timedelta(hours=count - turn)
        record = AnswerRecord(number, "said", moment, "", "x", comment, ((1, 0.7),), "q")
        records.append(replace(record, **fields))
    memory.stage(Changes(answers=tuple(records)))
    memory.commit("said")
    return records


def react(github: FakeGitHub, answer: AnswerRecord, *contents: str) -> None:
    assert isinstance(answer.id, int)
    for turn, content in enumerate(contents):
        github.react(answer.id, f"reader{turn}", content, answer.comment_id)


def test_thumbs_are_counted_and_nothing_else_of_an_answer_changes(
    github: FakeGitHub, client: GitHubClient, memory: Memory
) -> None:
    liked, disliked, _ = post_answers(github, memory, 3)
    react(github, liked, "+1", "+1", "heart", "-1")
    react(github, disliked, "-1", "confused")
    updated = collect_feedback(memory, client, NOW)
    assert set(updated) == {replace(liked, ups=2, downs=1, revised_at=NOW), replace(disliked, downs=1, revised_at=NOW)}
    memory.stage(Changes(answers=updated))
    assert memory.commit("feedback")
    assert collect_feedback(memory, client, NOW) == ()


def test_thumbs_that_were_taken_back_no_longer_count(github: FakeGitHub, client: GitHubClient, memory: Memory) -> None:
    (answer,) = post_answers(github, memory, ups=2, downs=1)
    updated = collect_feedback(memory, client, NOW)
    assert updated == (replace(answer, ups=0, downs=0, revised_at=NOW),)
    memory.stage(Changes(answers=updated))
    memory.commit("feedback")
    assert memory.state.answers([answer.id])[answer.id].ups == 0


def test_a_comment_deleted_by_a_person_is_recorded_as_removed(
    github: FakeGitHub, client: GitHubClient, memory: Memory
) -> None:
    deleted, standing = post_answers(github, memory, 2)
    assert deleted.comment_id is not None
    github.delete_comment(deleted.comment_id, by="octocat")
    react(github, standing, "+1")
    assert set(collect_feedback(memory, client, NOW)) == {
        replace(deleted, state="removed", reason=DELETED, revised_at=NOW),
        replace(standing, ups=1, revised_at=NOW),
    }


@pytest.mark.parametrize(
    "changes",
    [
        {"state": "pending"}, {"state": "silent"}, {"state": "withdrawn"}, {"state": "removed"}, {"comment_id": None},
        {"at": NOW - timedelta(days=14)}, {"at": NOW - timedelta(minutes=9)}, {"at": NOW + timedelta(days=1)},
    ],
)  # fmt: skip
def test_removed_old_and_brand_new_comments_are_not_read(
    github: FakeGitHub, client: GitHubClient, memory: Memory, changes: dict[str, Any]
) -> None:
    post_answers(github, memory, **changes)
    assert collect_feedback(memory, client, NOW) == ()
    assert client.reads == 0


@pytest.mark.parametrize(
    ("age", "reads"),
    [
        (timedelta(minutes=10, microseconds=-1), 0),
        (timedelta(minutes=10), 1),
        (timedelta(days=14, microseconds=-1), 1),
        (timedelta(days=14), 0),
    ],
)
def test_a_comment_is_read_from_its_tenth_minute_for_two_weeks(
    github: FakeGitHub, client: GitHubClient, memory: Memory, age: timedelta, reads: int
) -> None:
    post_answers(github, memory, at=NOW - age)
    collect_feedback(memory, client, NOW)
    assert client.reads == reads


def test_only_the_newest_of_many_comments_are_read(github: FakeGitHub, client: GitHubClient, memory: Memory) -> None:
    answers = post_answers(github, memory, MAX_READS + 5)
    for answer in answers:
        react(github, answer, "+1")
    updated = collect_feedback(memory, client, NOW)
    assert client.reads == MAX_READS
    assert [answer.id for answer in updated] == [answer.id for answer in reversed(answers[5:])]


@pytest.mark.parametrize("kind", ["401", "primary403", "secondary403"])
def test_a_refusal_by_github_keeps_the_feedback_read_before(
    github: FakeGitHub, client: GitHubClient, memory: Memory, kind: str
) -> None:
    answers = post_answers(github, memory, 4)
    for answer in answers:
        react(github, answer, "-1")
    github.faults.add("GET *", kind, times=None, after=2)
    assert [answer.id for answer in collect_feedback(memory, client, NOW)] == [answers[3].id, answers[2].id]
    assert client.reads == 3


ANSWER = AnswerRecord(7, "said", NOW, comment_id=5, ups=1, downs=1)


@pytest.mark.parametrize(
    ("reactions", "counts"),
    [
        ({"+1": 3, "-1": 2}, (3, 2)),
        ({"+1": "3", "-1": True}, (0, 0)),
        ({"+1": -1, "-1": 10**400}, (0, 0)),
        ({"+1": [], "-1": None}, (0, 0)),
        ({}, (0, 0)),
        (None, (1, 1)),
        ([3, 2], (1, 1)),
        ("+1", (1, 1)),
    ],
)
def test_malformed_counts_are_ignored(reactions: Any, counts: Sequence[int]) -> None:
    updated = with_reactions(ANSWER, {"reactions": reactions})
    assert (updated.ups, updated.downs) == tuple(counts)


def test_slow_feedback_does_not_undo_what_happened_meanwhile(
    github: FakeGitHub, client: GitHubClient, memory: Memory, tmp_path: Path
) -> None:
    answers = post_answers(github, memory, 3)
    for answer in answers:
        react(github, answer, "+1")
    removed, reanswered, unchanged = answers
    slow, fast = (Memory(FolderStore(tmp_path / "store")).open() for _ in range(2))
    slow.stage(Changes(answers=collect_feedback(slow, client, NOW)))
    later = replace(reanswered, state="pending", at=NOW, text_hash="y", comment_id=None)
    fast.stage(Changes(answers=(replace(removed, state="removed"), later)))
    assert fast.commit("meanwhile")
    assert slow.commit("feedback")
    stored = Memory(FolderStore(tmp_path / "store")).open().state.answers([answer.id for answer in answers])
    assert stored == {
        removed.id: replace(removed, state="removed", ups=1),
        reanswered.id: later,
        unchanged.id: replace(unchanged, ups=1, revised_at=NOW),
    }
