"""A short session of each agent, and where the agent keeps it in the home folder."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

from tests.sources.session_lines import FOLDER

TOP = "/work/app"
"""The checkout in the fixtures."""

CODEX = ".codex/sessions/2026/03/04/rollout-2026-03-04T09-00-00"


class AgentSession(NamedTuple):
    """The fixture of an agent: its file, where that is below the home folder, and what is read of it.

    ``path`` may name the checkout as ``{dashes}``, ``{hash}`` or ``{key}``. ``messages`` are speakers (``u`` or ``a``)
    and texts.
    """

    agent: str
    fixture: str
    path: str
    session: str
    messages: tuple[str, ...]
    files: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.fixture


SESSIONS = (
    AgentSession(
        "Claude Code",
        "claude_code.jsonl",
        ".claude/projects/{dashes}/c-1.jsonl",
        "c-1",
        (
            "u Add retries to the client",
            "a I retry with jitter.",
            "u And log each attempt",
            "a How many attempts?\n- Three: as before\n- Five: slower",
            "u Five",
            "a Retry five times",
        ),
        ("net/client.py", "/data/n.ipynb"),
    ),
    AgentSession(
        "Codex",
        "codex.jsonl",
        f"{CODEX}-r-1.jsonl",
        "r-1",
        ("u Why does the login loop?", "a The old cookie shadows the new one."),
        ("auth/cookie.py", "tests/new.py"),
    ),
    AgentSession(
        "Codex",
        "codex_early.jsonl",
        f"{CODEX}-e-1.jsonl",
        "e-1",
        ("u Why is the pool exhausted?", "a A connection is never returned."),
        ("net/pool.py",),
    ),
    AgentSession(
        "Codex",
        "codex_fork.jsonl",
        ".codex/archived_sessions/rollout-2026-03-04T10-00-00-f-1.jsonl",
        "f-1",
        (
            "u Why does the login loop?",
            "u Try the other cookie",
            "a Which cookie wins?\n- The new one: safer",
            "u The new one",
        ),
    ),
    AgentSession(
        "Gemini CLI",
        "gemini_cli.jsonl",
        ".gemini/tmp/{hash}/chats/session-2026-03-06T09-00-g-1.jsonl",
        "g-1",
        (
            "u Where is the cache?",
            "a In the shared folder.",
            "a Shall I empty it?",
            "u Only the old half",
            "a Half of it is gone.",
        ),
        ("/work/app/cache.py",),
    ),
    AgentSession(
        "Gemini CLI",
        "gemini_subagent.jsonl",
        ".gemini/tmp/{hash}/chats/g-1/sub-1.jsonl",
        "g-1",
        ("a Count the entries", "a There are ninety entries."),
    ),
    AgentSession(
        "Gemini CLI",
        "gemini_cli_early.json",
        ".gemini/tmp/{hash}/chats/session-2026-03-05T09-00-w-1.json",
        "w-1",
        ("u Which driver do we use?", "a The pure one.", "a It needs no compiler."),
    ),
    AgentSession(
        "Qwen Code",
        "qwen_code.jsonl",
        ".qwen/projects/{dashes}/chats/q-1.jsonl",
        "q-1",
        (
            "u Raise the quota",
            "a I look at the limits.",
            "u Only for uploads",
            "a How large?\n- 1 GB: doubled",
            "u 1 GB",
        ),
        ("limits.py",),
    ),
    AgentSession(
        "Copilot CLI",
        "copilot_cli.jsonl",
        ".copilot/session-state/p-1/events.jsonl",
        "p-1",
        (
            "u Build the index faster",
            "a I sort the entries first.",
            "a What of the old index?\n- Keep it\n- Rebuild it",
            "u Rebuild it",
        ),
        ("index.py",),
    ),
    AgentSession(
        "Cursor",
        "cursor.jsonl",
        ".cursor/projects/{key}/agent-transcripts/k-1/k-1.jsonl",
        "k-1",
        ("u Rename the column", "a I write a migration."),
        ("/work/app/migrations/7.sql",),
    ),
    AgentSession(
        "opencode",
        "opencode.json",
        ".local/share/opencode/opencode.db",
        "ses_1",
        (
            "u Paginate the list",
            "a Pages of fifty.\n\nWhich order?\n- Newest first: as now",
            "u Newest first",
        ),
        ("list.py",),
    ),
    AgentSession(
        "pi",
        "pi.jsonl",
        ".pi/agent/sessions/-{dashes}--/2026-03-01T10-00-00_5b1c.jsonl",
        "5b1c",
        ("u Login loops after upgrade\nPlease look into it.", "a The cookie path changed."),
        ("auth/cookie.py", "tests/test_cookie.py"),
    ),
    AgentSession(
        "hooks",
        "hooks.jsonl",
        "{top}/.claude/logging/2026-03-02.jsonl",
        "h-1",
        ("u How do we rotate the webhook secret?", "a Two secrets are accepted while one is replaced."),
    ),
)


def text_of(session: AgentSession, top: str = TOP) -> str:
    """The text of a fixture, as the agent writes it in a checkout."""
    return (FOLDER / session.fixture).read_text(encoding="utf-8").replace(TOP, top)


def dashes(path: Path) -> str:
    """A path as agents in JavaScript make a name of it: a dash for each of its UTF-16 units but letters and digits."""
    units = path.as_posix().encode("utf-16-le")
    letters = (units[at : at + 2].decode("utf-16-le", "replace") for at in range(0, len(units), 2))
    return "".join(letter if re.fullmatch("[A-Za-z0-9]", letter) else "-" for letter in letters)


def put(session: AgentSession, home: Path, top: Path) -> Path:
    """Write a session where its agent keeps it; return the path."""
    path = home / session.path.format(
        top=top,
        dashes=dashes(top),
        hash=sha256(str(top).encode()).hexdigest(),
        key=re.sub("[^A-Za-z0-9]+", "-", str(top)).strip("-"),
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    text = text_of(session, str(top))
    if path.suffix == ".db":
        write_database(path, json.loads(text))
    else:
        path.write_text(text, encoding="utf-8")
    return path


SCHEMA = """
CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, project_id TEXT NOT NULL, parent_id TEXT,
    directory TEXT NOT NULL, title TEXT NOT NULL, time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT NOT NULL, time_created INTEGER NOT NULL,
    time_updated INTEGER NOT NULL, data TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT NOT NULL, session_id TEXT NOT NULL,
    time_created INTEGER NOT NULL, time_updated INTEGER NOT NULL, data TEXT NOT NULL);
"""
"""The columns of opencode's database that matter here."""


def write_database(path: Path, export: dict[str, Any]) -> None:
    """Store a session in opencode's database, from the form in which it exports one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    info = export["info"]
    with closing(sqlite3.connect(path)) as database, database:
        database.executescript(SCHEMA)
        times = (info["time"]["created"], info["time"]["updated"])
        row = (info["id"], "p", info.get("parentID"), info["directory"], info["title"], *times)
        database.execute("INSERT OR REPLACE INTO session VALUES (?, ?, ?, ?, ?, ?, ?)", row)
        for message in export["messages"]:
            created = message["info"]["time"]["created"]
            data = {key: value for key, value in message["info"].items() if key not in ("id", "sessionID")}
            values = (message["info"]["id"], info["id"], created, created, json.dumps(data))
            database.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", values)
            for part in message["parts"]:
                data = {key: value for key, value in part.items() if key not in ("id", "sessionID", "messageID")}
                ids = (part["id"], message["info"]["id"], info["id"])
                part_row = (*ids, created, created, json.dumps(data))
                database.execute("INSERT OR REPLACE INTO part VALUES (?, ?, ?, ?, ?, ?)", part_row)


def claude_path(home: Path, folder: Path, name: str = "c-1") -> Path:
    """The path of a transcript of Claude Code that was started in a folder."""
    return home / ".claude/projects" / dashes(folder) / f"{name}.jsonl"


def codex_path(home: Path, name: str = "r-1") -> Path:
    return home / f".codex/sessions/2026/03/04/rollout-2026-03-04T09-00-00-{name}.jsonl"


def claude_line(text: str, folder: Path | None, session: str = "c-1", **more: object) -> dict[str, Any]:
    """A line of a transcript of Claude Code."""
    folder_field = {} if folder is None else {"cwd": str(folder)}
    message = {"role": "user", "content": text}
    at = "2026-03-03T09:00:00Z"
    return {"type": "user", "sessionId": session, "timestamp": at, **folder_field, "message": message} | more


def codex_lines(text: str, folder: Path, session: str = "r-1", branch: str = "") -> list[dict[str, Any]]:
    """The lines of a rollout of Codex."""
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    header = {"id": session, "cwd": str(folder), "git": {"branch": branch}}
    at = "2026-03-04T09:00:00Z"
    return [
        {"timestamp": at, "type": "session_meta", "payload": header},
        {"timestamp": at, "type": "response_item", "payload": message},
    ]
