"""The tables are created once, even if processes start at the same time; those of another version are refused."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.server.storage.database import SCHEMA_VERSION, Database, machine_clock
from bot.server.storage.inbox import Inbox
from tests.server.queues import keys

ROOT = Path(__file__).resolve().parents[3]
MAKE_TABLES = """
import sys
from bot.server.storage.database import Database

database = Database(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
database.make_tables()
database.close()
"""


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def empty_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a database without tables, in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'queue.sqlite'}"
    return str(request.getfixturevalue("postgres_url"))


@pytest.mark.night
@pytest.mark.slow
def test_processes_that_start_together_create_the_tables_once(empty_url: str) -> None:
    command = [sys.executable, "-c", MAKE_TABLES, empty_url]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    running = [subprocess.Popen(command, cwd=ROOT, text=True, **pipes) for _ in range(4)]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=60)
    assert [process.returncode for process in running] == [0] * 4
    with closing(Database(empty_url)) as database:
        database.make_tables()
        assert keys(Inbox(database, "one", machine_clock)) == set()


NEWER = (
    f"{SCHEMA_VERSION + 1}, which a newer release made; this one reads only {SCHEMA_VERSION}; install that release, or"
)
OLDER = (
    f", which an older release made; this one reads only {SCHEMA_VERSION}; give an empty database: the memories are on"
)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ("update heartbeats set said_at = said_at + 1 where name = 'schema'", NEWER),
        ("update heartbeats set said_at = said_at - 1 where name = 'schema'", f"{SCHEMA_VERSION - 1}{OLDER}"),
        ("alter table heartbeats rename to pulses", f"0{OLDER}"),
    ],
    ids=["newer", "older", "before there was a number"],
)
def test_the_database_of_another_release_is_refused_and_left_alone(database_url: str, change: str, error: str) -> None:
    with closing(Database(database_url)) as database:
        database.make_tables()
        database.change(change)
        for _ in range(2):
            with pytest.raises(UserError) as caught:
                database.make_tables()
            assert str(caught.value).startswith(f"the database has version {error}")
