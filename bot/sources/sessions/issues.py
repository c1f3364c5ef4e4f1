"""Assigns sessions to issues, from the mapping files of issue agents. Files named there are not opened."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bot.sources.sessions.files import SessionFile
from bot.sources.sessions.head import open_regular_file

MAX_MAPPING_BYTES = 1 << 20
"""Maximum bytes of a mapping file to read."""

MAX_ENTRIES = 100_000
_NUMBER_LIMIT = 2**53
_MAX_PATH_CHARS = 4_096
_MAX_FOLDERS = 30

_NUMBER = ("issueNumber", "issue_number", "issue", "number")
_SESSION = ("sessionPath", "session_path", "sessionFile", "session_file", "session", "sessionId", "session_id", "path")
_CONTAINER_KEYS = ("issues", "sessions", "mapping", "map")

Entry = tuple[int, str]


def issues_of_sessions(mappings: Iterable[SessionFile], sessions: Iterable[SessionFile]) -> dict[str, int]:
    """Return the path of a session's file → the number of its issue, for sessions that a mapping names.

    A mapping names a session by its path, relative to the folder of the mapping or one above it, up to the top of the
    sources, or by the name of its file. The last of several issues wins.
    """
    paths = {file.path for file in sessions}
    names: dict[str, str] = {}
    for path in sorted(path for path in paths if not path.endswith(".json")):  # a .json may be a mapping
        name = Path(path).name
        names[name] = names[Path(name).stem] = (
            "" if name in names else path
        )  # a name shared by two files identifies neither
    issues: dict[str, int] = {}
    for mapping in mappings:
        for number, name_or_path in _entries(mapping):
            path = next(
                (candidate for candidate in _candidates(name_or_path, mapping) if candidate in paths),
                names.get(name_or_path, ""),
            )
            if path:
                issues[path] = number
    return issues


def _candidates(name_or_path: str, mapping: SessionFile) -> Iterator[str]:
    folder = Path(mapping.path).parent
    above = [folder, *folder.parents] if Path(mapping.top) in (folder, *folder.parents) else [folder]
    for base in [*above[:_MAX_FOLDERS], Path(mapping.top)]:
        yield os.path.normpath(base / name_or_path)
        if base == Path(mapping.top):
            return


def _entries(mapping: SessionFile) -> Iterator[Entry]:
    if mapping.size > MAX_MAPPING_BYTES:
        return
    with suppress(OSError, ValueError, RecursionError):
        with os.fdopen(open_regular_file(Path(mapping.path)), "rb") as handle:
            data = json.loads(handle.read(MAX_MAPPING_BYTES + 1).decode("utf-8-sig"))
        yield from _read_mapping(data, Path(mapping.path).stem)


def _read_mapping(data: Any, stem: str) -> Iterator[Entry]:
    notes = list(_read_note(data, stem))
    yield from notes or _read_list(data)
    if isinstance(data, dict) and not notes:
        for name in _CONTAINER_KEYS:
            yield from _read_list(data.get(name))


def _read_list(data: Any) -> Iterator[Entry]:
    if isinstance(data, list):
        for item in data[:MAX_ENTRIES]:
            yield from _read_note(item, "")
    elif isinstance(data, dict):
        for key, value in list(data.items())[:MAX_ENTRIES]:
            yield from _read_pair(key, value)


def _read_pair(key: str, value: Any) -> Iterator[Entry]:
    """Read ``"12": "sessions/abc.jsonl"``, the reverse, or a number with a note as its value."""
    number = _parse_number(key)
    if number and isinstance(value, dict):
        yield from _read_note(value, key)
    elif number and _is_path(value):
        yield number, value
    elif not number and _is_path(key) and not isinstance(value, str) and _parse_number(value):
        yield _parse_number(value), key


def _read_note(note: Any, name: str) -> Iterator[Entry]:
    """Read a note about one issue, whose number may be the name of the note."""
    if isinstance(note, dict):
        number = next(filter(None, (_parse_number(note.get(key)) for key in _NUMBER)), 0) or _parse_number(name)
        path = next((note[key] for key in _SESSION if _is_path(note.get(key))), "")
        if number and path:
            yield number, path


def _is_path(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_PATH_CHARS and "\0" not in value


def _parse_number(value: Any) -> int:
    if isinstance(value, Mapping):
        value = value.get("number")
    if isinstance(value, str):
        text = value.removeprefix("#")
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _NUMBER_LIMIT else 0
