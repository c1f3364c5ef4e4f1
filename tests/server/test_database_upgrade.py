"""Tables of earlier versions are upgraded: once, without loss, even if processes start at the same time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.organisation import Visibility
from bot.errors import UserError
from bot.server.database import POSTGRES_SCHEMA, RENAMES, SCHEMA_VERSION, UPGRADES, Database, machine_clock
from bot.server.inbox import Inbox
from bot.server.model import RepositoryKey, RunReport
from tests.server.queues import REPOSITORY, all_done, arrival, keys, take_lease

ROOT = Path(__file__).resolve().parents[2]
OTHER, THIRD, FOURTH = RepositoryKey(7, 71), RepositoryKey(8, 1), RepositoryKey(8, 2)

VERSION_3 = """
create table deliveries (
  seq {serial}, id text not null unique, lane text not null,
  event text not null, action text not null, number {big} not null, is_pull integer not null,
  comment_id {big} not null, moved_to text not null, name text not null, private integer not null,
  received_at {big} not null, next_at {big} not null, request text not null, extra text not null,
  state text not null default 'waiting', attempts integer not null default 0, begun integer not null default 0,
  finished_at {big} not null default 0, turn text not null default '', reason text not null default '',
  said text not null default '', url text not null default '', matches text not null default '[]',
  nearest text not null default '[]');
create index deliveries_lane on deliveries (lane, state, seq);
create index deliveries_state on deliveries (state, seq);
create table turns (
  id text primary key, ticket text not null, lane text not null, worker text not null,
  began {big} not null, ended {big} not null default 0, stages text not null default '[]',
  pushes text not null default '[]', reads integer not null default 0, writes integer not null default 0,
  notes text not null default '[]');
create index turns_began on turns (began);
create table repositories (
  lane text primary key, name text not null default '', private integer not null default 1,
  state text not null default 'active', changed {big} not null default 0, cursor {big} not null default 0,
  pushes text not null default '[]', last_turn {big} not null default 0, rate_left integer not null default -1,
  backoff {big} not null default 0, turn text not null default '');
create table installations (
  id {big} primary key, account text not null default '', state text not null default 'active',
  changed {big} not null, paused_until {big} not null default 0);
create table pauses (
  installation {big} not null, resource text not null, until {big} not null, primary key (installation, resource));
create table tallies (
  name text not null, labels text not null, much double precision not null, primary key (name, labels));
create table tallied (seq {serial}, counted text not null);
create table pulses (name text primary key, said_at {big} not null, note text not null);
create table workers (id text primary key, since {big} not null, dead_since {big} not null default 0)
"""
"""The tables of version 3. Its queue was in tables of a library, which are left alone."""

VERSION_3_ROWS = """
insert into pulses (name, said_at, note) values ('schema', 3, '{}');
insert into workers (id, since) values ('gone', 5);
insert into turns (id, ticket, lane, worker, began) values ('t1', '9:b', '7-70', 'gone', 50);
insert into installations (id, changed, paused_until) values (7, 1, 5000), (8, 1, 0);
insert into repositories (lane, cursor, last_turn) values ('7-70', 5, 9), ('7-71', 0, 0);
insert into tallies (name, labels, much) values ('precedent_turns_total', '["done"]', 3);
insert into tallied (counted) values ('[["precedent_turns_total",["done"],2]]')
"""
INSERT_DELIVERY = (
    "insert into deliveries (id, lane, event, action, number, is_pull, comment_id, moved_to, name, private,"
    " received_at, next_at, request, extra, state, begun, turn) values (:id, :lane, 'issues', 'opened', 1, 0, 0, '',"
    " 'octo-org/hello-world', 1, :at, :next_at, 'r', '[]', :state, :begun, :turn)"
)
MAKE_TABLES = """
import sys
from bot.server.database import Database

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


@pytest.fixture
def version_3(empty_url: str) -> Iterator[Database]:
    """A database of version 3 with deliveries in every state, one of them of a worker that is gone."""
    database = Database(empty_url)
    big, serial = "integer", "integer primary key autoincrement"
    with database.transaction() as transaction:
        if database.is_postgres:
            big, serial = "bigint", "bigint generated always as identity primary key"
            transaction.change(f"create schema {POSTGRES_SCHEMA}")
        for statement in (VERSION_3.format(big=big, serial=serial) + ";" + VERSION_3_ROWS).split(";"):
            transaction.change(statement)
        rows = [
            ("9:a", REPOSITORY, 100, 0, "done", 0, "t0"),
            ("9:b", REPOSITORY, 200, 0, "working", 1, "t1"),
            ("9:c", REPOSITORY, 300, 0, "waiting", 0, ""),
            ("9:d", OTHER, 400, machine_clock() + 60_000, "waiting", 0, ""),
            ("9:e", THIRD, 500, 0, "dead", 0, ""),
            ("9:f", THIRD, 600, 0, "dropped", 0, ""),
            ("9:g", FOURTH, 700, 0, "working", 2, "t2"),
        ]
        names = ("id", "lane", "at", "next_at", "state", "begun", "turn")
        transaction.change_each(
            INSERT_DELIVERY,
            [dict(zip(names, (row[0], row[1].text, *row[2:]), strict=True)) for row in rows],
        )
    yield database
    database.close()


def version(database: Database) -> int:
    with database.transaction() as transaction:
        list_tables = (
            "select tablename as name from pg_tables" if database.is_postgres else "select name from sqlite_master"
        )
        tables = {row["name"] for row in transaction.rows(list_tables)}
        table = "heartbeats" if "heartbeats" in tables else "pulses"
        row = transaction.row(f"select said_at from {table} where name = 'schema'")
    assert row is not None
    return int(row["said_at"])


def make_tables_in_parallel(url: str, processes: int = 4) -> list[int]:
    """Create the tables in several processes at the same time; returns their exit codes."""
    command = [sys.executable, "-c", MAKE_TABLES, url]
    running = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for process in running:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in running:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in running:
        process.communicate(timeout=60)
    return [process.returncode for process in running]


def test_each_repository_with_open_deliveries_in_version_3_gets_a_queue_key(version_3: Database) -> None:
    version_3.make_tables()
    inbox = Inbox(version_3, "one", machine_clock)
    assert version(version_3) == SCHEMA_VERSION == 5
    assert keys(inbox) == {REPOSITORY.text, OTHER.text, FOURTH.text}
    assert [row.id for row in reversed(inbox.deliveries())] == ["9:a", "9:b", "9:c", "9:d", "9:e", "9:f", "9:g"]


def test_the_work_of_version_3_continues_and_interrupted_deliveries_come_alone(version_3: Database) -> None:
    version_3.make_tables()
    inbox = Inbox(version_3, "one", machine_clock)
    batches = []
    for _ in range(2):
        work = inbox.begin(take_lease(inbox, REPOSITORY))
        assert work is not None
        batches.append([(each.id, each.begun) for each in work.deliveries])
        assert inbox.end(work, all_done(work), RunReport())
    assert batches == [[("9:b", 2)], [("9:c", 2)]]
    assert inbox.begin(take_lease(inbox, OTHER)) is None, "it is not due yet"
    assert keys(inbox) == {OTHER.text, FOURTH.text}
    assert inbox.put([arrival("b"), arrival("new", THIRD)]) == [False, True]
    assert inbox.begin(take_lease(inbox, THIRD)) is not None


def test_repositories_that_version_3_had_read_count_as_read(version_3: Database) -> None:
    version_3.make_tables()
    rows = Inbox(version_3, "one", machine_clock).installations().repositories()
    assert [(row.repository, row.last_run, row.is_unread, row.threads, row.history) for row in rows] == [
        (REPOSITORY, 9, False, -1, ""),
        (OTHER, 0, True, -1, ""),
    ]


def test_the_counters_of_version_3_continue(version_3: Database) -> None:
    version_3.make_tables()
    inbox = Inbox(version_3, "one", machine_clock)
    assert inbox.counters() == {("precedent_runs_total", ("done",)): 5}
    inbox.count_up({("precedent_runs_total", ("done",)): 1})
    assert inbox.counters() == {("precedent_runs_total", ("done",)): 6}


def test_an_upgrade_runs_only_once(version_3: Database) -> None:
    version_3.make_tables()
    inbox = Inbox(version_3, "one", machine_clock)
    lease = take_lease(inbox, REPOSITORY)
    assert inbox.begin(lease) is not None
    again = Database(version_3.url)
    again.make_tables()
    again.close()
    assert version(version_3) == SCHEMA_VERSION
    assert keys(inbox) == {REPOSITORY.text, OTHER.text, FOURTH.text}
    with version_3.transaction() as transaction:
        assert transaction.row("select lease from queue where key = :key", key=REPOSITORY.text) == {"lease": lease.id}
        assert transaction.rows("select priority from deliveries where priority <> 1") == []


def test_upgraded_tables_of_version_3_equal_new_ones_except_for_unused_columns(
    version_3: Database, empty_url: str
) -> None:
    def shape(database: Database) -> set[tuple[str, str]]:
        """All (table, column) pairs."""
        sql = "select m.name as place, c.name as name from sqlite_master m join pragma_table_info(m.name) c"
        if database.is_postgres:
            sql = "select table_name as place, column_name as name from information_schema.columns"
            sql += f" where table_schema = '{POSTGRES_SCHEMA}'"
        with database.transaction() as transaction:
            return {(row["place"], row["name"]) for row in transaction.rows(sql)}

    version_3.make_tables()
    upgraded = shape(version_3)
    with version_3.transaction() as transaction:
        for table in sorted({table for table, _ in upgraded} - {"sqlite_sequence"}):
            if not version_3.is_postgres and table.startswith(("queue_", "deliveries_", "runs_", "sqlite_")):
                continue  # an index
            transaction.change(f"drop table {table}")
    version_3.make_tables()
    assert upgraded - shape(version_3) == {("repositories", "turn")}
    assert shape(version_3) - upgraded == set()


def test_a_repository_of_version_4_counts_as_private_until_github_says_otherwise(
    database_url: str,
) -> None:
    database = Database(database_url)
    database.make_tables()
    inbox = Inbox(database, "one", machine_clock)
    inbox.installations().store_repository(REPOSITORY, "octo-org/hello-world", private=False)
    with database.transaction() as transaction:
        for change in (
            "alter table repositories drop column visibility",
            "alter table repositories drop column shares",
            "alter table repositories drop column indexed",
            "drop table organisation_changes",
            "drop table organisation_shown",
            "alter table repositories drop column people",
            "update heartbeats set said_at = 4 where name = 'schema'",
        ):
            transaction.change(change)
    database.make_tables()
    (row,) = inbox.installations().repositories()
    assert (row.name, row.visibility, row.shares) == ("octo-org/hello-world", Visibility.PRIVATE, ())
    with database.transaction() as transaction:
        for table in ("organisation_changes", "organisation_shown"):
            assert transaction.rows(f"select * from {table}") == []
    assert version(database) == SCHEMA_VERSION
    database.close()


def test_version_1_is_upgraded_too(version_3: Database) -> None:
    with version_3.transaction() as transaction:
        transaction.change("drop table pauses")
        transaction.change("alter table deliveries drop column nearest")
        transaction.change("update pulses set said_at = 1 where name = 'schema'")
    for _ in range(2):
        version_3.make_tables()
        with version_3.transaction() as transaction:
            assert transaction.rows("select * from pauses") == [{"installation": 7, "resource": "core", "until": 5000}]
            assert transaction.rows("select distinct nearest from deliveries") == [{"nearest": "[]"}]
        assert version(version_3) == SCHEMA_VERSION
    assert keys(Inbox(version_3, "one", machine_clock)) == {REPOSITORY.text, OTHER.text, FOURTH.text}


def test_a_failed_upgrade_leaves_version_3_unchanged(version_3: Database) -> None:
    with version_3.transaction() as transaction:
        transaction.change("drop table workers")
    with pytest.raises(Exception, match="workers"):
        version_3.make_tables()
    assert version(version_3) == 3
    with version_3.transaction() as transaction:
        assert transaction.rows("select ticket from turns") == [{"ticket": "9:b"}]
        transaction.change("create table workers (id text primary key)")
    version_3.make_tables()
    assert version(version_3) == SCHEMA_VERSION


def test_upgrades_after_version_4_only_add_columns_so_that_older_processes_can_finish() -> None:
    statements_after_4 = [
        statement for version, statements in UPGRADES.items() if version > 4 for statement in statements
    ]
    add_column = re.compile(r"alter table \w+ add column \w+ \w+ not null default \S+")
    assert [statement for statement in statements_after_4 if not add_column.fullmatch(statement)] == []
    assert max(RENAMES) == 4


@pytest.mark.slow
def test_processes_that_start_together_upgrade_the_tables_once(version_3: Database) -> None:
    assert make_tables_in_parallel(version_3.url) == [0] * 4
    assert version(version_3) == SCHEMA_VERSION
    assert keys(Inbox(version_3, "one", machine_clock)) == {REPOSITORY.text, OTHER.text, FOURTH.text}


@pytest.mark.slow
def test_processes_that_start_together_create_the_tables_once(empty_url: str) -> None:
    assert make_tables_in_parallel(empty_url) == [0] * 4
    database = Database(empty_url)
    assert version(database) == SCHEMA_VERSION
    assert keys(Inbox(database, "one", machine_clock)) == set()
    database.close()


def test_the_database_of_a_newer_release_is_left_alone(database_url: str) -> None:
    database = Database(database_url)
    database.make_tables()
    with database.transaction() as transaction:
        transaction.change("update heartbeats set said_at = 99 where name = 'schema'")
    with pytest.raises(UserError, match="newer release"):
        database.make_tables()
    assert version(database) == 99
    database.close()
