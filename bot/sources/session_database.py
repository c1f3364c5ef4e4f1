"""Reads the database of opencode, in which each session is found like a file of its own.

https://github.com/anomalyco/opencode/blob/dev/packages/opencode/src/session/session.sql.ts
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from bot.sources.session_files import SessionFile

MAX_SESSIONS = 10_000
MAX_MESSAGES = 50_000
MAX_PARTS = 500_000
MAX_PART_BYTES = 1 << 20
"""Maximum bytes of a part to read; a longer one is the output of a tool."""

_MAX_STEPS = 20_000
"""Calls of the progress handler, each after 10,000 steps of SQLite's machine: a prepared file cannot stop a search."""

_NAME = re.compile(r"opencode[A-Za-z0-9_-]{0,50}\.db")

_SESSIONS_SQL = """
SELECT s.id, s.directory, max(s.time_updated, coalesce(max(m.time_updated), 0)), count(m.id)
FROM session s LEFT JOIN message m ON m.session_id = s.id GROUP BY s.id ORDER BY s.time_updated DESC LIMIT ?
"""
_MESSAGES_SQL = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id LIMIT ?"
_PARTS_SQL = """
SELECT message_id, data FROM part
WHERE session_id = ? AND length(data) <= ?
AND CASE WHEN json_valid(data) THEN json_extract(data, '$.type') END IN ('text', 'tool') ORDER BY id LIMIT ?
"""


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


def read_database(file: SessionFile) -> dict[str, Any]:
    """Return a session in the form in which opencode exports it. Raises OSError."""
    key = file.path[len(file.database) + 1 :]
    with _opened(file.database) as database:
        parent = database.execute("SELECT parent_id FROM session WHERE id = ?", (key,)).fetchone()
        messages: dict[str, dict[str, Any]] = {
            message: {"info": _object(data), "parts": []}
            for message, data in database.execute(_MESSAGES_SQL, (key, MAX_MESSAGES))
        }
        for message, data in database.execute(_PARTS_SQL, (key, MAX_PART_BYTES, MAX_PARTS)):
            if message in messages:
                messages[message]["parts"].append(_object(data))
    info = {"id": key, "directory": file.folder, "parentID": parent[0] if parent else None}
    return {"info": info, "messages": list(messages.values())}


@contextmanager
def _opened(path: str) -> Iterator[sqlite3.Connection]:
    """The database for reading. Raises OSError for whatever is wrong with it."""
    if Path(path).is_symlink():
        raise OSError(f"{path} is a symlink")
    try:
        with closing(sqlite3.connect(f"{Path(path).as_uri()}?mode=ro", uri=True, timeout=1)) as database:
            steps = iter(range(_MAX_STEPS))
            database.set_progress_handler(lambda: next(steps, None) is None, 10_000)
            database.execute("PRAGMA trusted_schema = OFF")
            yield database
    except sqlite3.Error as error:
        raise OSError(f"no database of opencode that can be read: {error}") from error


def _object(data: Any) -> dict[str, Any]:
    with suppress(ValueError, TypeError, RecursionError):
        fields = json.loads(data)
        return fields if isinstance(fields, dict) else {}
    return {}


def _is_storable(text: str) -> bool:
    return 0 < len(text) <= 4_096 and text.isprintable()
