"""Two versions on one machine, or one after the other: each has files of its own there, and the queue's database says
who may use it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.local_cache.database import CARDS, SESSIONS, note, open_database
from bot.local_cache.local_memory import CACHE_FILE, FETCHED_FILE
from bot.reading.analyzer import ANALYSER_VERSION
from bot.server.database import SCHEMA, VERSION, Database
from tests.local_cache.test_local_memory import checkout, clone, home, remote

__all__ = ["checkout", "clone", "home", "remote"]


def searched(checkout: Path) -> str:
    command = [sys.executable, "-m", "bot", "search", "sessions restart", "--json"]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    finished = subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_names_of_local_files_tell_by_which_versions_they_are_read() -> None:
    mark = f"{CARDS.format}-{ANALYSER_VERSION}"
    assert (mark in CACHE_FILE, mark in FETCHED_FILE) == (True, True)


@pytest.mark.slow
def test_what_another_version_left_a_moment_ago_is_neither_used_nor_touched(checkout: Path, home: Path) -> None:
    ours = searched(checkout)
    (cache,) = (home / "cache/precedent/repositories").iterdir()
    theirs = {cache / "glance-2-3.db": b"of another format", cache / "fetched-2-3": b""}
    for path, data in theirs.items():
        path.write_bytes(data)
    (cache / CACHE_FILE).unlink()
    (cache / FETCHED_FILE).unlink()
    assert searched(checkout) == ours
    assert {path: path.read_bytes() for path in theirs} == theirs


@pytest.mark.slow
def test_a_file_of_another_format_under_our_name_is_made_anew(checkout: Path, home: Path) -> None:
    ours = searched(checkout)
    (cache,) = (home / "cache/precedent/repositories").iterdir()
    with closing(open_database(cache / CACHE_FILE, CARDS)) as database:
        note(database, "format", "2")
    (cache / FETCHED_FILE).unlink()
    assert searched(checkout) == ours


@pytest.mark.slow
def test_logs_of_another_version_lie_in_another_file(checkout: Path, home: Path) -> None:
    told = checkout / "chat.jsonl"
    told.write_text('{"type":"user","sessionId":"s","timestamp":"2026-01-05T12:00:00Z","message":{"role":"user",'
                    '"content":"The zebra fails"}}\n', encoding="utf-8")  # fmt: skip
    command = [sys.executable, "-m", "bot", "search", "zebra", "--kind", "session", "--logs", str(told)]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    finished = subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    (held,) = (home / "cache/precedent/logs").glob("*.db")
    assert held.name.endswith(f".{SESSIONS.format.replace(' ', '-')}.db")


@pytest.mark.slow
def test_a_database_that_a_newer_server_has_used_is_refused_with_both_numbers(tmp_path: Path) -> None:
    database = Database.in_folder(tmp_path)
    database.make_tables()
    with database.transaction() as spoilt:
        spoilt.change("update heartbeats set said_at = :version where name = :name", version=VERSION + 1, name=SCHEMA)
    with pytest.raises(UserError) as caught:
        database.make_tables()
    database.close()
    assert str(caught.value) == (
        f"the database has version {VERSION + 1}, which a newer release made; this one reads up to {VERSION}; "
        "install that release, or restore a backup from before it"
    )
