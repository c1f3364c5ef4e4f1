"""What a run leaves to later ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from bot.domain.changes import Changes, Request
from bot.domain.post import COMMENT, Post, Renewal
from bot.github.errors import Unreachable
from bot.memory.memory import Memory
from bot.pipeline.outlook import outlook
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.tools import Tools
from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import SampleRepository


@pytest.fixture
def run(github: FakeGitHub, tmp_path: Path) -> Iterator[Tools]:
    """A run over a memory that holds issues 1 to 3 and owes nothing."""
    repository = SampleRepository(github, tmp_path)
    memory = repository.memory().open()
    yield repository.tools(memory)
    memory.close()


def promise(memory: Memory, number: int, at: datetime, since: datetime | None) -> None:
    memory.stage(Changes(posts=(Post(number, "pending", at, reason="promised", trying_since=since),)))


def test_nothing_is_owed_after_a_run_that_did_everything(run: Tools) -> None:
    left = outlook(run, [], None)
    assert (left.owed, left.is_cut_off, left.reading, left.read) == ((), False, None, None)
    assert left.cursor == run.memory.state.manifest.cursor
    assert left.threads == run.memory.state.manifest.threads


def test_what_is_promised_and_not_settled_is_owed(run: Tools) -> None:
    since = run.now - timedelta(minutes=1)
    promise(run.memory, 1, since, since)
    promise(run.memory, 2, since, None)
    assert sorted(outlook(run, [], None).owed, key=str) == [since, None]
    done, owed = CommentResult(1, "", "created"), CommentResult(2, "", "silent", is_owed=True)
    assert outlook(run, [done, owed], None).owed == (None,)
    failed = CommentResult(1, "", "failed", error=Unreachable("GitHub did not answer"))
    assert outlook(run, [failed, replace(owed, is_owed=False)], None).owed == (since,)


def test_a_promise_that_is_too_old_to_be_kept_is_not_owed(run: Tools) -> None:
    promise(run.memory, 1, run.now - run.max_age - timedelta(minutes=1), None)
    assert outlook(run, [], None).owed == ()


def test_a_reply_that_is_not_seen_yet_is_owed(run: Tools) -> None:
    since = run.now - timedelta(seconds=30)
    request = Request(2, 77, "search", "monalisa", run.now - timedelta(minutes=5), trying_since=since)
    run.memory.stage(Changes(requests=(request,)))
    assert outlook(run, [], None).owed == (since,)
    run.memory.stage(Changes(requests=(replace(request, state="done"),)))
    assert outlook(run, [], None).owed == ()


def test_renewals_are_owed_once_and_only_by_runs_that_write(run: Tools) -> None:
    renewals = tuple(Renewal(number, COMMENT, 2, run.now) for number in (1, 3))
    run.memory.stage(Changes(renewals_due=renewals))
    assert outlook(run, [], None).owed == (None,)
    summary = replace(run, settings=replace(run.settings, mode="summary"))
    assert outlook(summary, [], None).owed == ()
