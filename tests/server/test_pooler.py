"""The server behind a PgBouncer in transaction mode: each transaction may get another connection to PostgreSQL."""

from __future__ import annotations

import contextlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bot.server.storage.database import SCHEMA_VERSION
from bot.server.storage.queue import LEASE_DURATION
from tests.fakes.payloads import EventfulProject
from tests.server import pgbouncer, postgres
from tests.server.pgbouncer import Bouncer
from tests.server.server_process import APP, ROOT, STANDIN, ServerStage, until
from tests.server.stub_server import RUNS

pytestmark = [pytest.mark.postgres, pytest.mark.slow]
pooled = pytest.mark.skipif(pgbouncer.program() is None, reason="PgBouncer is not installed")

MOST = 2
"""Connections of a worker to PostgreSQL."""

REPOSITORIES = 8
"""As many as a worker has concurrent runs."""

APPLICATION_NAME = "precedent-worker-in-a-test"

TABLES = """
import sys
from bot.server.storage.database import Database
database = Database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
database.make_tables()
"""


@pytest.fixture
def pooler(postgres_server: postgres.Server) -> Iterator[Bouncer]:
    with pgbouncer.start_bouncer(postgres_server.url) as started:
        yield started


def create_projects(stage: ServerStage) -> list[EventfulProject]:
    """Repositories in which the App is installed."""
    created = []
    for number in range(REPOSITORIES):
        project = stage.github.add_project(f"octo-org/shop-{number}")
        stage.git.create(project.repo.full_name)
        stage.app.installations[APP].append(project.repo.id)
        created.append(project)
    return created


def deliver_issue(stage: ServerStage, project: EventfulProject, number: int) -> str:
    """Deliver a new issue, with this number for the stand-in; return the id of the delivery."""
    issue = project.open_issue("monalisa", "Sesame", "Open.")
    payload = project.payload("issues", "opened", issue, extra={"installation": {"id": APP}})
    if stage.module == STANDIN:
        payload["issue"] |= {"number": number}
    sent = stage.github.hooks.deliver("issues", payload)
    assert sent.status == 202
    return f"{APP}:{sent.guid}"


def logged_runs(stage: ServerStage, kind_of_line: str) -> list[tuple[str, list[int], int]]:
    """Return the key, issues and process of each run that began, or ended, on any machine."""
    lines = [line for file in stage.folder.glob(f"*/{RUNS}") for line in file.read_text().splitlines()]
    return [(key, numbers, pid) for kind, key, numbers, pid in map(json.loads, lines) if kind == kind_of_line]


@pooled
def test_two_processes_can_create_the_tables_at_once(postgres_url: str, pooler: Bouncer) -> None:
    url = pooler.pooled_url(postgres_url)
    makers = [
        subprocess.Popen(
            [sys.executable, "-c", TABLES, url], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(2)
    ]
    for maker in makers:
        assert maker.stdout
        assert maker.stdout.readline() == "ready\n"
    for maker in makers:
        assert maker.stdin
        maker.stdin.write("\n")
        maker.stdin.flush()
    for maker in makers:
        maker.communicate(timeout=60)
    assert [maker.returncode for maker in makers] == [0, 0]
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("select said_at from precedent.heartbeats where name = 'schema'").fetchall() == [
            (SCHEMA_VERSION,)
        ]


@pooled
@pytest.mark.night
def test_deliveries_are_handled_once_and_another_worker_takes_over_after_a_kill(
    tmp_path: Path, postgres_url: str, pooler: Bouncer
) -> None:
    stage = ServerStage(tmp_path, STANDIN, pooler.pooled_url(postgres_url))
    try:
        shops = create_projects(stage)
        stage.start(workers=0, wait=False)
        workers = [stage.start_worker(machine) for machine in (1, 2)]
        until(lambda: stage.get("/status.json")[0] == 200, 300, stage.log_text)
        sent = [deliver_issue(stage, shops[count % REPOSITORIES], 101) for count in range(5 * REPOSITORIES)]
        stage.settle()
        rows_by_id = {row.id: row for row in stage.rows() if row.id in sent}
        assert {row.state for row in rows_by_id.values()} == {"done"}
        assert rows_by_id.keys() == set(sent)
        assert sum(numbers.count(101) for _, numbers, _ in logged_runs(stage, "end")) == len(sent)
        assert len({pid for _, _, pid in logged_runs(stage, "end")}) == 2, "both workers had some"

        last = deliver_issue(stage, shops[0], 140)
        until(
            lambda: [pid for _, numbers, pid in logged_runs(stage, "begin") if numbers == [140]],
            describe=stage.log_text,
        )
        killed = next(pid for _, numbers, pid in logged_runs(stage, "begin") if numbers == [140])
        next(worker for worker in workers if worker.pid == killed).send_signal(signal.SIGKILL)
        stage.settle(2 * LEASE_DURATION / 1000)
        (ended,) = [pid for _, numbers, pid in logged_runs(stage, "end") if numbers == [140]]
        assert ended != killed
        assert next(row for row in stage.rows() if row.id == last).state == "done"
    finally:
        stage.close()
    assert stage.github.violations == []


@pytest.mark.night
def test_a_worker_has_at_most_two_connections(tmp_path: Path, postgres_url: str) -> None:
    stage = ServerStage(tmp_path, "bot", postgres_url)
    try:
        shops = create_projects(stage)
        stage.start(workers=0, wait=False)
        until(lambda: stage.get("/readyz")[0] == 200, 300, stage.log_text)
        sent = [deliver_issue(stage, shop, 0) for shop in 3 * shops]
        with count_connections(postgres_url) as connections:
            jobs = str(REPOSITORIES)
            database_url = f"{postgres_url}?application_name={APPLICATION_NAME}"
            stage.start_worker(1, JOBS=jobs, HISTORIES=jobs, DATABASE_URL=database_url)
            stage.settle(300)
        assert {row.state for row in stage.rows() if row.id in sent} == {"done"}
        with stage.inbox() as inbox, inbox.database.transaction() as reading:
            runs = reading.rows("select began, ended from runs")
        at_once = max(sum(each["began"] <= run["began"] < each["ended"] for each in runs) for run in runs)
        assert at_once > MOST, "more runs than connections were at work"
        assert max(connections) == MOST
    finally:
        stage.close()
    assert stage.github.violations == []


@contextlib.contextmanager
def count_connections(url: str) -> Iterator[list[int]]:
    """Keep counting the connections of the processes with this name within the block."""
    counts, block_ended = list[int](), threading.Event()

    def count() -> None:
        with psycopg.connect(url, autocommit=True) as connection:
            while not block_ended.wait(0.005):
                cursor = connection.execute(
                    "select count(*) from pg_stat_activity where application_name = %s", [APPLICATION_NAME]
                )
                (number,) = cursor.fetchone() or (0,)
                counts.append(number)

    counting = threading.Thread(target=count)
    counting.start()
    try:
        yield counts
    finally:
        block_ended.set()
        counting.join()
