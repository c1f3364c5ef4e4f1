"""What readers think of our comments, as a run that nobody waits for collects it."""

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


def answered(github: FakeGitHub, memory: Memory, count: int = 1, **rest: Any) -> list[AnswerRecord]:
    """Issues with a comment of ours each, an hour apart, the newest an hour ago; memory knows of them."""
    said = []
    for turn in range(count):
        number = github.open_issue("octocat", f"Crash {turn}")
        comment = github.comment(number, BOT, "Seen before: #1")
        moment = NOW - timedelta(hours=count - turn)
        one = AnswerRecord(number, "said", moment, "", "x", comment, ((1, 0.7),), "q")
        said.append(replace(one, **rest))
    memory.stage(Changes(answers=tuple(said)))
    memory.commit("said")
    return said


def react(github: FakeGitHub, said: AnswerRecord, *contents: str) -> None:
    assert isinstance(said.id, int)
    for turn, content in enumerate(contents):
        github.react(said.id, f"reader{turn}", content, said.comment_id)


def test_thumbs_are_counted_and_nothing_else_of_an_answer_changes(
    github: FakeGitHub, client: GitHubClient, memory: Memory
) -> None:
    liked, disliked, _ = answered(github, memory, 3)
    react(github, liked, "+1", "+1", "heart", "-1")
    react(github, disliked, "-1", "confused")
    found = collect_feedback(memory, client, NOW)
    assert set(found) == {replace(liked, ups=2, downs=1), replace(disliked, downs=1)}
    memory.stage(Changes(answers=found))
    assert memory.commit("feedback")
    assert collect_feedback(memory, client, NOW) == ()


def test_thumbs_that_were_taken_back_no_longer_count(github: FakeGitHub, client: GitHubClient, memory: Memory) -> None:
    (said,) = answered(github, memory, ups=2, downs=1)
    found = collect_feedback(memory, client, NOW)
    assert found == (replace(said, ups=0, downs=0),)
    memory.stage(Changes(answers=found))
    memory.commit("feedback")
    assert memory.state.answers([said.id])[said.id].ups == 0


def test_a_comment_that_a_person_deleted_is_known_as_removed(
    github: FakeGitHub, client: GitHubClient, memory: Memory
) -> None:
    gone, stands = answered(github, memory, 2)
    assert gone.comment_id is not None
    github.delete_comment(gone.comment_id, by="octocat")
    react(github, stands, "+1")
    assert set(collect_feedback(memory, client, NOW)) == {
        replace(gone, state="removed", reason=DELETED),
        replace(stands, ups=1),
    }


@pytest.mark.parametrize(
    "passed",
    [
        {"state": "pending"}, {"state": "silent"}, {"state": "withdrawn"}, {"state": "removed"}, {"comment_id": None},
        {"at": NOW - timedelta(days=14)}, {"at": NOW - timedelta(minutes=9)}, {"at": NOW + timedelta(days=1)},
    ],
)  # fmt: skip
def test_only_comments_that_stand_and_are_neither_old_nor_just_written_are_looked_at(
    github: FakeGitHub, client: GitHubClient, memory: Memory, passed: dict[str, Any]
) -> None:
    answered(github, memory, **passed)
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
def test_a_comment_is_looked_at_from_its_tenth_minute_for_two_weeks(
    github: FakeGitHub, client: GitHubClient, memory: Memory, age: timedelta, reads: int
) -> None:
    answered(github, memory, at=NOW - age)
    collect_feedback(memory, client, NOW)
    assert client.reads == reads


def test_of_many_the_newest_are_looked_at(github: FakeGitHub, client: GitHubClient, memory: Memory) -> None:
    said = answered(github, memory, MAX_READS + 5)
    for one in said:
        react(github, one, "+1")
    found = collect_feedback(memory, client, NOW)
    assert client.reads == MAX_READS
    assert [one.id for one in found] == [one.id for one in reversed(said[5:])]


@pytest.mark.parametrize("kind", ["401", "primary403", "secondary403"])
def test_when_github_cannot_be_asked_what_was_learned_is_kept(
    github: FakeGitHub, client: GitHubClient, memory: Memory, kind: str
) -> None:
    said = answered(github, memory, 4)
    for one in said:
        react(github, one, "-1")
    github.faults.add("GET *", kind, times=None, after=2)
    assert [one.id for one in collect_feedback(memory, client, NOW)] == [said[3].id, said[2].id]
    assert client.reads == 3


SAID = AnswerRecord(7, "said", NOW, comment_id=5, ups=1, downs=1)


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
def test_counts_that_are_none_do_not_count(reactions: Any, counts: Sequence[int]) -> None:
    found = with_reactions(SAID, {"reactions": reactions})
    assert (found.ups, found.downs) == tuple(counts)


def test_a_count_that_was_slow_does_not_undo_what_happened_meanwhile(
    github: FakeGitHub, client: GitHubClient, memory: Memory, tmp_path: Path
) -> None:
    said = answered(github, memory, 3)
    for one in said:
        react(github, one, "+1")
    removed, again, kept = said
    slow, fast = (Memory(FolderStore(tmp_path / "store")).open() for _ in range(2))
    slow.stage(Changes(answers=collect_feedback(slow, client, NOW)))
    later = replace(again, state="pending", at=NOW, text_hash="y", comment_id=None)
    fast.stage(Changes(answers=(replace(removed, state="removed"), later)))
    assert fast.commit("meanwhile")
    assert slow.commit("feedback")
    held = Memory(FolderStore(tmp_path / "store")).open().state.answers([one.id for one in said])
    assert held == {
        removed.id: replace(removed, state="removed", ups=1),
        again.id: later,
        kept.id: replace(kept, ups=1),
    }
