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
    """Findings with the same cause have the same ``key``."""

    target: str
    key: str
    what: str
    input: Input


def save(finding: Finding, folder: Path) -> Path:
    """Write the finding to a file named after its target and cause."""
    folder.mkdir(parents=True, exist_ok=True)
    cause = hashlib.sha256(finding.key.encode("utf-8", "replace")).hexdigest()[:8]
    file = folder / f"{finding.target.replace(' ', '-')}-{cause}.json"
    value = finding.input
    content = {"base64": base64.b64encode(value).decode()} if isinstance(value, bytes) else {"value": value}
    fields = {"target": finding.target, "key": finding.key, "what": finding.what, **content}
    file.write_text(json.dumps(fields, indent=1), encoding="ascii")
    return file


def load(file: Path) -> Finding:
    """The finding in a file; raises ValueError or KeyError if there is none."""
    fields = json.loads(file.read_text(encoding="ascii"))
    value = base64.b64decode(fields["base64"]) if "base64" in fields else fields["value"]
    return Finding(fields["target"], fields["key"], fields["what"], value)


def size_of(value: Input) -> int:
    return len(value) if isinstance(value, str | bytes) else len(json.dumps(value))


def shrink(value: Input, still_fails: Callable[[Input], bool], until: float) -> Input:
    """A smaller input with the same fault, as far as time allows: pieces are left out while it still fails."""
    has_shrunk = True
    while has_shrunk and time.monotonic() < until:
        has_shrunk = False
        for candidate in _smaller_inputs(value):
            if time.monotonic() > until:
                break
            if still_fails(candidate):
                value, has_shrunk = candidate, True
                break
    return value


def _smaller_inputs(value: Input) -> Iterator[Input]:
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
            yield from ([*value[:at], part, *value[at + 1 :]] for part in _smaller_inputs(item))
    elif isinstance(value, dict):
        for key in value:
            yield {name: item for name, item in value.items() if name != key}
        for key, item in value.items():
            yield from (value | {key: part} for part in _smaller_inputs(item))
