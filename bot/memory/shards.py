"""JSON lines files with one line for each thread, a hundred threads a file; what they hold is told by `families.py`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from bot.archive import parse_key
from bot.memory.records import folder_of, sort_key
from bot.model import ThreadId

Value = TypeVar("Value")
Line = Mapping[str, Any]
"""A line of a shard as JSON; its ``id`` is a thread's."""

_NAME = re.compile(r"(\d{4,}|x[0-9a-f]{2})\.jsonl", re.ASCII)


@dataclass(frozen=True)
class Family(Generic[Value]):
    """The shards in one folder. ``fields`` gives what is kept of a value, as JSON, None for nothing worth a line."""

    folder: str
    fields: Callable[[Value], dict[str, object] | None]

    def path(self, key: ThreadId) -> str:
        """The shard of a thread, for example ``digests/0042.jsonl``."""
        return f"{self.folder}/{folder_of(key)}.jsonl"

    def line(self, value: Value) -> str | None:
        fields = self.fields(value)
        return None if fields is None else json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":"))

    def among(self, paths: Iterable[str]) -> list[str]:
        """Those of these paths that are shards of this family."""
        start = f"{self.folder}/"
        return [path for path in paths if path.startswith(start) and _NAME.fullmatch(path, len(start))]

    def edits(self, shards: Mapping[str, bytes], values: Mapping[ThreadId, Value | None]) -> dict[str, bytes | None]:
        """The shards that change when these values are put in (None takes one out); an empty shard goes."""
        lines = ((key, None if value is None else self.line(value)) for key, value in values.items())
        return edit_shards(shards, lines, self.path)


@dataclass(frozen=True)
class Kept(Family[Value]):
    """A family that is read again.

    ``parse`` gives the value of a line and whether that is all of it; it raises KeyError, TypeError, ValueError or
    OverflowError where nothing of it can be read. ``loss`` says what a maintainer loses then.
    """

    parse: Callable[[Line], tuple[Value, bool]]
    loss: str

    def read(
        self, path: str, data: bytes, wanted: Iterable[ThreadId] | None = None
    ) -> tuple[dict[ThreadId, Value], bool]:
        """The values of a shard by thread (None: of all), and whether nothing was damaged."""
        found: dict[ThreadId, Value] = {}
        lines, is_whole = read_lines(data)
        for key in lines if wanted is None else wanted:
            if key in lines and self.path(key) == path:
                try:
                    found[key], is_all = self.parse(lines[key])
                except (KeyError, TypeError, ValueError, OverflowError):
                    is_all = False
                is_whole = is_whole and is_all
        return found, is_whole


def read_lines(data: bytes) -> tuple[dict[ThreadId, dict[str, Any]], bool]:
    """The lines of a shard by thread, and whether each could be read."""
    found = list(_lines(data))
    return {key: line for key, _, line in found if key is not None}, all(key is not None for key, _, _ in found)


def read_texts(data: bytes) -> list[tuple[ThreadId, str]]:
    """The lines of a shard as they are written, each after its thread, those that can be read."""
    return [(key, text) for key, text, _ in _lines(data) if key is not None]


def is_damaged(data: bytes) -> bool:
    """Whether a line of this shard cannot be read."""
    return not read_lines(data)[1]


def _lines(data: bytes) -> Iterator[tuple[ThreadId | None, str, dict[str, Any]]]:
    for text in data.decode("utf-8", "replace").split("\n"):  # not at the other ends of lines that a text may hold
        if text:
            try:
                line = json.loads(text)
                yield parse_key(line["id"]), text, line
            except (ValueError, TypeError, KeyError, RecursionError):
                yield None, text, {}


def write_shard(lines: Mapping[ThreadId, str]) -> bytes:
    """The bytes of a shard: one line a thread, in the order of their ids."""
    return "".join(f"{lines[key]}\n" for key in sorted(lines, key=sort_key)).encode()


def edit_shards(
    shards: Mapping[str, bytes],
    lines: Iterable[tuple[ThreadId, str | None]],
    path_of: Callable[[ThreadId], str],
) -> dict[str, bytes | None]:
    """The shards that change when these lines are put in (None takes a line out); an empty shard goes."""
    opened: dict[str, dict[ThreadId, str]] = {}
    for key, line in lines:
        path = path_of(key)
        if path not in opened:
            opened[path] = {old: text for old, text, _ in _lines(shards.get(path, b"")) if old is not None}
        if line is None:
            opened[path].pop(key, None)
        else:
            opened[path][key] = line
    edits = {path: write_shard(content) or None for path, content in opened.items()}
    return {path: data for path, data in edits.items() if data != shards.get(path)}
