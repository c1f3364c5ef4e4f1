"""All tables of the server's database, in one version: it is never upgraded, as the memories are on their branches."""

from __future__ import annotations

POSTGRES_SCHEMA = "precedent"
"""The schema of our tables in PostgreSQL."""

SCHEMA_VERSION = 9
SCHEMA_HEARTBEAT = "schema"
"""The heartbeat whose time column holds the version of the tables."""

_TABLES_SQL = """
create table deliveries (
  seq {serial}, id text not null unique, repository text not null,
  event text not null, action text not null, number {big} not null, is_pull integer not null,
  comment_id {big} not null, moved_to text not null, name text not null,
  received_at {big} not null, next_at {big} not null, request text not null, extra text not null,
  state text not null default 'waiting', attempts integer not null default 0, begun integer not null default 0,
  finished_at {big} not null default 0, run text not null default '', reason text not null default '',
  said text not null default '', url text not null default '', matches text not null default '[]',
  nearest text not null default '[]', priority integer not null default 1);
create index deliveries_repository on deliveries (repository, state, seq);
create index deliveries_state on deliveries (state, seq);
create table queue (
  key text primary key, priority integer not null, since {big} not null, due {big} not null, ready integer not null,
  history integer not null default 0, owner text not null default '', lease text not null default '',
  slow integer not null default 0, installation {big} not null default 0){often};
create index queue_urgent on queue (history, priority, since) where ready = 1;
create index queue_oldest on queue (history, since) where ready = 1;
create index queue_histories on queue (key) where history = 1 and lease <> '';
create index queue_due on queue (due) where ready = 0;
create index queue_owner on queue (owner) where owner <> '';
create table runs (
  id text primary key, repository text not null, worker text not null,
  began {big} not null, ended {big} not null default 0, stages text not null default '[]',
  pushes text not null default '[]', reads integer not null default 0, writes integer not null default 0,
  notes text not null default '[]');
create index runs_began on runs (began);
create index runs_repository on runs (repository, began);
create table repositories (
  key text primary key, name text not null default '',
  state text not null default 'active', changed {big} not null default 0, cursor {big} not null default 0,
  pushes text not null default '[]', last_run {big} not null default 0,
  backoff {big} not null default 0, unread integer not null default 1, threads {big} not null default -1,
  history text not null default '', visibility text not null default 'private',
  shares text not null default '[]', sharing integer not null default 1,
  people text not null default '[]', former_names text not null default '', indexed integer not null default 0);
create table organisation_changes (
  seq {serial}, installation {big} not null, repository text not null, threads text not null,
  changed_at {big} not null, attempts integer not null default 0, next_at {big} not null default 0);
create index organisation_changes_installation on organisation_changes (installation, seq);
create table organisation_shown (
  repository text not null, thread text not null, other_repository {big} not null, other_thread text not null,
  primary key (repository, thread, other_repository, other_thread));
create index organisation_shown_other on organisation_shown (other_repository, other_thread);
create table installations (
  id {big} primary key, account text not null default '', state text not null default 'active',
  changed {big} not null);
create table audit (
  seq {serial}, acted_at {big} not null, who text not null, action text not null, asked {big} not null,
  done {big} not null, chosen text not null, why text not null);
create table pauses (
  installation {big} not null, resource text not null, until {big} not null, primary key (installation, resource));
create table budgets (
  installation {big} not null, resource text not null, allowed integer not null, remaining integer not null,
  ends {big} not null, primary key (installation, resource));
create table tallies (
  name text not null, labels text not null, much double precision not null, primary key (name, labels));
create table tallied (seq {serial}, counted text not null);
create table digests (repository text primary key, made_at {big} not null, told text not null);
create table heartbeats (name text primary key, said_at {big} not null, note text not null)
"""
_HOT_TABLE_OPTIONS = " with (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_threshold = 500)"
"""Storage options in PostgreSQL for a table whose rows change all the time."""


def statements(*, postgres: bool) -> list[str]:
    """Return the statements that create the tables."""
    serial = "bigint generated always as identity primary key" if postgres else "integer primary key autoincrement"
    tables = _TABLES_SQL.format(
        serial=serial, big="bigint" if postgres else "integer", often=_HOT_TABLE_OPTIONS if postgres else ""
    )
    return tables.split(";")
