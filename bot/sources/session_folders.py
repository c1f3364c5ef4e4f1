"""Finds the usual folders in which coding agents keep the sessions of a checkout.

Light to import, as a search from a shell asks whether there are any.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

_PLAIN = re.compile(r"[^A-Za-z0-9]")
_LONGEST_PATH = 4_096


class SessionFolder(NamedTuple):
    """A folder at ``path`` and the ``patterns`` of the transcripts in it.

    ``shown`` is how a message names it. ``is_own``: a transcript that names no working folder is of this checkout; in
    other folders it is of none. ``is_in_checkout``: all of them are, whatever folder they name.
    """

    path: str
    patterns: tuple[str, ...]
    shown: str
    is_own: bool = False
    is_in_checkout: bool = False


def default_folders(top: Path) -> tuple[SessionFolder, ...]:
    """Return the folders that exist and may hold sessions of the checkout at ``top``; not all in them need be its own.

    Claude Code: a folder of ``~/.claude/projects`` for each working folder, which is named after its path. Codex:
    ``~/.codex/sessions/YYYY/MM/DD``. Gemini: ``~/.gemini/tmp/NAME/chats``. Hook logs: ``.claude/logging``.
    """
    return tuple(each for found in (_hook_logs, _claude, _codex, _gemini) for each in found(top))


def _hook_logs(top: Path) -> Iterator[SessionFolder]:
    folder = top / ".claude" / "logging"
    if folder.is_dir() and not folder.is_symlink():
        yield SessionFolder(str(folder), ("**/*.jsonl", "**/*.log"), ".claude/logging", is_in_checkout=True)


def _claude(top: Path) -> Iterator[SessionFolder]:
    projects = _home("CLAUDE_CONFIG_DIR", ".claude", "projects")
    own = _PLAIN.sub("-", str(top))
    for name in _names(projects):
        if name == own or name.startswith(f"{own}-"):  # of the checkout, or of a folder in it
            path = f"{projects}/{name}"
            yield SessionFolder(path, ("**/*.jsonl",), _shown(path), is_own=name == own)


def _codex(_: Path) -> Iterator[SessionFolder]:
    sessions = _home("CODEX_HOME", ".codex", "sessions")
    if sessions and os.path.isdir(sessions):  # noqa: PTH112 - the folder may be unreadable
        yield SessionFolder(sessions, ("*/*/*/rollout-*.jsonl",), _shown(sessions))


def _gemini(top: Path) -> Iterator[SessionFolder]:
    projects = _home("", ".gemini", "tmp")
    names = _names(projects)
    if not names:
        return
    from hashlib import sha256  # slow to load

    digest = sha256(str(top).encode("utf-8", "surrogateescape")).hexdigest()
    for name in names:
        path = f"{projects}/{name}"
        if name == digest or _root_of(path) == str(top):
            patterns = ("chats/session-*.json", "chats/session-*.jsonl")
            yield SessionFolder(path, patterns, _shown(path), is_own=True)


def _root_of(folder: str) -> str:
    with suppress(OSError, ValueError), open(f"{folder}/.project_root", encoding="utf-8") as file:  # noqa: PTH123
        return file.read(_LONGEST_PATH).strip()
    return ""


def _home(variable: str, name: str, below: str) -> str:
    """A folder of an agent, which may be moved by a variable; "" without a home folder."""
    moved = os.environ.get(variable, "") if variable else ""
    if moved.startswith("/"):
        return f"{moved.rstrip('/')}/{below}"
    with suppress(RuntimeError):
        return str(Path.home() / name / below)
    return ""


def _names(folder: str) -> list[str]:
    with suppress(OSError, ValueError):
        return sorted(os.listdir(folder)) if folder else []  # noqa: PTH208 - no path is needed for each name
    return []


def _shown(path: str) -> str:
    with suppress(RuntimeError):
        home = str(Path.home())
        return f"~{path[len(home) :]}" if path.startswith(f"{home}/") else path
    return path


def is_within(folder: str, top: str) -> bool:
    """Whether a session in this folder is of the checkout at ``top``: in it, and in no other checkout below it."""
    try:
        folder = os.path.realpath(folder)
        while folder != top:
            if not folder.startswith(f"{top.rstrip('/')}/") or os.path.lexists(f"{folder}/.git"):
                return False
            folder = folder.rpartition("/")[0]
    except (OSError, ValueError):
        return False
    return True
