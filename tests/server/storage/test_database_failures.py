"""A database that fails: it is reported, nothing is half done, and work continues once the database is back."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, cast

import pytest
import sqlalchemy as sa

from bot.errors import WorldError
from bot.server.dependencies import RunDependencies
from bot.server.log import DATABASE_OUTAGE
from bot.server.model import Lease, RepositoryKey
from bot.server.options import ServerOptions
from bot.server.storage.branches import CloneCache, DiskGuard, RateLimiter
from bot.server.storage.database import SHORT_BUSY_TIMEOUT, Database, machine_clock
from bot.server.storage.github_access import TokenCache
from bot.server.storage.heartbeats import Heartbeats
from bot.server.storage.inbox import Inbox
from bot.server.storage.queue import LEASE_DURATION
from bot.server.work.reconcile import RETRY_SECONDS, reconcile
from tests.fakes.state import from_epoch
from tests.server import postgres
from tests.server.queues import REPOSITORY, Clock, FileInbox, arrival, keys, take_lease
from tests.server.server_process import SLUG, ServerStage, until

AGO = 200 * 24 * 3600
LONGEST_WAIT = 600.0
"""Seconds at most until everything is done: a promised comment that was not posted is retried after two minutes."""

OUTAGES = (5, 30, 120)
"""Seconds; leases last for 30."""

DISK = 1300 * 2**20


def fill(inbox: Inbox) -> None:
    for number in range(1, 100):
        inbox.put([arrival(f"{number}-{each}", RepositoryKey(number, each)) for each in range(1, 20)])


def test_a_full_disk_refuses_deliveries_and_leaves_none_half_stored(tmp_path: Path) -> None:
    database, limit = Database.in_folder(tmp_path), [2**30]
    database.make_tables()
    inbox = Inbox(database, "one", Clock())

    def limit_pages(connection: Any, *_: object) -> None:
        connection.execute(f"pragma max_page_count = {limit[0]}")

    sa.event.listen(database.engine, "checkout", limit_pages)
    limit[0] = 1  # which SQLite takes to mean its current size
    with pytest.raises(WorldError, match=r"\(database or disk is full\): check that it is running and has free space"):
        fill(inbox)
    limit[0] = 2**30
    rows = inbox.deliveries(limit=10_000)
    assert {row.repository.text for row in rows} == keys(inbox), "each delivery has its key, and no key is without"
    assert inbox.put([arrival("after")]) == [True]
    database.close()


@pytest.mark.parametrize(
    ("cause", "remedy"),
    [
        ('FATAL:  password authentication failed for user "precedent"', "check the user and the password in its"),
        ("fe_sendauth: no password supplied", "put the password into its address"),
        ('FATAL:  database "precedent" does not exist', "create it, or correct its address"),
        ("Connection refused", "check that it is running"),
    ],
)
def test_a_database_that_refuses_us_is_reported_with_the_remedy(cause: str, remedy: str, tmp_path: Path) -> None:
    refusing = Database.in_folder(tmp_path)
    with pytest.raises(WorldError, match=re.escape(f"({cause}): {remedy}")), refusing.translate_errors():
        raise sa.exc.OperationalError("select 1", None, Exception(cause))


@pytest.mark.slow
def test_a_write_waits_for_a_locked_database_less_long_than_github_waits(tmp_path: Path) -> None:
    database = Database.in_folder(tmp_path, hurry=True)
    database.make_tables()
    inbox = Inbox(database, "web", Clock())
    inbox.put([arrival("before")])
    with contextlib.closing(sqlite3.connect(tmp_path / "queue.sqlite", isolation_level=None)) as writer:
        writer.execute("begin immediate")
        assert SHORT_BUSY_TIMEOUT < 10, "GitHub waits for ten seconds"
        with pytest.raises(WorldError, match="database is locked"):
            inbox.put([arrival("a")])
        assert inbox.counts()["waiting"] == 1, "who only reads does not wait"
        writer.execute("rollback")
    assert inbox.put([arrival("a")]) == [True]
    database.close()


class FailingBeginInbox(FileInbox):
    """A database that does not answer when a run begins, and then fails so many more times."""

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


@pytest.mark.parametrize(
    ("unanswered", "later"), [(0, 1000 * RETRY_SECONDS), (1, LEASE_DURATION)], ids=["given back", "not at all"]
)
def test_a_repository_whose_run_cannot_begin_is_due_again_soon(
    unanswered: int, later: float, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    inbox = FailingBeginInbox(unanswered)
    inbox.put([arrival("a")])
    dependencies = RunDependencies(
        options=ServerOptions(),
        inbox=inbox,
        tokens=cast("TokenCache", None),
        clones=CloneCache(tmp_path, 1),
        disk=DiskGuard(tmp_path),
        pace=RateLimiter(6, inbox.clock),
        own_login="precedent[bot]",
        stop=threading.Event(),
    )
    reconcile(take_lease(inbox, REPOSITORY), dependencies)
    message = "its lease could not be released; it will expire: the connection was refused"
    assert (message in caplog.messages) == bool(unanswered)
    assert inbox.queue.claim("another") is None
    inbox.clock.ahead += round(later) - 2_000
    assert inbox.queue.claim("another") is None
    inbox.clock.ahead += 2_000
    lease = inbox.queue.claim("another")
    assert lease
    assert lease.key == REPOSITORY.text


def add_decision(stage: ServerStage) -> None:
    """Add an old issue with a decision, so that a new issue about it gets a comment."""
    github, past = stage.github, from_epoch(stage.github.clock.epoch - AGO)
    github.open_issue("octocat", "Where should sessions live?", "Files are slow.", at=past)
    github.comment(1, "octocat", "We decided to go with Redis for the session store.", at=past)
    github.close(1, "octocat", at=past)


def ask(stage: ServerStage, statuses: dict[int, int]) -> int:
    """Open an issue and deliver it; return the status of the answer, which is also stored in ``statuses``."""
    number = stage.github.open_issue("monalisa", "Which session store?", "What was decided in #1 about sessions?")
    statuses[number] = stage.deliver("issues", "opened", number)
    return statuses[number]


def ask_until(stage: ServerStage, statuses: dict[int, int], status: int) -> None:
    """Ask every two seconds until the answer has this status; a run posts at most five comments."""
    until(lambda: ask(stage, statuses) == status or time.sleep(2), LONGEST_WAIT, stage.log_text)


def check_all_done(stage: ServerStage, statuses: dict[int, int]) -> None:
    """Check that each accepted issue is done with one comment, and each other one has none, or one by the catch-up."""
    accepted = {number for number, status in statuses.items() if status == 202}

    def all_accepted_are_done() -> bool:
        states = {row.event.number: row.state for row in stage.rows()}
        return all(states.get(number) == "done" for number in accepted)

    until(all_accepted_are_done, LONGEST_WAIT, stage.log_text)
    counts = {number: len(stage.github.comments_by(f"{SLUG}[bot]", number)) for number in statuses}
    assert {number: counts[number] for number in accepted} == dict.fromkeys(accepted, 1)
    assert max(counts.values()) == 1
    assert stage.github.violations == []


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.postgres
def test_a_server_reports_a_postgresql_outage_and_loses_no_delivery(tmp_path: Path) -> None:
    """And its workers live on, also after an outage that is longer than their leases."""
    server, statuses = postgres.start(), dict[int, int]()
    if server.folder is None:
        pytest.skip("a given server is not ours to stop")
    with contextlib.ExitStack() as at_end:
        at_end.callback(server.stop)
        stage = ServerStage(tmp_path, database=at_end.enter_context(server.database()))
        at_end.callback(stage.close)
        add_decision(stage)
        stage.start(2)
        until(lambda: stage.log_text().count('"message": "working"') == 2, LONGEST_WAIT, stage.log_text)
        server.restart()
        ask_until(stage, statuses, 202)
        began, workers = time.monotonic(), stage.children()
        for seconds in OUTAGES:
            assert [ask(stage, statuses) for _ in range(3)] == [202] * 3
            time.sleep(1)  # their runs are under way
            server.halt()
            assert (ask(stage, statuses), stage.get("/healthz")[0]) == (503, 200)
            until(lambda: stage.get("/readyz")[0] == 503, 30, stage.log_text)
            time.sleep(seconds)
            server.start()
            ask_until(stage, statuses, 202)
        check_all_done(stage, statuses)
        assert set(stage.children()) == set(workers)
        minutes = (time.monotonic() - began) / 60
        until(lambda: stage.get("/readyz")[0] == 200, LONGEST_WAIT, stage.log_text)
        warnings = [line for line in stage.lines() if DATABASE_OUTAGE in str(line["message"])]
        assert {line["pid"] for line in warnings if line["level"] == "warning"} == {
            stage.process and stage.process.pid,
            *workers,
        }
        assert len(warnings) <= 3 * (minutes + 2)


@contextlib.contextmanager
def disk(folder: Path) -> Iterator[None]:
    """Mount a separate disk, which `resize` can fill."""
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount a disk")
    folder.mkdir(mode=0o700)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", folder], check=False).returncode:
        pytest.skip("nothing can be mounted here")
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def resize(folder: Path, free: int) -> None:
    """Leave so many bytes free, or all of them for -1."""
    used = shutil.disk_usage(folder).used
    size = DISK if free < 0 else used + free
    subprocess.run(["mount", "-o", f"remount,size={size}", folder], check=True)


@pytest.mark.night
@pytest.mark.slow
def test_a_server_with_a_full_disk_refuses_deliveries_until_there_is_room(tmp_path: Path) -> None:
    statuses = dict[int, int]()
    with contextlib.ExitStack() as at_end:
        stage = ServerStage(tmp_path)
        at_end.enter_context(disk(stage.data))
        at_end.callback(stage.close)
        add_decision(stage)
        stage.start()
        resize(stage.data, 100 * 2**20)
        ask_until(stage, statuses, 503)
        until(lambda: stage.get("/readyz")[0] == 503, 30, stage.log_text)
        assert stage.get("/healthz")[0] == 200
        resize(stage.data, -1)
        ask_until(stage, statuses, 202)
        until(lambda: any(row.state == "working" for row in stage.rows()), 60, stage.log_text)
        resize(stage.data, 0)  # while runs are under way
        time.sleep(5)
        resize(stage.data, -1)
        ask_until(stage, statuses, 202)
        check_all_done(stage, statuses)
        messages = [str(line["message"]) for line in stage.lines()]
        assert "deliveries are refused: disk: only 0.1 GB free: make room" in messages
        assert "deliveries are accepted again" in messages
        assert any(line.startswith("check failed: disk: only 0.1 GB free") for line in messages)


def test_what_is_stored_within_a_transaction_is_rolled_back_with_it(database_url: str) -> None:
    with closing(Database(database_url)) as database:
        heartbeats = Heartbeats(database, machine_clock)

        def store_and_fail() -> None:
            with database.transaction():
                heartbeats.store("inner", {})
                assert heartbeats.get("inner")[0], "it is visible inside"
                raise LookupError

        with pytest.raises(LookupError):
            store_and_fail()
        assert heartbeats.get("inner")[0] == 0
        heartbeats.store("later", {})
        assert heartbeats.get("later")[0], "the next one is independent"
