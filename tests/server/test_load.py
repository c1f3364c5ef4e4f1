"""Bursts of deliveries over many repositories: none is lost, those of each come in order, and none overlap."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from bot.server.options import Options
from bot.server.run import opened
from tests.server.client import Sent, burst, once
from tests.server.doorway import running
from tests.server.loading import Findings, booking, deliveries, examine, milliseconds, wait_until_done

pytestmark = pytest.mark.slow

PAGES = ("/", "/?state=waiting&repository=1-100&before=99", "/deliveries/1", "/metrics", "/healthz")


def burst_of(folder: Path, count: int, repositories: int) -> tuple[list[Sent], Findings]:
    """Deliver so many while a worker books them; every tenth comes twice."""
    chance = random.Random(5)
    wanted = deliveries(count, repositories, chance)
    wanted += chance.sample(wanted, count // 10)
    with running(folder, "--sqlite") as (port, _), booking(folder):
        sent = asyncio.run(burst(port, wanted))
        assert [asyncio.run(once(port, "GET", path)).status for path in PAGES] == [200] * len(PAGES)
        with opened(Options(data=folder), "reader") as queue:
            assert wait_until_done(queue.ledger, 120)
            return sent, examine(queue.ledger, [one.guid for one in sent if one.answer.status == 202])


def test_a_burst_is_answered_soon_and_handled_in_order_without_a_loss(tmp_path: Path) -> None:
    sent, found = burst_of(tmp_path, 600, 50)
    print(f"p50 {milliseconds(sent, 0.5):.0f} ms, p99 {milliseconds(sent, 0.99):.0f} ms, {found}")
    assert {one.answer.status for one in sent} == {202}
    assert (found.rows, found.lost, found.disordered, found.overlaps) == (600, 0, 0, 0)
    assert milliseconds(sent, 0.99) < 2_000  # a machine that is busy otherwise; tests/bench/bench_server.py measures


def test_a_burst_into_one_repository_becomes_few_turns(tmp_path: Path) -> None:
    sent, found = burst_of(tmp_path, 200, 1)
    assert {one.answer.status for one in sent} == {202}
    assert (found.rows, found.lost, found.disordered, found.overlaps) == (200, 0, 0, 0)
    assert found.turns < 100
