"""Processes of an earlier version and of this one share a PostgreSQL database while one replaces the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.server.database import SCHEMA_VERSION, Database
from tests.server.server_process import ROOT, SLUG, ServerStage
from tests.upgrades import old_programs

OLD, TABLES = "clusters", 4
"""A release with an earlier version of the tables, and that version."""


@pytest.fixture
def stage(tmp_path: Path, postgres_url: str) -> Iterator[ServerStage]:
    server = ServerStage(tmp_path / "stage", database=postgres_url)
    github = server.github
    github.open_issue("monalisa", "Where should sessions live?", "Files are slow.", at="2026-01-01T10:00:00Z")
    github.comment(1, "monalisa", "We decided to go with PostgreSQL for the session store.", at="2026-01-02T10:00:00Z")
    github.close(1, "monalisa", at="2026-01-03T10:00:00Z")
    yield server
    server.close()
    assert github.violations == []


def open_issue(stage: ServerStage) -> int:
    number = stage.github.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
    assert stage.deliver("issues", "opened", number) == 202
    return number


@pytest.mark.slow
@pytest.mark.postgres
def test_deliveries_are_done_once_while_old_and_new_processes_share_a_database(
    stage: ServerStage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage.code = old = old_programs.checkout(OLD, tmp_path_factory)
    stage.start()
    stage.wait_for_resync()
    with closing(Database(stage.database)) as database:
        with database.transaction() as reading:
            assert reading.row("select said_at from heartbeats where name = 'schema'") == {"said_at": TABLES}
        database.make_tables()  # as the first new process does
    numbers = [open_issue(stage)]
    stage.settle()  # by the old worker, in the new tables

    stage.code = ROOT
    new = stage.start_worker(1)
    numbers += [open_issue(stage), open_issue(stage)]
    assert stage.stop() == 0
    stage.start(workers=0)
    numbers.append(open_issue(stage))
    stage.settle()
    assert new.poll() is None
    assert {(row.event.number, row.state) for row in stage.rows()} >= {(number, "done") for number in numbers}
    assert {row.state for row in stage.rows()} == {"done"}
    assert [len(stage.github.comments_by(f"{SLUG}[bot]", number)) for number in numbers] == [1] * len(numbers)

    stage.code = old
    refused = stage.run("serve", "--check")
    assert refused.returncode == 2
    assert f"the database has version {SCHEMA_VERSION}, which a newer release made" in refused.stdout
