"""Eight processes at once on one branch over HTTP: nothing is lost, and history is given up for the squash alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.bench.bench_contention import contend


@pytest.mark.slow
def test_eight_processes_with_five_events_each_lose_nothing(tmp_path: Path) -> None:
    outcome = contend(tmp_path, 8, 5)
    assert outcome.lost == ()
    assert outcome.forced == 0
    assert len(outcome.moves) == outcome.expected == 40
