"""Processes of the last version and of this one share a PostgreSQL database while one replaces the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from bot.server.database import VERSION, Database
from tests.server.stage import ROOT, SLUG, ServerStage
from tests.upgrades import fleet

OLD, TABLES = "clusters", 4
"""A program of an earlier version of the tables, and that version."""


@pytest.fixture
def stage(tmp_path: Path, postgres_url: str) -> Iterator[ServerStage]:
    made = ServerStage(tmp_path / "stage", database=postgres_url)
    github = made.github
    github.open_issue("monalisa", "Where should sessions live?", "Files are slow.", at="2026-01-01T10:00:00Z")
    github.comment(1, "monalisa", "We decided to go with PostgreSQL for the session store.", at="2026-01-02T10:00:00Z")
    github.close(1, "monalisa", at="2026-01-03T10:00:00Z")
    yield made
    made.close()
    assert github.violations == []


def asked(stage: ServerStage) -> int:
    number = stage.github.open_issue("monalisa", "Which session store?", "What did we decide in #1 about sessions?")
    assert stage.deliver("issues", "opened", number) == 202
    return number


@pytest.mark.slow
@pytest.mark.postgres
def test_deliveries_are_done_once_while_old_and_new_processes_share_a_database(
    stage: ServerStage, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stage.code = old = fleet.checkout(OLD, tmp_path_factory)
    stage.start()
    stage.rest()
    with closing(Database(stage.database)) as database:
        with database.transaction() as asking:
            assert asking.row("select said_at from heartbeats where name = 'schema'") == {"said_at": TABLES}
        database.make_tables()  # as the first new process does
    numbers = [asked(stage)]
    stage.settle()  # the old worker's, in new tables

    stage.code = ROOT
    new = stage.worker(1)
    numbers += [asked(stage), asked(stage)]
    assert stage.stop()[0] == 0
    stage.start(workers=0)
    numbers.append(asked(stage))
    stage.settle()
    assert new.poll() is None
    assert {(row.event.number, row.state) for row in stage.rows()} >= {(number, "done") for number in numbers}
    assert {row.state for row in stage.rows()} == {"done"}
    assert [len(stage.github.comments_by(f"{SLUG}[bot]", number)) for number in numbers] == [1] * len(numbers)

    stage.code = old
    refused = stage.run("serve", "--check")
    assert refused.returncode == 2
    assert f"the database has version {VERSION}, which a newer release made" in refused.stdout
