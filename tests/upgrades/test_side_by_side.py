"""Two versions on one machine, at once or in turn: each has its own files, and the queue's database says which
versions may use it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bot.errors import UserError
from bot.local_cache.database import CARDS_SCHEMA, SESSIONS_SCHEMA, note, open_database
from bot.local_cache.local_memory import CACHE_FILE, FETCHED_FILE
from bot.reading.analyzer import ANALYSER_VERSION
from bot.server.database import SCHEMA_HEARTBEAT, SCHEMA_VERSION, Database
from tests.local_cache.test_local_memory import checkout, clone, home, remote

__all__ = ["checkout", "clone", "home", "remote"]


def search(checkout: Path) -> str:
    command = [sys.executable, "-m", "bot", "search", "sessions restart", "--json"]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    finished = subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished.stdout


def test_the_names_of_local_files_contain_the_versions_that_read_them() -> None:
    mark = f"{CARDS_SCHEMA.format}-{ANALYSER_VERSION}"
    assert (mark in CACHE_FILE, mark in FETCHED_FILE) == (True, True)


@pytest.mark.slow
def test_files_that_another_version_just_left_are_neither_used_nor_touched(checkout: Path, home: Path) -> None:
    results = search(checkout)
    (cache,) = (home / "cache/precedent/repositories").iterdir()
    foreign_files = {cache / "glance-2-3.db": b"of another format", cache / "fetched-2-3": b""}
    for path, data in foreign_files.items():
        path.write_bytes(data)
    (cache / CACHE_FILE).unlink()
    (cache / FETCHED_FILE).unlink()
    assert search(checkout) == results
    assert {path: path.read_bytes() for path in foreign_files} == foreign_files


@pytest.mark.slow
def test_a_file_of_another_format_under_our_name_is_recreated(checkout: Path, home: Path) -> None:
    results = search(checkout)
    (cache,) = (home / "cache/precedent/repositories").iterdir()
    with closing(open_database(cache / CACHE_FILE, CARDS_SCHEMA)) as database:
        note(database, "format", "2")
    (cache / FETCHED_FILE).unlink()
    assert search(checkout) == results


@pytest.mark.slow
def test_each_version_caches_logs_in_a_separate_file(checkout: Path, home: Path) -> None:
    transcript = checkout / "chat.jsonl"
    transcript.write_text('{"type":"user","sessionId":"s","timestamp":"2026-01-05T12:00:00Z","message":{"role":"user",'
                    '"content":"The zebra fails"}}\n', encoding="utf-8")  # fmt: skip
    command = [sys.executable, "-m", "bot", "search", "zebra", "--kind", "session", "--logs", str(transcript)]
    environ = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
    finished = subprocess.run(command, cwd=checkout, env=environ, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    (cache,) = (home / "cache/precedent/logs").glob("*.db")
    assert cache.name.endswith(f".{SESSIONS_SCHEMA.format.replace(' ', '-')}.db")


@pytest.mark.slow
def test_a_database_that_a_newer_server_has_used_is_refused_with_both_numbers(tmp_path: Path) -> None:
    database = Database.in_folder(tmp_path)
    database.make_tables()
    with database.transaction() as changes:
        changes.change(
            "update heartbeats set said_at = :version where name = :name",
            version=SCHEMA_VERSION + 1,
            name=SCHEMA_HEARTBEAT,
        )
    with pytest.raises(UserError) as caught:
        database.make_tables()
    database.close()
    assert str(caught.value) == (
        f"the database has version {SCHEMA_VERSION + 1}, which a newer release made;"
        f" this one reads up to {SCHEMA_VERSION}; "
        "install that release, or restore a backup from before it"
    )
