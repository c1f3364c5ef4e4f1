"""A database that fails: what is said, that nothing is half done, and that all goes on by itself once it is back."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from bot.errors import WorldError
from bot.server.clone_cache import CloneCache
from bot.server.database import Database
from bot.server.inbox import Inbox
from bot.server.installations import TokenCache
from bot.server.model import Lease, RepositoryKey
from bot.server.options import ServerOptions
from bot.server.queue import LEASE
from bot.server.rate_limiter import RateLimiter
from bot.server.reconcile import TROUBLE, reconcile
from bot.server.worker import RunDependencies
from tests.fakes.state import from_epoch
from tests.server import postgres
from tests.server.queues import REPOSITORY, Clock, FileInbox, arrival, keys, leased
from tests.server.stage import SLUG, ServerStage, until

AGO = 200 * 24 * 3600
SETTLED = 600.0
"""Seconds at most until everything is done: a promise that was left unkept is looked at after two minutes."""

DISK = 1300 * 2**20


def fill(ledger: Inbox) -> None:
    for number in range(1, 100):
        ledger.put([arrival(f"{number}-{each}", RepositoryKey(number, each)) for each in range(1, 20)])


def test_what_does_not_fit_on_the_disk_is_refused_with_a_line_and_kept_in_no_part(tmp_path: Path) -> None:
    database, limit = Database.in_folder(tmp_path), [2**30]
    database.make_tables()
    ledger = Inbox(database, "one", Clock())

    def bound(connection: Any, *_: object) -> None:
        connection.execute(f"pragma max_page_count = {limit[0]}")

    sa.event.listen(database.engine, "checkout", bound)
    limit[0] = 1  # which SQLite takes for: as large as it is
    with pytest.raises(WorldError, match=r"\(database or disk is full\): check that it is running and has free space"):
        fill(ledger)
    limit[0] = 2**30
    rows = ledger.deliveries(limit=10_000)
    assert {row.repository.text for row in rows} == keys(ledger), "each delivery has its key, and no key is without"
    assert ledger.put([arrival("after")]) == [True]
    database.close()


@pytest.mark.slow
def test_a_file_that_somebody_else_keeps_locked_is_waited_for_and_no_longer_than_github_waits(tmp_path: Path) -> None:
    database = Database.in_folder(tmp_path, hurry=True)
    database.make_tables()
    ledger = Inbox(database, "web", Clock())
    ledger.put([arrival("before")])
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.sqlite", isolation_level=None)) as other:
        other.execute("begin immediate")
        began = time.monotonic()
        with pytest.raises(WorldError, match="database is locked"):
            ledger.put([arrival("a")])
        assert 5 < time.monotonic() - began < 8
        assert ledger.counts()["waiting"] == 1, "who only reads does not wait"
        other.execute("rollback")
    assert ledger.put([arrival("a")]) == [True]
    database.close()


class Away(FileInbox):
    """A database that does not answer while a run is to be begun, and then so many times more."""

    def __init__(self, unanswered: int) -> None:
        self.clock = Clock()
        super().__init__(now=self.clock)
        self.unanswered = unanswered

    def begin(self, *_: object) -> None:
        raise WorldError("the connection was refused")

    def give_back(self, lease: Lease, seconds: float) -> None:
        self.unanswered -= 1
        if self.unanswered >= 0:
            raise WorldError("the connection was refused")
        super().give_back(lease, seconds)


@pytest.mark.parametrize(("unanswered", "later"), [(0, 1000 * TROUBLE), (1, LEASE)], ids=["given back", "not at all"])
def test_a_repository_whose_run_cannot_be_begun_is_due_again_soon(
    unanswered: int, later: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = Away(unanswered)
    inbox.put([arrival("a")])
    dependencies = RunDependencies(
        options=ServerOptions(),
        inbox=inbox,
        tokens=cast("TokenCache", None),
        clones=CloneCache(tmp_path, 1),
        pace=RateLimiter(6, inbox.clock),
        own_login="precedent[bot]",
        stop=threading.Event(),
        now=inbox.clock,
    )
    reconcile(leased(inbox, REPOSITORY), dependencies)
    said = "its lease could not be released; it will expire: the connection was refused"
    assert (said in caplog.messages) == bool(unanswered)
    assert inbox.queue.claim("another") is None
    inbox.clock.ahead += round(later) - 2_000
    assert inbox.queue.claim("another") is None
    inbox.clock.ahead += 2_000
    lease = inbox.queue.claim("another")
    assert lease
    assert lease.key == REPOSITORY.text


def settle_down(stage: ServerStage) -> None:
    """A past with a decision in it, so that an issue about it gets a comment."""
    github, past = stage.github, from_epoch(stage.github.clock.epoch - AGO)
    github.open_issue("octocat", "Where should sessions live?", "Files are slow.", at=past)
    github.comment(1, "octocat", "We decided to go with Redis for the session store.", at=past)
    github.close(1, "octocat", at=past)


def ask(stage: ServerStage, heard: dict[int, int]) -> int:
    """Somebody asks, and GitHub tells of it; the status it was answered with is also kept in ``heard``."""
    number = stage.github.open_issue("monalisa", "Which session store?", "What was decided in #1 about sessions?")
    heard[number] = stage.deliver("issues", "opened", number)
    return heard[number]


def ask_until(stage: ServerStage, heard: dict[int, int], status: int) -> None:
    """Ask every two seconds until that is the answer; a repository gets no more than five comments in a run."""
    until(lambda: ask(stage, heard) == status or time.sleep(2), SETTLED, stage.told)


def all_is_well(stage: ServerStage, heard: dict[int, int]) -> None:
    """Everything that was taken is done and has one comment; what was not has none, or one by the catch-up."""
    taken = {number for number, status in heard.items() if status == 202}

    def done() -> bool:
        states = {row.event.number: row.state for row in stage.rows()}
        return all(states.get(number) == "done" for number in taken)

    until(done, SETTLED, stage.told)
    counts = {number: len(stage.github.comments_by(f"{SLUG}[bot]", number)) for number in heard}
    assert {number: counts[number] for number in taken} == dict.fromkeys(taken, 1)
    assert max(counts.values()) == 1
    assert stage.github.violations == []


@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_whose_postgresql_is_away_for_a_while_says_so_and_loses_nothing(tmp_path: Path) -> None:
    server, heard = postgres.start(), dict[int, int]()
    if server.folder is None:
        pytest.skip("a given server is not ours to stop")
    with contextlib.ExitStack() as at_end:
        at_end.callback(server.stop)
        stage = ServerStage(tmp_path, database=at_end.enter_context(server.database()))
        at_end.callback(stage.close)
        settle_down(stage)
        stage.start()
        assert [ask(stage, heard) for _ in range(3)] == [202] * 3
        server.restart()
        ask_until(stage, heard, 202)
        server.halt()
        assert (ask(stage, heard), stage.get("/healthz")[0]) == (503, 200)
        until(lambda: stage.get("/readyz")[0] == 503, 30, stage.told)
        server.start()
        ask_until(stage, heard, 202)
        all_is_well(stage, heard)
        until(lambda: stage.get("/readyz")[0] == 200, SETTLED, stage.told)
        said = [str(line["message"]) for line in stage.lines()]
        assert any(line.startswith("not stored: the queue's database does not answer (") for line in said)
        assert any(line.startswith("no work can be claimed: the queue's database does not answer (") for line in said)
        assert any(line.startswith("check failed: queue: the database does not answer") for line in said)


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[None]:
    """A disk of its own, which `resized` can fill."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a disk")
    folder.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def resized(folder: Path, free: int) -> None:
    """Have so many bytes free, or everything for -1."""
    used = shutil.disk_usage(folder).used
    size = DISK if free < 0 else used + free
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


@pytest.mark.slow
def test_a_server_whose_disk_is_full_takes_nothing_more_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    heard = dict[int, int]()
    with contextlib.ExitStack() as at_end:
        stage = ServerStage(tmp_path)
        at_end.enter_context(disk(stage.data))
        at_end.callback(stage.close)
        settle_down(stage)
        stage.start()
        resized(stage.data, 100 * 2**20)
        ask_until(stage, heard, 503)
        until(lambda: stage.get("/readyz")[0] == 503, 30, stage.told)
        assert stage.get("/healthz")[0] == 200
        resized(stage.data, -1)
        ask_until(stage, heard, 202)
        until(lambda: any(row.state == "working" for row in stage.rows()), 60, stage.told)
        resized(stage.data, 0)  # while runs are under way
        time.sleep(20)
        resized(stage.data, -1)
        ask_until(stage, heard, 202)
        all_is_well(stage, heard)
        said = [str(line["message"]) for line in stage.lines()]
        assert "deliveries are refused: disk: only 0.1 GB free: make room" in said
        assert "deliveries are accepted again" in said
        assert any(line.startswith("check failed: disk: only 0.1 GB free") for line in said)
