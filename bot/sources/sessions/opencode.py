"""Reads the database of opencode, in which each session is found like a file of its own.

https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/session.sql.ts
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

MAX_SESSIONS = 10_000
MAX_MESSAGES = 50_000
MAX_PARTS = 500_000
MAX_PART_BYTES = 1 << 20
"""Maximum bytes of a part to read; a longer one is the output of a tool."""

MAX_SESSION_BYTES = 64 << 20
"""Maximum bytes of the messages and of the parts of a session, each; the first ones are read."""

MAX_SECONDS = 3.0
"""For all queries of a reading: a prepared file cannot stop a search."""

_STEPS = 1_000
"""Steps of SQLite's machine between two looks at the clock."""

_NAME = re.compile(r"opencode[A-Za-z0-9_-]{0,50}\.db")

_SESSIONS_SQL = """
SELECT s.id, s.directory, max(s.time_updated, coalesce(max(m.time_updated), 0)), count(m.id)
FROM session s LEFT JOIN message m ON m.session_id = s.id WHERE length(s.directory) <= 4096
GROUP BY s.id ORDER BY s.time_updated DESC LIMIT ?
"""
_MESSAGES_SQL = "SELECT id, data, time_created FROM message WHERE session_id = ? LIMIT ?"
_PARTS_SQL = """
SELECT message_id, data, id FROM part
WHERE session_id = ? AND length(data) <= ?
AND CASE WHEN json_valid(data) THEN json_extract(data, '$.type') END IN ('text', 'tool') LIMIT ?
"""
"""Sorted by us: a sorter of SQLite would read all rows before the first."""


class StoredSession(NamedTuple):
    """A session in a database. ``updated_ms`` is in milliseconds since 1970, ``messages`` is a number."""

    id: str
    folder: str
    updated_ms: int
    messages: int


def is_database(path: str) -> bool:
    """Whether a file has the name of opencode's database."""
    return _NAME.fullmatch(path.rpartition("/")[2]) is not None


def stored_sessions(path: str) -> list[StoredSession]:
    """Return the sessions in a database, the newest first. Raises OSError."""
    with _opened(path) as database:
        rows = database.execute(_SESSIONS_SQL, (MAX_SESSIONS,)).fetchall()
    return [
        StoredSession(*row)
        for row in rows
        if all(isinstance(text, str) and _is_storable(text) for text in row[:2]) and isinstance(row[2], int)
    ]


def read_stored(path: str, key: str) -> dict[str, Any]:
    """Return the session with this id in the form in which opencode exports it. Raises OSError."""
    with _opened(path) as database:
        rows = database.execute("SELECT directory, parent_id FROM session WHERE id = ?", (key,)).fetchall()
        found = list(_first_bytes(database.execute(_MESSAGES_SQL, (key, MAX_MESSAGES))))
        parts = list(_first_bytes(database.execute(_PARTS_SQL, (key, MAX_PART_BYTES, MAX_PARTS))))
    messages: dict[str, dict[str, Any]] = {
        message: {"info": _object(data), "parts": []}
        for message, data, _ in sorted(found, key=lambda row: (str(row[2]).zfill(20), row[0]))
    }
    for message, data, _ in sorted(parts, key=lambda row: str(row[2])):
        if message in messages:
            messages[message]["parts"].append(_object(data))
    folder, parent = rows[0] if rows else ("", None)
    info = {"id": key, "directory": folder, "parentID": parent}
    return {"info": info, "messages": list(messages.values())}


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """The database for reading. Raises OSError for whatever is wrong with it."""
    if Path(path).is_symlink():
        raise OSError(f"{path} is a symlink")
    try:
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=1)) as database:
            deadline = monotonic() + MAX_SECONDS
            database.set_progress_handler(lambda: monotonic() > deadline, _STEPS)
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.Error as error:
        raise OSError(f"no database of opencode that can be read: {error}") from error


def _first_bytes(rows: Iterable[tuple[str, Any, Any]]) -> Iterator[tuple[str, Any, Any]]:
    room = MAX_SESSION_BYTES
    for key, data, order in rows:
        room -= len(data) if isinstance(data, str | bytes) else 0
        if room < 0:
            return
        yield str(key), data, order


def _object(data: Any) -> dict[str, Any]:
    with suppress(ValueError, TypeError, RecursionError):
        fields = json.loads(data)
        return fields if isinstance(fields, dict) else {}
    return {}


def _is_storable(text: str) -> bool:
    return 0 < len(text) <= 4_096 and text.isprintable()
