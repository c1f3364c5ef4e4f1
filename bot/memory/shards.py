"""JSON lines files with one line for each thread, a hundred threads a file: digests, and what was said where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from typing import Any

from bot.archive import clean, parse_key, parse_number, parse_time, stamp
from bot.indexed import Digest
from bot.kept import Said
from bot.memory.records import folder_of, sort_key
from bot.model import ThreadId

STATES = frozenset({"pending", "said", "silent", "withdrawn", "removed"})


def digest_path(key: ThreadId) -> str:
    return f"digests/{folder_of(key)}.jsonl"


def answer_path(key: ThreadId) -> str:
    return f"answers/{folder_of(key)}.jsonl"


def digest_line(digest: Digest) -> str:
    """A digest as one line of JSON, without the fields that are empty."""
    return _line(_plain(digest))


def said_line(said: Said) -> str:
    """What was said on a thread, as one line of JSON."""
    return _line(_plain(said))


def parse_said(line: Mapping[str, Any]) -> Said:
    """The inverse of `said_line`, as JSON; anything else raises KeyError, TypeError, ValueError or OverflowError."""
    state = line["state"]
    if state not in STATES:
        raise ValueError(f"no such state: {state!r:.40}")
    return Said(
        id=parse_key(line["id"]),
        state=state,
        at=parse_time(line["at"]),
        reason=clean(line.get("reason")),
        text_hash=clean(line.get("text_hash")),
        comment_id=parse_number(line.get("comment_id")),
        matches=tuple((parse_key(key), float(similarity)) for key, similarity in line.get("matches", ())),
        question=clean(line.get("question")),
        trying_since=parse_time(line["trying_since"]) if line.get("trying_since") else None,
    )


def read_shard(data: bytes) -> dict[ThreadId, dict[str, Any]]:
    """The lines of a shard by thread, as JSON. What is damaged is left out."""
    return {key: line for key, _, line in _lines(data) if key is not None}


def is_damaged(data: bytes) -> bool:
    """Whether a line of this shard cannot be read."""
    return any(key is None for key, _, _ in _lines(data))


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


def _line(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        plain = ((field.name, _plain(getattr(value, field.name))) for field in fields(value))
        return {name: item for name, item in plain if item is not None and item not in ("", [], {})}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return stamp(value) if isinstance(value, datetime) else value
