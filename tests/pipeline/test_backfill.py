"""Bulk reading resumes after a pause that GitHub asked for, if there is time to wait."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.comment.marker import marker
from bot.github.client import GitHubClient
from bot.github.errors import RateLimited
from bot.github.history import GraphQLHistory, RestHistory
from bot.github.threads import OwnCommentRule
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.backfill import (
    CHECKPOINT_SECONDS,
    MAX_PAUSE,
    PROGRESS_INTERVAL,
    Clock,
    Deadline,
    HistoryRead,
    backfill,
)
from tests.fakes.github import FakeGitHub

REPO = "octocat/hello-world"
OWN = OwnCommentRule("github-actions[bot]", marker())


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """Three issues, one of them with a comment."""
    with FakeGitHub(REPO) as github:
        for title in ("One", "Two", "Three"):
            github.open_issue("octocat", title)
        github.comment(2, "hubot", "Me too")
        yield github


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    memory = Memory(FolderStore(tmp_path / "store")).open()
    yield memory
    memory.close()


def read_history(
    github: FakeGitHub, memory: Memory, source: str, limit: float | None = None
) -> tuple[HistoryRead, list[float]]:
    """Read the whole history; also returns the pauses made."""
    client = GitHubClient(github.url, github.token, REPO, write_gap=0)
    history = RestHistory(OWN, client) if source == "REST" else GraphQLHistory(REPO, OWN, client)
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        pauses.append(seconds)
        client.pause_requests(seconds)

    clock = Clock(lambda: 0.0, lambda _: None, sleep)
    return backfill(
        memory, history, Deadline(clock, datetime.fromisoformat(github.clock.now), limit), None, lambda _: ()
    ), pauses


@pytest.mark.parametrize("call", ["GET */issues", "GET */issues/2/timeline"])
def test_backfill_resumes_after_a_pause_that_github_asked_for(github: FakeGitHub, memory: Memory, call: str) -> None:
    github.faults.add(call, "secondary403", seconds=30)
    history_read, pauses = read_history(github, memory, "REST")
    assert (history_read.complete, history_read.stopped, memory.state.manifest.threads) == (True, None, 3)
    assert len(pauses) == 1
    assert 28 <= pauses[0] <= 32


@pytest.mark.slow
def test_a_long_thread_that_hit_a_limit_is_read_after_the_pause(github: FakeGitHub, memory: Memory) -> None:
    for _ in range(101):
        github.comment(3, "hubot", "And me")
    github.faults.add("GET */issues/3/timeline", "secondary403", seconds=30)
    history_read, pauses = read_history(github, memory, "GraphQL")
    assert (history_read.complete, memory.state.manifest.threads, len(pauses)) == (True, 3, 1)


def test_a_run_without_time_to_wait_stops_at_the_limit(github: FakeGitHub, memory: Memory) -> None:
    github.faults.add("GET */issues", "secondary403", seconds=30)
    history_read, pauses = read_history(github, memory, "REST", limit=60)
    assert isinstance(history_read.stopped, RateLimited)
    assert pauses == []
    assert len(github.requests) == 1


def test_an_unfinished_reading_says_why() -> None:
    assert HistoryRead(stopped=RateLimited("the limit is reached")).why == "the limit is reached"
    assert HistoryRead().why == "the history is longer than one run reads"


@pytest.mark.parametrize(
    ("total", "done", "line"),
    [
        (None, 40, "40 threads read, 20 s"),
        (100, 0, "0 threads read, 20 s"),
        (0, 3, "3 threads read, 20 s"),
        (100, 40, "40 of 100 threads read, 20 s, about 30 s to go"),
        (30, 40, "40 of 30 threads read, 20 s, about 0 s to go"),
    ],
)
def test_progress_shows_the_remaining_time_if_it_can_be_estimated(total: int | None, done: int, line: str) -> None:
    shown: list[str] = []
    times = iter([0.0])
    deadline = Deadline(Clock(lambda: next(times, 20.0), shown.append, lambda _: None), datetime.now(UTC), total=total)
    deadline.show_progress(done)
    assert shown == [line]


@pytest.mark.parametrize(
    ("seconds", "is_shown", "is_over", "is_checkpoint_due"),
    [
        (PROGRESS_INTERVAL - 0.1, False, False, False),
        (PROGRESS_INTERVAL, True, False, False),
        (CHECKPOINT_SECONDS, True, False, True),
        (90.0, True, False, True),
        (90.1, True, True, True),
    ],
)
def test_progress_checkpoints_and_the_deadline_come_at_their_times(
    seconds: float, is_shown: bool, is_over: bool, is_checkpoint_due: bool
) -> None:
    shown: list[str] = []
    times = iter([0.0])
    deadline = Deadline(
        Clock(lambda: next(times, seconds), shown.append, lambda _: None), datetime.now(UTC), limit=90.0
    )
    deadline.show_progress(1)
    assert (bool(shown), deadline.is_over, deadline.is_checkpoint_due(1)) == (is_shown, is_over, is_checkpoint_due)


@pytest.mark.parametrize(("until_reset", "does_wait"), [(MAX_PAUSE, True), (MAX_PAUSE + timedelta(seconds=1), False)])
def test_a_limit_is_waited_for_if_it_resets_soon(until_reset: timedelta, does_wait: bool) -> None:
    now, pauses = datetime.now(UTC), list[float]()
    deadline = Deadline(Clock(lambda: 0.0, lambda _: None, pauses.append), now)
    assert deadline.wait_for(RateLimited("the limit is reached", until=now + until_reset)) is does_wait
    assert pauses == ([until_reset.total_seconds() + 1] if does_wait else [])
