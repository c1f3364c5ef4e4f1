"""Bursts of deliveries over many repositories: none is lost, each repository's come in order, and no runs overlap."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from tests.server.client import Sent, burst, request_once
from tests.server.load_checks import Findings, deliveries, examine, journal_workers, wait_until_done
from tests.server.queues import keys
from tests.server.web_process import web_process

PAGES = ("/", "/?state=waiting&repository=1-100&before=99", "/deliveries/1", "/metrics", "/healthz")


def burst_of(folder: Path, count: int, repositories: int) -> tuple[list[Sent], Findings]:
    """Deliver ``count`` while two workers write them down; every tenth is sent twice."""
    rng = random.Random(5)
    requests = deliveries(count, repositories, rng)
    requests += rng.sample(requests, count // 10)
    with web_process(folder) as (port, _), journal_workers(folder, 2):
        sent = asyncio.run(burst(port, requests))
        assert [asyncio.run(request_once(port, "GET", path)).status for path in PAGES] == [200] * len(PAGES)
        with open_inbox(ServerOptions(data=folder), "reader") as inbox:
            assert wait_until_done(inbox, 120)
            assert keys(inbox) == set(), "nothing is looked at that has nothing to do"
            return sent, examine(inbox, folder, sent)


@pytest.mark.slow
def test_a_burst_is_handled_in_order_without_loss(tmp_path: Path) -> None:
    sent, findings = burst_of(tmp_path, 600, 50)
    assert {each.answer.status for each in sent} == {202}
    assert findings == Findings(rows=600, runs=findings.runs)


@pytest.mark.night
@pytest.mark.slow
def test_a_burst_into_one_repository_becomes_few_runs(tmp_path: Path) -> None:
    sent, findings = burst_of(tmp_path, 200, 1)
    assert {each.answer.status for each in sent} == {202}
    assert findings == Findings(rows=200, runs=findings.runs)
    assert findings.runs < 100
