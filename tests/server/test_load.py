"""Bursts of deliveries over many repositories: none is lost, each repository's come in order, and no runs overlap."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path

import pytest

from bot.github.events import Event
from bot.server.model import Arrival, RepositoryKey, Result, RunReport
from bot.server.options import ServerOptions
from bot.server.processes import open_inbox
from tests.server.client import Answer, Sent, burst, request_once
from tests.server.load_checks import Findings, deliveries, examine, journal_workers, milliseconds, wait_until_done
from tests.server.queues import FileInbox, keys, take_lease
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
def test_a_burst_is_answered_quickly_and_handled_in_order_without_loss(tmp_path: Path) -> None:
    sent, findings = burst_of(tmp_path, 600, 50)
    print(f"p50 {milliseconds(sent, 0.5):.0f} ms, p99 {milliseconds(sent, 0.99):.0f} ms, {findings}")
    assert {each.answer.status for each in sent} == {202}
    assert findings == Findings(rows=600, runs=findings.runs)
    assert milliseconds(sent, 0.99) < 2_000  # allows for a busy machine


@pytest.mark.slow
def test_a_burst_into_one_repository_becomes_few_runs(tmp_path: Path) -> None:
    sent, findings = burst_of(tmp_path, 200, 1)
    assert {each.answer.status for each in sent} == {202}
    assert findings == Findings(rows=200, runs=findings.runs)
    assert findings.runs < 100


class HandledDeliveries:
    """An inbox with three finished deliveries of one repository, a, b and c, and the journals of its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = FileInbox()
        repository = RepositoryKey(1, 100)
        self.inbox.put([Arrival(f"7:{name}", repository, Event("issues", "opened", 1)) for name in "abc"])
        work = self.inbox.begin(take_lease(self.inbox, repository))
        assert work
        self.seqs = [each.seq for each in work.deliveries]
        self.inbox.end(work, [Result(seq, "done", "") for seq in self.seqs], RunReport())

    def examine_journal(
        self, *entries: tuple[str, str, int, int], sent: str = "abc", repository: str = "1-100"
    ) -> Findings:
        """``entries`` are worker, deliveries, begin and end; ``sent`` are deliveries in order, all answered 202."""
        for worker, names, began, ended in entries:
            line = json.dumps([repository, [self.seqs["abc".index(name)] for name in names], began, ended])
            with (self.folder / f"journal-{worker}").open("a", encoding="ascii") as file:
                file.write(f"{line}\n")
        sendings = [Sent(name, 100, 1, Answer(202, seconds=0.5), float(index)) for index, name in enumerate(sent)]
        return examine(self.inbox, self.folder, sendings)


@pytest.fixture
def handled(tmp_path: Path) -> HandledDeliveries:
    return HandledDeliveries(tmp_path)


@pytest.mark.parametrize(
    ("entries", "sent", "expected"),
    [
        pytest.param((("one", "a", 10, 20), ("two", "b", 20, 30), ("one", "c", 31, 40)), "abc", {"runs": 3}, id="ok"),
        pytest.param(
            (("one", "a", 10, 50), ("two", "b", 20, 30), ("two", "c", 40, 60)), "abc", {"runs": 3, "overlaps": 2},
            id="a run that begins before another has ended",
        ),
        pytest.param(
            (("one", "ac", 10, 20), ("two", "b", 30, 40)), "abc", {"runs": 2, "disordered": 1},
            id="what came later is done first",
        ),
        pytest.param((("one", "abc", 10, 20),), "abcd", {"runs": 1, "lost": 1}, id="had 202 and is not in the ledger"),
        pytest.param((("one", "ab", 10, 20),), "abc", {"runs": 1, "lost": 1}, id="no worker had it in hand"),
        pytest.param((("one", "abc", 10, 20), ("two", "c", 30, 40)), "abc", {"runs": 2, "twice": 1}, id="done again"),
        pytest.param((("one", "abc", 10, 20),), "acb", {"runs": 1, "swapped": 1}, id="stored in another order"),
        pytest.param((("one", "abc", 10, 20),), "abca", {"runs": 1}, id="sent again later, keeps its first place"),
    ],
)  # fmt: skip
def test_examine_finds_what_is_wrong_with_the_runs(
    handled: HandledDeliveries, entries: tuple[tuple[str, str, int, int], ...], sent: str, expected: dict[str, int]
) -> None:
    findings = handled.examine_journal(*entries, sent=sent)
    assert findings == Findings(rows=3, **expected)
    assert findings.is_clean == (expected.keys() == {"runs"})


def test_runs_of_two_repositories_may_overlap(handled: HandledDeliveries) -> None:
    handled.examine_journal(("one", "a", 10, 50), repository="1-101")
    assert handled.examine_journal(("two", "bc", 20, 30)) == Findings(rows=3, runs=2)
