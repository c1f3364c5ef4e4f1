"""Finds the usual folders in which coding agents keep the sessions of a checkout.

Imports little, as every search from a shell checks for such folders. `docs/agents.md#sessions` lists them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from bot.sources.session_head import head_of
from bot.sources.session_worktrees import Worktrees

_NON_ALPHANUMERIC = re.compile(r"[^A-Za-z0-9]")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_MAX_PROJECT_NAME = 200
_MAX_NOTE_BYTES = 8_192
_CHAT_ID = re.compile(r"[A-Za-z0-9-]{1,100}")
_TRUSTED_FOLDER = re.compile(r'"workspacePath"\s*:\s*("(?:[^"\\]|\\.){0,4096}")')


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

    Some agents have a folder for each working folder, named after its path; others mix those of all checkouts.
    """
    trees = Worktrees(str(top))
    return (
        *_hook_logs(top),
        *_claude(trees),
        *_codex(),
        *_gemini(".gemini", trees),
        *_qwen(trees),
        *_copilot(),
        *_cursor(trees),
        *_opencode(),
        *_pi(),
    )


def _hook_logs(top: Path) -> Iterator[SessionFolder]:
    folder = top / ".claude" / "logging"
    if folder.is_dir() and not folder.is_symlink():
        yield SessionFolder(str(folder), ("**/*.jsonl", "**/*.log"), ".claude/logging", is_in_checkout=True)


def _claude(trees: Worktrees) -> Iterator[SessionFolder]:
    yield from _projects(_agent_folder("CLAUDE_CONFIG_DIR", ".claude", "projects"), trees)


def _qwen(trees: Worktrees) -> Iterator[SessionFolder]:
    yield from _projects(_agent_folder("QWEN_RUNTIME_DIR", ".qwen", "projects"), trees)
    yield from _gemini(".qwen", trees)  # as it was before 2025-12


def _projects(folder: str, trees: Worktrees) -> Iterator[SessionFolder]:
    """A folder for each working folder, named after its path: for a checkout, or for a folder in it."""
    own = [_project_name(tree) for tree in trees.paths]
    for name in _list_names(folder):
        if any(name == tree or name.startswith(f"{tree}-") for tree in own):
            path = f"{folder}/{name}"
            yield SessionFolder(path, ("**/*.jsonl",), _abbreviate(path), is_own=name in own)


def _project_name(path: str) -> str:
    """The path as JavaScript replaces its UTF-16 units. A longer name ends in a dash and a hash; the transcripts in it
    say which folder they belong to."""
    name = _NON_ALPHANUMERIC.sub("-", _ASTRAL.sub("--", path))
    return name[:_MAX_PROJECT_NAME]


def _codex() -> Iterator[SessionFolder]:
    for name in ("sessions", "archived_sessions"):
        yield from _existing(
            _agent_folder("CODEX_HOME", ".codex", name), "**/rollout-*.jsonl", "**/rollout-*.jsonl.zst"
        )


def _copilot() -> Iterator[SessionFolder]:
    sessions = _agent_folder("COPILOT_HOME", ".copilot", "session-state")
    yield from _existing(sessions, "*.jsonl", "*/events.jsonl")
    yield from _existing(_agent_folder("COPILOT_HOME", ".copilot", "history-session-state"), "*.json")


def _opencode() -> Iterator[SessionFolder]:
    folder = _agent_folder("XDG_DATA_HOME", ".local/share", "opencode")
    if any(name.startswith("opencode") and name.endswith(".db") for name in _list_names(folder)):
        yield from _existing(folder, "opencode*.db")
    else:
        yield from _existing(folder, "storage/session/*/*.json")


def _pi() -> Iterator[SessionFolder]:
    yield from _existing(_agent_folder("PI_CODING_AGENT_DIR", ".pi/agent", "sessions"), "*/*.jsonl")


def _existing(folder: str, *patterns: str) -> Iterator[SessionFolder]:
    if folder and os.path.isdir(folder):  # noqa: PTH112 - the folder may be unreadable
        yield SessionFolder(folder, patterns, _abbreviate(folder))


def _gemini(home: str, trees: Worktrees) -> Iterator[SessionFolder]:
    projects = _agent_folder("", home, "tmp")
    names = _list_names(projects)
    if not names:
        return
    from hashlib import sha256  # slow to load

    digests = {sha256(tree.encode("utf-8", "surrogateescape")).hexdigest() for tree in trees.paths}
    for name in names:
        path = f"{projects}/{name}"
        if name in digests or _read_note(f"{path}/.project_root").strip() in trees.paths:
            patterns = ("chats/session-*.json", "chats/session-*.jsonl", "chats/*/*.jsonl")
            yield SessionFolder(path, patterns, _abbreviate(path), is_own=True)


def _cursor(trees: Worktrees) -> Iterator[SessionFolder]:
    projects = _agent_folder("", ".cursor", "projects")
    own = {_cursor_name(tree) for tree in trees.paths}
    read: set[str] = set()
    for name in _list_names(projects):
        path = f"{projects}/{name}"
        if name in own and _trusted_folder(path) in ("", *trees.paths):
            patterns = ("agent-transcripts/**/*.jsonl", "agent-transcripts/*.txt")
            yield SessionFolder(path, patterns, _abbreviate(path), is_own=True)
            read.update(_list_names(f"{path}/agent-transcripts"))
    yield from _cursor_chats(trees, read)


def _cursor_chats(trees: Worktrees, read: set[str]) -> Iterator[SessionFolder]:
    """The chats without a transcript, in a folder for each working folder."""
    chats = _agent_folder("", ".cursor", "chats")
    names = _list_names(chats)
    if not names:
        return
    from hashlib import md5  # slow to load

    for tree in trees.paths:
        path = f"{chats}/{md5(tree.encode('utf-8', 'surrogateescape'), usedforsecurity=False).hexdigest()}"
        if missing := [name for name in _list_names(path) if name not in read and _CHAT_ID.fullmatch(name)]:
            yield from _existing(path, *(f"{name}/store.db" for name in missing))


def _cursor_name(path: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "-", path).strip("-")


def _trusted_folder(project: str) -> str:
    """The folder of a project of Cursor, whose name several folders may share; "" if it is unknown."""
    match = _TRUSTED_FOLDER.search(_read_note(f"{project}/.workspace-trusted"))
    if not match:
        return ""
    import json

    with suppress(ValueError):
        return str(json.loads(match[1]))
    return ""


def _read_note(path: str) -> str:
    return head_of(path, _MAX_NOTE_BYTES).decode("utf-8", "surrogateescape")


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
