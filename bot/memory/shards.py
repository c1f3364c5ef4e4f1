"""JSON lines files with one line for each thread, a hundred threads a file: digests, and what was said where."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any

from bot.archive import clean, parse_key, stamp
from bot.memory.records import folder_of, sort_key
from bot.model import Digest, Said, ThreadId

STATES = frozenset({"pending", "said", "silent", "withdrawn", "removed"})


def digest_path(key: ThreadId) -> str:
    return f"digests/{folder_of(key)}.jsonl"


def answer_path(key: ThreadId) -> str:
    return f"answers/{folder_of(key)}.jsonl"


def digest_line(digest: Digest) -> str:
    """A digest as one line of JSON, without the fields that are empty."""
    return _line(_plain(asdict(digest)))


def said_line(said: Said) -> str:
    """What was said on a thread, as one line of JSON."""
    return _line(_plain(asdict(said)))


def parse_said(fields: Mapping[str, Any]) -> Said:
    """The inverse of `said_line`; raises KeyError, TypeError or ValueError on anything else."""
    state = fields["state"]
    if state not in STATES:
        raise ValueError(f"no such state: {state!r:.40}")
    comment_id = fields.get("comment_id")
    return Said(
        id=parse_key(fields["id"]),
        state=state,
        at=datetime.fromisoformat(fields["at"]),
        reason=clean(fields.get("reason")),
        text_hash=clean(fields.get("text_hash")),
        comment_id=comment_id if isinstance(comment_id, int) else None,
        matches=tuple((parse_key(key), float(similarity)) for key, similarity in fields.get("matches", ())),
    )


def read_shard(data: bytes) -> dict[ThreadId, dict[str, Any]]:
    """The lines of a shard by thread. A line that is damaged is left out: it is made anew from its record."""
    found: dict[ThreadId, dict[str, Any]] = {}
    for line in data.decode("utf-8", "replace").splitlines():
        try:
            fields = json.loads(line)
            found[parse_key(fields["id"])] = fields
        except (ValueError, TypeError, KeyError, RecursionError):
            continue
    return found


def write_shard(lines: Mapping[ThreadId, Mapping[str, Any]]) -> bytes:
    """The canonical bytes of a shard: one line a thread, in the order of their ids."""
    return "".join(_line(lines[key]) for key in sorted(lines, key=sort_key)).encode()


def edit_shards(
    shards: Mapping[str, bytes],
    lines: Iterable[tuple[ThreadId, str | None]],
    path_of: Callable[[ThreadId], str],
) -> dict[str, bytes | None]:
    """The shards that change when these lines are put in (None takes a line out); an empty shard goes."""
    opened: dict[str, dict[ThreadId, dict[str, Any]]] = {}
    for key, line in lines:
        path = path_of(key)
        if path not in opened:
            opened[path] = read_shard(shards.get(path, b""))
        if line is None:
            opened[path].pop(key, None)
        else:
            opened[path][key] = json.loads(line)
    edits = {path: write_shard(content) or None for path, content in opened.items()}
    return {path: data for path, data in edits.items() if data != shards.get(path)}


def _line(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, ensure_ascii=False, sort_keys=True, separators=(",", ":")) + "\n"


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        plain = {name: _plain(item) for name, item in value.items()}
        return {name: item for name, item in plain.items() if item not in (None, "", [], {}, False)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return stamp(value) if isinstance(value, datetime) else value
