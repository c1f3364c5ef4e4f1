"""The tables of the queue's database, for SQLite and for PostgreSQL. No text of an issue is in them."""

from __future__ import annotations

OURS = "precedent"
"""Where they are within a PostgreSQL database."""

VERSION = 3
SCHEMA = "schema"
"""The pulse that has the version in place of a time."""

_TABLES = """
create table if not exists deliveries (
  seq {serial}, id text not null unique, lane text not null,
  event text not null, action text not null, number {big} not null, is_pull integer not null,
  comment_id {big} not null, moved_to text not null, name text not null, private integer not null,
  received_at {big} not null, next_at {big} not null, request text not null, extra text not null,
  state text not null default 'waiting', attempts integer not null default 0, begun integer not null default 0,
  finished_at {big} not null default 0, turn text not null default '', reason text not null default '',
  said text not null default '', url text not null default '', matches text not null default '[]',
  nearest text not null default '[]');
create index if not exists deliveries_lane on deliveries (lane, state, seq);
create index if not exists deliveries_state on deliveries (state, seq);
create table if not exists turns (
  id text primary key, ticket text not null, lane text not null, worker text not null,
  began {big} not null, ended {big} not null default 0, stages text not null default '[]',
  pushes text not null default '[]', reads integer not null default 0, writes integer not null default 0,
  notes text not null default '[]');
create index if not exists turns_began on turns (began);
create table if not exists repositories (
  lane text primary key, name text not null default '', private integer not null default 1,
  state text not null default 'active', changed {big} not null default 0, cursor {big} not null default 0,
  pushes text not null default '[]', last_turn {big} not null default 0, rate_left integer not null default -1,
  backoff {big} not null default 0, turn text not null default '');
create table if not exists installations (
  id {big} primary key, account text not null default '', state text not null default 'active',
  changed {big} not null, paused_until {big} not null default 0);
create table if not exists pauses (
  installation {big} not null, resource text not null, until {big} not null, primary key (installation, resource));
create table if not exists tallies (
  name text not null, labels text not null, much double precision not null, primary key (name, labels));
create table if not exists tallied (seq {serial}, counted text not null);
create table if not exists pulses (name text primary key, said_at {big} not null, note text not null);
create table if not exists workers (id text primary key, since {big} not null, dead_since {big} not null default 0)
"""


MOVES = {
    2: "insert into pauses (installation, resource, until) select id, 'core', paused_until from installations"
    " where paused_until > 0 on conflict (installation, resource) do nothing",
    3: "alter table deliveries add column {unless}nearest text not null default '[]'",
}
"""What brings an older version to each newer one, once; ``unless``: what PostgreSQL needs where two begin at once.
Columns that nobody reads any more stay."""


def statements(*, postgres: bool) -> list[str]:
    """What makes the tables that are missing."""
    serial = "bigint generated always as identity primary key" if postgres else "integer primary key autoincrement"
    tables = _TABLES.format(serial=serial, big="bigint" if postgres else "integer")
    return [*([f"create schema if not exists {OURS}"] if postgres else []), *tables.split(";")]
