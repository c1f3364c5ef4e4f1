"""Reactions to our comments, as collected by a run that nobody waits for."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.changes import Changes
from bot.domain.post import Post, Vote
from bot.github.client import GitHubClient
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.draft import DELETED
from bot.pipeline.feedback import MAX_READS, MAX_VOTERS, collect_feedback, count_thumbs, read_opinions
from tests.fakes.github import FakeGitHub
from tests.github.conftest import client

__all__ = ["client"]

NOW = datetime(2026, 1, 20, 12, tzinfo=UTC)
BOT = "github-actions[bot]"
LIKED = (Vote("reader0", True),)


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    return Memory(FolderStore(tmp_path / "store")).open()


def post_answers(github: FakeGitHub, memory: Memory, count: int = 1, **fields: Any) -> list[Post]:
    """Open issues with one comment of ours each, an hour apart, the last one an hour ago, and store the answers."""
    records = []
    for turn in range(count):
        number = github.open_issue("octocat", f"Crash {turn}")
        comment = github.comment(number, BOT, "Seen before: #1")
        moment = NOW - timedelta(hours=count - turn)
        record = Post(number, "said", moment, comment_id=comment, matches=((1, 0.7),), question="q", content="x")
        records.append(replace(record, **fields))
    memory.stage(Changes(posts=tuple(records)))
    memory.commit("said")
    return records


def react(github: FakeGitHub, answer: Post, *contents: str) -> None:
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
    likes = (Vote("reader0", True), Vote("reader1", True), Vote("reader3", False))
    assert set(updated) == {
        replace(liked, votes=likes, revised_at=NOW),
        replace(disliked, votes=(Vote("reader0", False),), revised_at=NOW),
    }
    memory.stage(Changes(posts=updated))
    assert memory.commit("feedback")
    assert collect_feedback(memory, client, NOW) == ()


def test_thumbs_that_were_taken_back_no_longer_count(github: FakeGitHub, client: GitHubClient, memory: Memory) -> None:
    (answer,) = post_answers(github, memory, votes=(Vote("reader0", True), Vote("reader1", False)))
    updated = collect_feedback(memory, client, NOW)
    assert updated == (replace(answer, votes=(), revised_at=NOW),)
    memory.stage(Changes(posts=updated))
    memory.commit("feedback")
    assert memory.state.comments([answer.id])[answer.id].votes == ()


def test_a_comment_deleted_by_a_person_is_recorded_as_removed(
    github: FakeGitHub, client: GitHubClient, memory: Memory
) -> None:
    deleted, standing = post_answers(github, memory, 2)
    assert deleted.comment_id is not None
    github.delete_comment(deleted.comment_id, by="octocat")
    react(github, standing, "+1")
    assert set(collect_feedback(memory, client, NOW)) == {
        replace(deleted, state="removed", reason=DELETED, revised_at=NOW),
        replace(standing, votes=LIKED, revised_at=NOW),
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
    assert client.reads == 2 * MAX_READS + 1, "the votes on each comment, and what its only voter may do"
    assert [answer.id for answer in updated] == [answer.id for answer in reversed(answers[5:])]


@pytest.mark.parametrize("kind", ["401", "primary403", "secondary403"])
def test_a_refusal_by_github_keeps_the_feedback_read_before(
    github: FakeGitHub, client: GitHubClient, memory: Memory, kind: str
) -> None:
    answers = post_answers(github, memory, 4)
    for answer in answers:
        react(github, answer, "-1")
    github.faults.add("GET *", kind, times=None, after=5)
    assert [answer.id for answer in collect_feedback(memory, client, NOW)] == [answers[3].id, answers[2].id]
    assert client.reads == 6


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ({"+1": 3, "-1": 2}, {True: 3, False: 2}),
        ({"+1": "3", "-1": True}, {True: 0, False: 0}),
        ({"+1": -1, "-1": 10**400}, {True: 0, False: 0}),
        ({"+1": [], "-1": None}, {True: 0, False: 0}),
        ({}, {True: 0, False: 0}),
        (None, None),
        ([3, 2], None),
        ("+1", None),
    ],
)
def test_malformed_counts_are_ignored(counts: Any, expected: dict[bool, int] | None) -> None:
    assert count_thumbs({"reactions": counts}) == expected


def reaction(login: object, content: object = "+1", type_: object = "User") -> dict[str, Any]:
    return {"user": {"login": login, "type": type_}, "content": content}


@pytest.mark.parametrize(
    ("reactions", "opinions"),
    [
        ([reaction("Hubot"), reaction("octocat", "-1")], {"hubot": True, "octocat": False}),
        ([reaction("hubot"), reaction("HUBOT", "-1"), reaction("octocat")], {"octocat": True}),
        ([reaction("hubot"), reaction("hubot")], {"hubot": True}),
        ([reaction("some[bot]", "+1", "Bot"), reaction("hubot", "heart"), reaction("hubot", 1)], {}),
        ([reaction(None), reaction(["hubot"], None), {"user": None, "content": "+1"}, {"user": "hubot"}, {}], {}),
    ],
)
def test_each_person_has_one_opinion(reactions: list[dict[str, Any]], opinions: dict[str, bool]) -> None:
    assert read_opinions(reactions) == opinions


def test_the_votes_of_people_with_write_access_are_known(
    github: FakeGitHub, client: GitHubClient, memory: Memory
) -> None:
    github.set_permission("hubot", "write")
    github.set_permission("reader", "read")
    (answer,) = post_answers(github, memory)
    for login in ("reader", "hubot", "stranger"):
        github.react(int(answer.id), login, "-1", answer.comment_id)
    (updated,) = collect_feedback(memory, client, NOW)
    assert updated.votes == (Vote("hubot", False, True), Vote("reader", False), Vote("stranger", False))


def test_a_crowd_of_voters_costs_few_requests(github: FakeGitHub, client: GitHubClient, memory: Memory) -> None:
    answers = post_answers(github, memory, 3)
    for answer in answers:
        for turn in range(MAX_VOTERS + 5):
            github.react(int(answer.id), f"voter{turn}of{answer.id}", "-1", answer.comment_id)
    (updated,) = collect_feedback(memory, client, NOW)
    assert (updated.id, len(updated.votes)) == (answers[2].id, MAX_VOTERS + 5)
    assert client.reads == len(answers) + 1 + MAX_VOTERS
    memory.stage(Changes(posts=(updated,)))
    memory.commit("feedback")
    (updated,) = collect_feedback(memory, client, NOW)
    assert updated.id == answers[1].id, "the next run goes on"


def test_slow_feedback_does_not_undo_what_happened_meanwhile(
    github: FakeGitHub, client: GitHubClient, memory: Memory, tmp_path: Path
) -> None:
    answers = post_answers(github, memory, 3)
    for answer in answers:
        react(github, answer, "+1")
    removed, reanswered, unchanged = answers
    slow, fast = (Memory(FolderStore(tmp_path / "store")).open() for _ in range(2))
    slow.stage(Changes(posts=collect_feedback(slow, client, NOW)))
    later = replace(reanswered, state="pending", at=NOW, content="y", comment_id=None)
    fast.stage(Changes(posts=(replace(removed, state="removed"), later)))
    assert fast.commit("meanwhile")
    assert slow.commit("feedback")
    stored = Memory(FolderStore(tmp_path / "store")).open().state.comments([answer.id for answer in answers])
    assert stored == {
        removed.id: replace(removed, state="removed", votes=LIKED),
        reanswered.id: later,
        unchanged.id: replace(unchanged, votes=LIKED, revised_at=NOW),
    }
