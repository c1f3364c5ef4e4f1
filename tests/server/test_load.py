"""Bursts of deliveries over many repositories: none is lost, those of each come in order, and none overlap."""

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
from tests.server.client import Answer, Sent, burst, once
from tests.server.doorway import running
from tests.server.loading import Findings, booking, deliveries, examine, milliseconds, wait_until_done
from tests.server.queues import FileInbox, keys, leased

PAGES = ("/", "/?state=waiting&repository=1-100&before=99", "/deliveries/1", "/metrics", "/healthz")


def burst_of(folder: Path, count: int, repositories: int) -> tuple[list[Sent], Findings]:
    """Deliver so many while two workers book them; every tenth comes twice."""
    chance = random.Random(5)
    wanted = deliveries(count, repositories, chance)
    wanted += chance.sample(wanted, count // 10)
    with running(folder) as (port, _), booking(folder, 2):
        sent = asyncio.run(burst(port, wanted))
        assert [asyncio.run(once(port, "GET", path)).status for path in PAGES] == [200] * len(PAGES)
        with open_inbox(ServerOptions(data=folder), "reader") as inbox:
            assert wait_until_done(inbox, 120)
            assert keys(inbox) == set(), "nothing is looked at that has nothing to do"
            return sent, examine(inbox, folder, sent)


@pytest.mark.slow
def test_a_burst_is_answered_soon_and_handled_in_order_without_a_loss(tmp_path: Path) -> None:
    sent, found = burst_of(tmp_path, 600, 50)
    print(f"p50 {milliseconds(sent, 0.5):.0f} ms, p99 {milliseconds(sent, 0.99):.0f} ms, {found}")
    assert {one.answer.status for one in sent} == {202}
    assert found == Findings(rows=600, runs=found.runs)
    assert milliseconds(sent, 0.99) < 2_000  # a machine that is busy otherwise; tests/bench/bench_server.py measures


@pytest.mark.slow
def test_a_burst_into_one_repository_becomes_few_runs(tmp_path: Path) -> None:
    sent, found = burst_of(tmp_path, 200, 1)
    assert {one.answer.status for one in sent} == {202}
    assert found == Findings(rows=200, runs=found.runs)
    assert found.runs < 100


class Past:
    """A ledger with three deliveries of one repository, a, b and c, that were done; and what workers say of it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.inbox = FileInbox()
        repository = RepositoryKey(1, 100)
        self.inbox.put([Arrival(f"7:{name}", repository, Event("issues", "opened", 1)) for name in "abc"])
        work = self.inbox.begin(leased(self.inbox, repository))
        assert work
        self.seqs = [each.seq for each in work.deliveries]
        self.inbox.end(work, [Result(seq, "done", "") for seq in self.seqs], RunReport())

    def examined(self, *held: tuple[str, str, int, int], sent: str = "abc", repository: str = "1-100") -> Findings:
        """``held``: worker, deliveries, and from when to when; ``sent`` one after the other, each with its 202."""
        for worker, names, began, ended in held:
            line = json.dumps([repository, [self.seqs["abc".index(name)] for name in names], began, ended])
            with (self.folder / f"journal-{worker}").open("a", encoding="ascii") as file:
                file.write(f"{line}\n")
        told = [Sent(name, 100, 1, Answer(202, seconds=0.5), float(place)) for place, name in enumerate(sent)]
        return examine(self.inbox, self.folder, told)


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past(tmp_path)


@pytest.mark.parametrize(
    ("held", "sent", "found"),
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
def test_what_is_wrong_with_the_runs_is_found(
    past: Past, held: tuple[tuple[str, str, int, int], ...], sent: str, found: dict[str, int]
) -> None:
    examined = past.examined(*held, sent=sent)
    assert examined == Findings(rows=3, **found)
    assert examined.is_well == (found.keys() == {"runs"})


def test_runs_of_two_repositories_may_be_at_once(past: Past) -> None:
    past.examined(("one", "a", 10, 50), repository="1-101")
    assert past.examined(("two", "bc", 20, 30)) == Findings(rows=3, runs=2)
