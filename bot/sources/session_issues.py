"""Assigns sessions to issues, from the mapping files of issue agents. Files named there are not opened."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from bot.sources.session_files import SessionFile
from bot.sources.session_head import opened

MAX_MAPPING = 1 << 20
"""Bytes of the longest mapping file that is read."""

MAX_ENTRIES = 100_000
_LARGEST = 2**53
_MAX_PATH = 4_096
_MAX_FOLDERS = 30

_NUMBER = ("issueNumber", "issue_number", "issue", "number")
_SESSION = ("sessionPath", "session_path", "sessionFile", "session_file", "session", "sessionId", "session_id", "path")
_WITHIN = ("issues", "sessions", "mapping", "map")

Entry = tuple[int, str]


def issues_of_sessions(mappings: Iterable[SessionFile], sessions: Iterable[SessionFile]) -> dict[str, int]:
    """Return the path of a session's file → the number of its issue, for sessions that a mapping names.

    A mapping names a session by its path, relative to the folder of the mapping or one above it, up to the top of the
    sources, or by the name of its file. The last of several issues wins.
    """
    paths = {file.path for file in sessions}
    names: dict[str, str] = {}
    for path in sorted(path for path in paths if not path.endswith(".json")):  # those may be mappings
        name = Path(path).name
        names[name] = names[Path(name).stem] = "" if name in names else path  # a name of two files identifies neither
    found: dict[str, int] = {}
    for mapping in mappings:
        for number, named in _entries(mapping):
            path = next((each for each in _candidates(named, mapping) if each in paths), names.get(named, ""))
            if path:
                found[path] = number
    return found


def _candidates(named: str, mapping: SessionFile) -> Iterator[str]:
    folder = Path(mapping.path).parent
    above = [folder, *folder.parents] if Path(mapping.top) in (folder, *folder.parents) else [folder]
    for base in [*above[:_MAX_FOLDERS], Path(mapping.top)]:
        yield os.path.normpath(base / named)
        if base == Path(mapping.top):
            return


def _entries(mapping: SessionFile) -> Iterator[Entry]:
    if mapping.size > MAX_MAPPING:
        return
    with suppress(OSError, ValueError, RecursionError):
        with os.fdopen(opened(Path(mapping.path)), "rb") as handle:
            told = json.loads(handle.read(MAX_MAPPING + 1).decode("utf-8-sig"))
        yield from _read(told, Path(mapping.path).stem)


def _read(told: Any, stem: str) -> Iterator[Entry]:
    noted = list(_noted(told, stem))
    yield from noted or _listed(told)
    if isinstance(told, dict) and not noted:
        for name in _WITHIN:
            yield from _listed(told.get(name))


def _listed(told: Any) -> Iterator[Entry]:
    if isinstance(told, list):
        for item in told[:MAX_ENTRIES]:
            yield from _noted(item, "")
    elif isinstance(told, dict):
        for key, value in list(told.items())[:MAX_ENTRIES]:
            yield from _pair(key, value)


def _pair(key: str, value: Any) -> Iterator[Entry]:
    """Read ``"12": "sessions/abc.jsonl"``, the other way round, or with a note as the value."""
    number = _number(key)
    if number and isinstance(value, dict):
        yield from _noted(value, key)
    elif number and _path(value):
        yield number, value
    elif not number and _path(key) and not isinstance(value, str) and _number(value):
        yield _number(value), key


def _noted(note: Any, name: str) -> Iterator[Entry]:
    """Read a note about one issue, whose number may be the name of the note."""
    if isinstance(note, dict):
        number = next(filter(None, (_number(note.get(key)) for key in _NUMBER)), 0) or _number(name)
        path = next((note[key] for key in _SESSION if _path(note.get(key))), "")
        if number and path:
            yield number, path


def _path(value: Any) -> bool:
    return isinstance(value, str) and 0 < len(value) <= _MAX_PATH and "\0" not in value


def _number(value: Any) -> int:
    if isinstance(value, Mapping):
        value = value.get("number")
    if isinstance(value, str):
        text = value.removeprefix("#")
        value = int(text) if text.isascii() and text.isdigit() and len(text) < 16 else 0
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < _LARGEST else 0
