"""One process's share of the targets; a separate module, as a spawned process does not load ``__main__``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.fuzz.engine import Campaign, TargetState, fuzz
from tests.fuzz.targets import TARGETS

PAUSE = 30.0
"""Seconds between two lines of progress."""

Row = dict[str, Any]


def share(names: Sequence[str], *, minutes: float, seed: int, out: Path) -> list[Row]:
    campaign = Campaign(minutes, seed, out, _Progress())
    return [_row(state) for state in fuzz([TARGETS[name] for name in names], campaign)]


def _row(state: TargetState) -> Row:
    return {
        "target": state.target.name,
        "inputs": state.inputs,
        "steps": len(state.reached),
        "kept": len(state.corpus),
        "slowest": round(state.slowest, 3),
        "seconds": round(state.seconds, 1),
        "findings": [{"key": finding.key, "what": finding.what} for finding in state.findings.values()],
    }


class _Progress:
    """Prints a line of progress now and then, and each finding at once."""

    def __init__(self) -> None:
        self._last, self._reported = time.monotonic(), 0

    def __call__(self, states: list[TargetState], left: float) -> None:
        all_findings = [finding for state in states for finding in state.findings.values()]
        for finding in all_findings[self._reported :] if len(all_findings) > self._reported else ():
            print(f"  found in {finding.target}: {finding.what:.300}", flush=True)
        is_new, self._reported = len(all_findings) > self._reported, len(all_findings)
        if is_new or time.monotonic() - self._last > PAUSE:
            self._last = time.monotonic()
            inputs, steps = sum(state.inputs for state in states), sum(len(state.reached) for state in states)
            print(
                f"{max(0.0, left) / 60:.1f} min left: {inputs:,} inputs, {steps:,} steps, {len(all_findings)} findings",
                flush=True,
            )
