"""Finds the usual folders in which coding agents keep the sessions of a checkout.

Imports little, as every search from a shell checks for such folders.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_NON_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_MAX_PATH_CHARS = 4_096


class SessionFolder(NamedTuple):
    """A folder at ``path`` and the ``patterns`` of the transcripts in it.

    ``shown`` is how a message names it. ``is_own``: a transcript without a working folder belongs to this checkout; in
    other folders it belongs to none. ``is_in_checkout``: all of them belong to it, whatever folder they name.
    """

    path: str
    patterns: tuple[str, ...]
    shown: str
    is_own: bool = False
    is_in_checkout: bool = False


def default_folders(top: Path) -> tuple[SessionFolder, ...]:
    """Return the existing folders that may hold sessions of the checkout at ``top``, perhaps among others.

    Claude Code: a folder of ``~/.claude/projects`` for each working folder, which is named after its path. Codex:
    ``~/.codex/sessions/YYYY/MM/DD``. Gemini: ``~/.gemini/tmp/NAME/chats``. Hook logs: ``.claude/logging``.
    """
    return tuple(folder for find in (_hook_logs, _claude, _codex, _gemini) for folder in find(top))


def _hook_logs(top: Path) -> Iterator[SessionFolder]:
    folder = top / ".claude" / "logging"
    if folder.is_dir() and not folder.is_symlink():
        yield SessionFolder(str(folder), ("**/*.jsonl", "**/*.log"), ".claude/logging", is_in_checkout=True)


def _claude(top: Path) -> Iterator[SessionFolder]:
    projects = _agent_folder("CLAUDE_CONFIG_DIR", ".claude", "projects")
    own = _NON_ALPHANUMERIC.sub("-", str(top))
    for name in _list_names(projects):
        if name == own or name.startswith(f"{own}-"):  # for the checkout, or for a folder in it
            path = f"{projects}/{name}"
            yield SessionFolder(path, ("**/*.jsonl",), _abbreviate(path), is_own=name == own)


def _codex(_: Path) -> Iterator[SessionFolder]:
    sessions = _agent_folder("CODEX_HOME", ".codex", "sessions")
    if sessions and os.path.isdir(sessions):  # noqa: PTH112 - the folder may be unreadable
        yield SessionFolder(sessions, ("*/*/*/rollout-*.jsonl",), _abbreviate(sessions))


def _gemini(top: Path) -> Iterator[SessionFolder]:
    projects = _agent_folder("", ".gemini", "tmp")
    names = _list_names(projects)
    if not names:
        return
    from hashlib import sha256  # slow to load

    digest = sha256(str(top).encode("utf-8", "surrogateescape")).hexdigest()
    for name in names:
        path = f"{projects}/{name}"
        if name == digest or _project_root(path) == str(top):
            patterns = ("chats/session-*.json", "chats/session-*.jsonl")
            yield SessionFolder(path, patterns, _abbreviate(path), is_own=True)


def _project_root(folder: str) -> str:
    with suppress(OSError, ValueError), open(f"{folder}/.project_root", encoding="utf-8") as file:  # noqa: PTH123
        return file.read(_MAX_PATH_CHARS).strip()
    return ""


def _agent_folder(variable: str, name: str, below: str) -> str:
    """An agent's folder, which a variable may relocate; "" without a home folder."""
    moved = os.environ.get(variable, "") if variable else ""
    if moved.startswith("/"):
        return f"{moved.rstrip('/')}/{below}"
    with suppress(RuntimeError):
        return str(Path.home() / name / below)
    return ""


def _list_names(folder: str) -> list[str]:
    with suppress(OSError, ValueError):
        return sorted(os.listdir(folder)) if folder else []  # noqa: PTH208 - no path is needed for each name
    return []


def _abbreviate(path: str) -> str:
    with suppress(RuntimeError):
        home = str(Path.home())
        return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
    return path


def is_within(folder: str, top: str) -> bool:
    """Whether a session in this folder belongs to the checkout at ``top``, and not to another checkout inside it."""
    try:
        folder = os.path.realpath(folder)
        while folder != top:
            if not folder.startswith(f"{top.rstrip('/')}/") or os.path.lexists(f"{folder}/.git"):
                return False
            folder = folder.rpartition("/")[0]
    except (OSError, ValueError):
        return False
    return True
