"""The tables of earlier versions are brought to today's: once, with nothing lost, whoever starts at the same time."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.domain.organisation import Visibility
from bot.errors import UserError
from bot.server.database import OURS, RENAMES, UPGRADES, VERSION, Database, machine_clock
from bot.server.inbox import Inbox
from bot.server.model import RepositoryKey, RunReport
from tests.server.queues import REPOSITORY, all_done, arrival, keys, leased

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
"""The tables of version 3. Its queue was in tables of a library, which stay where they are."""

NOTED = """
insert into pulses (name, said_at, note) values ('schema', 3, '{}');
insert into workers (id, since) values ('gone', 5);
insert into turns (id, ticket, lane, worker, began) values ('t1', '9:b', '7-70', 'gone', 50);
insert into installations (id, changed, paused_until) values (7, 1, 5000), (8, 1, 0);
insert into repositories (lane, cursor, last_turn) values ('7-70', 5, 9), ('7-71', 0, 0);
insert into tallies (name, labels, much) values ('precedent_turns_total', '["done"]', 3);
insert into tallied (counted) values ('[["precedent_turns_total",["done"],2]]')
"""
_DELIVERY = (
    "insert into deliveries (id, lane, event, action, number, is_pull, comment_id, moved_to, name, private,"
    " received_at, next_at, request, extra, state, begun, turn) values (:id, :lane, 'issues', 'opened', 1, 0, 0, '',"
    " 'octo-org/hello-world', 1, :at, :next_at, 'r', '[]', :state, :begun, :turn)"
)
MAKING = """
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
def past(empty_url: str) -> Iterator[Database]:
    """A database of version 3 with deliveries in each state; the worker of one of them is gone."""
    database = Database(empty_url)
    big, serial = "integer", "integer primary key autoincrement"
    with database.transaction() as making:
        if database.is_postgres:
            big, serial = "bigint", "bigint generated always as identity primary key"
            making.change(f"create schema {OURS}")
        for statement in (VERSION_3.format(big=big, serial=serial) + ";" + NOTED).split(";"):
            making.change(statement)
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
        making.change_each(
            _DELIVERY,
            [dict(zip(names, (row[0], row[1].text, *row[2:]), strict=True)) for row in rows],
        )
    yield database
    database.close()


def version(database: Database) -> int:
    with database.transaction() as asking:
        there = "select tablename as name from pg_tables" if database.is_postgres else "select name from sqlite_master"
        tables = {row["name"] for row in asking.rows(there)}
        table = "heartbeats" if "heartbeats" in tables else "pulses"
        row = asking.row(f"select said_at from {table} where name = 'schema'")
    assert row is not None
    return int(row["said_at"])


def made_at_once(url: str, processes: int = 4) -> list[int]:
    """So many processes make the tables at the same time; their exit codes."""
    command = [sys.executable, "-c", MAKING, url]
    started = [
        subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(processes)
    ]
    for each in started:
        assert each.stdout is not None
        assert each.stdout.readline() == "ready\n"
    for each in started:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    for each in started:
        each.communicate(timeout=60)
    return [each.returncode for each in started]


def test_what_waits_or_was_worked_on_in_version_3_has_a_key_for_each_repository(past: Database) -> None:
    past.make_tables()
    inbox = Inbox(past, "one", machine_clock)
    assert version(past) == VERSION == 5
    assert keys(inbox) == {REPOSITORY.text, OTHER.text, FOURTH.text}
    assert [row.id for row in reversed(inbox.deliveries())] == ["9:a", "9:b", "9:c", "9:d", "9:e", "9:f", "9:g"]


def test_the_work_of_version_3_goes_on_and_what_was_worked_on_comes_alone(past: Database) -> None:
    past.make_tables()
    inbox = Inbox(past, "one", machine_clock)
    came = []
    for _ in range(2):
        work = inbox.begin(leased(inbox, REPOSITORY))
        assert work is not None
        came.append([(each.id, each.begun) for each in work.deliveries])
        assert inbox.end(work, all_done(work), RunReport())
    assert came == [[("9:b", 2)], [("9:c", 2)]]
    assert inbox.begin(leased(inbox, OTHER)) is None, "it is not due yet"
    assert keys(inbox) == {OTHER.text, FOURTH.text}
    assert inbox.put([arrival("b"), arrival("new", THIRD)]) == [False, True]
    assert inbox.begin(leased(inbox, THIRD)) is not None


def test_what_version_3_had_read_counts_as_read(past: Database) -> None:
    past.make_tables()
    rows = Inbox(past, "one", machine_clock).installations().repositories()
    assert [(row.repository, row.last_run, row.is_unread, row.threads, row.history) for row in rows] == [
        (REPOSITORY, 9, False, -1, ""),
        (OTHER, 0, True, -1, ""),
    ]


def test_what_version_3_counted_is_counted_on(past: Database) -> None:
    past.make_tables()
    inbox = Inbox(past, "one", machine_clock)
    assert inbox.counters() == {("precedent_runs_total", ("done",)): 5}
    inbox.count_up({("precedent_runs_total", ("done",)): 1})
    assert inbox.counters() == {("precedent_runs_total", ("done",)): 6}


def test_an_upgrade_is_made_once(past: Database) -> None:
    past.make_tables()
    inbox = Inbox(past, "one", machine_clock)
    lease = leased(inbox, REPOSITORY)
    assert inbox.begin(lease) is not None
    again = Database(past.url)
    again.make_tables()
    again.close()
    assert version(past) == VERSION
    assert keys(inbox) == {REPOSITORY.text, OTHER.text, FOURTH.text}
    with past.transaction() as asking:
        assert asking.row("select lease from queue where key = :key", key=REPOSITORY.text) == {"lease": lease.id}
        assert asking.rows("select priority from deliveries where priority <> 1") == []


def test_tables_of_version_3_are_like_new_ones_but_for_columns_that_nobody_uses(past: Database, empty_url: str) -> None:
    def shape(database: Database) -> set[tuple[str, str]]:
        """Tables and their columns."""
        sql = "select m.name as place, c.name as name from sqlite_master m join pragma_table_info(m.name) c"
        if database.is_postgres:
            sql = "select table_name as place, column_name as name from information_schema.columns"
            sql += f" where table_schema = '{OURS}'"
        with database.transaction() as asking:
            return {(row["place"], row["name"]) for row in asking.rows(sql)}

    past.make_tables()
    upgraded = shape(past)
    with past.transaction() as forgetting:
        for table in sorted({place for place, _ in upgraded} - {"sqlite_sequence"}):
            if not past.is_postgres and table.startswith(("queue_", "deliveries_", "runs_", "sqlite_")):
                continue  # an index
            forgetting.change(f"drop table {table}")
    past.make_tables()
    assert upgraded - shape(past) == {("repositories", "turn")}
    assert shape(past) - upgraded == set()


def test_a_repository_of_version_4_counts_as_private_and_shares_with_none_until_github_says_more(
    database_url: str,
) -> None:
    database = Database(database_url)
    database.make_tables()
    inbox = Inbox(database, "one", machine_clock)
    inbox.installations().store_repository(REPOSITORY, "octo-org/hello-world", private=False)
    with database.transaction() as changing:
        for change in (
            "alter table repositories drop column visibility",
            "alter table repositories drop column shares",
            "alter table repositories drop column indexed",
            "drop table organisation_changes",
            "drop table organisation_shown",
            "alter table repositories drop column people",
            "update heartbeats set said_at = 4 where name = 'schema'",
        ):
            changing.change(change)
    database.make_tables()
    (row,) = inbox.installations().repositories()
    assert (row.name, row.visibility, row.shares) == ("octo-org/hello-world", Visibility.PRIVATE, ())
    with database.transaction() as asking:
        for table in ("organisation_changes", "organisation_shown"):
            assert asking.rows(f"select * from {table}") == []
    assert version(database) == VERSION
    database.close()


def test_version_1_is_brought_over_as_well(past: Database) -> None:
    with past.transaction() as changing:
        changing.change("drop table pauses")
        changing.change("alter table deliveries drop column nearest")
        changing.change("update pulses set said_at = 1 where name = 'schema'")
    for _ in range(2):
        past.make_tables()
        with past.transaction() as asking:
            assert asking.rows("select * from pauses") == [{"installation": 7, "resource": "core", "until": 5000}]
            assert asking.rows("select distinct nearest from deliveries") == [{"nearest": "[]"}]
        assert version(past) == VERSION
    assert keys(Inbox(past, "one", machine_clock)) == {REPOSITORY.text, OTHER.text, FOURTH.text}


def test_an_upgrade_that_fails_leaves_version_3_as_it_was(past: Database) -> None:
    with past.transaction() as spoiling:
        spoiling.change("drop table workers")
    with pytest.raises(Exception, match="workers"):
        past.make_tables()
    assert version(past) == 3
    with past.transaction() as mending:
        assert mending.rows("select ticket from turns") == [{"ticket": "9:b"}]
        mending.change("create table workers (id text primary key)")
    past.make_tables()
    assert version(past) == VERSION


def test_upgrades_from_version_4_on_only_add_so_that_older_processes_can_finish_meanwhile() -> None:
    later = [statement for version, statements in UPGRADES.items() if version > 4 for statement in statements]
    adds = re.compile(r"alter table \w+ add column \w+ \w+ not null default \S+")
    assert [statement for statement in later if not adds.fullmatch(statement)] == []
    assert max(RENAMES) == 4


@pytest.mark.slow
def test_processes_that_start_at_once_upgrade_the_tables_once(past: Database) -> None:
    assert made_at_once(past.url) == [0] * 4
    assert version(past) == VERSION
    assert keys(Inbox(past, "one", machine_clock)) == {REPOSITORY.text, OTHER.text, FOURTH.text}


@pytest.mark.slow
def test_processes_that_start_at_once_make_the_tables_once(empty_url: str) -> None:
    assert made_at_once(empty_url) == [0] * 4
    database = Database(empty_url)
    assert version(database) == VERSION
    assert keys(Inbox(database, "one", machine_clock)) == set()
    database.close()


def test_the_database_of_a_newer_release_is_left_alone(database_url: str) -> None:
    database = Database(database_url)
    database.make_tables()
    with database.transaction() as changing:
        changing.change("update heartbeats set said_at = 99 where name = 'schema'")
    with pytest.raises(UserError, match="newer release"):
        database.make_tables()
    assert version(database) == 99
    database.close()
