"""Findings as files: what was wrong, and the input that shows it again."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.target import Input


@dataclass(frozen=True)
class Finding:
    """``key`` is equal for findings of one cause."""

    target: str
    key: str
    what: str
    input: Input


def save(finding: Finding, folder: Path) -> Path:
    """Write it; the name tells the target and the cause."""
    folder.mkdir(parents=True, exist_ok=True)
    cause = hashlib.sha256(finding.key.encode("utf-8", "replace")).hexdigest()[:8]
    file = folder / f"{finding.target.replace(' ', '-')}-{cause}.json"
    given = finding.input
    told = {"base64": base64.b64encode(given).decode()} if isinstance(given, bytes) else {"value": given}
    fields = {"target": finding.target, "key": finding.key, "what": finding.what, **told}
    file.write_text(json.dumps(fields, indent=1), encoding="ascii")
    return file


def load(file: Path) -> Finding:
    """The finding of a file; ValueError or KeyError for any other."""
    fields = json.loads(file.read_text(encoding="ascii"))
    given = base64.b64decode(fields["base64"]) if "base64" in fields else fields["value"]
    return Finding(fields["target"], fields["key"], fields["what"], given)


def size_of(value: Input) -> int:
    return len(value) if isinstance(value, str | bytes) else len(json.dumps(value))


def smaller(value: Input, stays: Callable[[Input], bool], until: float) -> Input:
    """A smaller input that shows the same, as far as time allows: pieces are left out as long as it stays."""
    found = True
    while found and time.monotonic() < until:
        found = False
        for candidate in _parts_of(value):
            if time.monotonic() > until:
                break
            if stays(candidate):
                value, found = candidate, True
                break
    return value


def _parts_of(value: Input) -> Iterator[Input]:
    """The input without one of its pieces, large pieces first."""
    if isinstance(value, str | bytes):
        size = len(value) // 2
        while size:
            for at in range(0, len(value), size):
                yield value[:at] + value[at + size :]
            size //= 2
    elif isinstance(value, list):
        for at in range(len(value)):
            yield value[:at] + value[at + 1 :]
        for at, item in enumerate(value):
            yield from ([*value[:at], part, *value[at + 1 :]] for part in _parts_of(item))
    elif isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            yield from (value | {key: part} for part in _parts_of(item))
