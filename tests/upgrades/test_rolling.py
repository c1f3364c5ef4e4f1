"""Servers of the last version and of this one share a PostgreSQL database while one replaces the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.database import VERSION, Database
from tests.server.postgres import Server
from tests.server.stage import ROOT, SLUG, ServerStage, until
from tests.upgrades import fleet

LAST, TABLES = "clusters", 4
"""The newest program of the fleet, and the version of its tables."""


@pytest.fixture
def stage(tmp_path: Path, postgres_server: Server) -> Iterator[ServerStage]:
    with postgres_server.database() as url:
        made = ServerStage(tmp_path / "stage", database=url)
        yield made
        made.close()


def version(stage: ServerStage) -> int:
    database = Database(stage.database)
    try:
        with database.transaction() as asking:
            row = asking.row("select said_at from heartbeats where name = 'schema'")
            return int(row["said_at"]) if row else 0
    finally:
        database.close()


def asked(stage: ServerStage) -> int:
    number = stage.github.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
    assert stage.deliver("issues", "opened", number) == 202
    return number


@pytest.mark.slow
@pytest.mark.postgres
def test_deliveries_are_done_once_while_old_and_new_processes_share_a_database(
    stage: ServerStage, tmp_path: Path
) -> None:
    github = stage.github
    github.open_issue("monalisa", "Where should sessions live?", "Files are slow.", at="2026-01-01T10:00:00Z")
    github.comment(1, "monalisa", "We decided to go with PostgreSQL for the session store.", at="2026-01-02T10:00:00Z")
    github.close(1, "monalisa", at="2026-01-03T10:00:00Z")
    stage.code = fleet.checkout(LAST, tmp_path / "old")
    stage.start()
    stage.rest()
    numbers = [asked(stage)]
    stage.settle()
    assert version(stage) == TABLES

    stage.code = ROOT
    new = stage.worker(1)
    until(lambda: version(stage) == VERSION, 60, stage.told)
    numbers += [asked(stage), asked(stage)]
    stage.settle()
    numbers.append(asked(stage))
    assert stage.stop()[0] == 0
    stage.start()
    numbers.append(asked(stage))
    stage.settle()
    assert new.poll() is None
    assert [row.state for row in stage.rows()] == ["done"] * len(numbers)
    assert [len(github.comments_by(f"{SLUG}[bot]", number)) for number in numbers] == [1] * len(numbers)

    stage.code = tmp_path / "old"
    refused = stage.run("serve", "--check")
    print(refused.stdout, refused.stderr)
    assert refused.returncode == 2
    assert f"the database has version {VERSION}, which a newer release made" in refused.stdout + refused.stderr
    print(stage.told())
