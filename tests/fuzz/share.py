"""One process's share of the targets: a module of its own, as a spawned process does not load ``__main__``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.engine import Campaign, Field, fuzz
from tests.fuzz.targets import TARGETS

PAUSE = 30.0
"""Seconds between two lines of progress."""

Row = dict[str, Any]


def share(names: Sequence[str], *, minutes: float, seed: int, out: Path) -> list[Row]:
    campaign = Campaign(minutes, seed, out, _Progress())
    return [_row(one) for one in fuzz([TARGETS[name] for name in names], campaign)]


def _row(one: Field) -> Row:
    return {
        "target": one.target.name,
        "inputs": one.inputs,
        "steps": len(one.reached),
        "kept": len(one.corpus),
        "slowest": round(one.slowest, 3),
        "seconds": round(one.seconds, 1),
        "findings": [{"key": found.key, "what": found.what} for found in one.findings.values()],
    }


class _Progress:
    """A line now and then, and each finding at once."""

    def __init__(self) -> None:
        self._last, self._known = time.monotonic(), 0

    def __call__(self, fields: list[Field], left: float) -> None:
        found = [finding for one in fields for finding in one.findings.values()]
        for finding in found[self._known :] if len(found) > self._known else ():
            print(f"  found in {finding.target}: {finding.what:.300}", flush=True)
        is_new, self._known = len(found) > self._known, len(found)
        if is_new or time.monotonic() - self._last > PAUSE:
            self._last = time.monotonic()
            inputs, steps = sum(one.inputs for one in fields), sum(len(one.reached) for one in fields)
            print(
                f"{max(0.0, left) / 60:.1f} min left: {inputs:,} inputs, {steps:,} steps, {len(found)} findings",
                flush=True,
            )
