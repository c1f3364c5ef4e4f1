"""The writer: durable before answered, in groups, bounded; patient neither with a full queue nor a lost database."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bot.errors import WorldError
from bot.github.events import Event
from bot.server.model import Arrival, ReceiveQueueFull, RepositoryKey
from bot.server.writer import GROUP, GroupCommitWriter
from tests.server.queues import FileInbox

SAMPLE = Arrival("7:1", RepositoryKey(1, 17), Event("issues", "opened", 1))


class Gated(FileInbox):
    """A ledger that stores when it is let, and remembers in which groups it was asked to."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.groups: list[int] = []
        self.before: Callable[[Sequence[Arrival]], None] = lambda _: None

    def put(self, arrivals: Sequence[Arrival]) -> list[bool]:
        self.entered.set()
        self.gate.wait(10)
        self.groups.append(len(arrivals))
        self.before(arrivals)
        return super().put(arrivals)


def arrival(number: int) -> Arrival:
    return replace(SAMPLE, id=f"7:{number}", event=Event("issues", "opened", number))


def stored(ledger: Gated, count: int, most: int = 500, shut: Callable[[], str] = str) -> list[object]:
    """What each of so many is told: where the gate is closed, the first waits there when the others come."""

    async def story() -> list[object]:
        writer = GroupCommitWriter(ledger, shut, most)
        writer.start()
        waiting = [asyncio.create_task(writer.store(arrival(0)))]
        if not ledger.gate.is_set():
            await asyncio.to_thread(ledger.entered.wait, 5)
        waiting += [asyncio.create_task(writer.store(arrival(number))) for number in range(1, count)]
        await asyncio.sleep(0.2)
        ledger.gate.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        assert writer.stop(5)
        return list(found)

    return asyncio.run(story())


def test_it_is_stored_when_it_is_answered() -> None:
    ledger = Gated()
    assert stored(ledger, 1) == [True]
    assert [row.id for row in ledger.deliveries()] == ["7:0"]


def test_what_waits_is_stored_in_groups_in_order() -> None:
    ledger = Gated()
    ledger.gate.clear()
    assert stored(ledger, 100) == [True] * 100
    assert len(ledger.groups) <= 5
    assert max(ledger.groups) == GROUP
    assert [row.id for row in reversed(ledger.deliveries(limit=100))] == [f"7:{number}" for number in range(100)]


def test_the_same_delivery_again_is_told_to_be_known() -> None:
    async def story() -> list[bool]:
        writer = GroupCommitWriter(Gated())
        writer.start()
        return [await writer.store(SAMPLE), await writer.store(SAMPLE)]

    assert asyncio.run(story()) == [True, False]


def test_too_many_at_once_are_refused_and_the_others_stored() -> None:
    ledger = Gated()
    ledger.gate.clear()
    found = stored(ledger, 40, most=10)
    refused = [one for one in found if isinstance(one, ReceiveQueueFull)]
    assert found.count(True) + len(refused) == 40
    assert len(refused) == 29
    assert len(ledger.deliveries()) == found.count(True)


def test_a_lost_database_is_told_to_all_of_the_group() -> None:
    ledger = Gated()
    ledger.gate.clear()

    def lost(_: Sequence[Arrival]) -> None:
        raise WorldError("the database does not answer")

    ledger.before = lost
    found = stored(ledger, 5)
    assert [str(one) for one in found] == ["the database does not answer"] * 5
    assert len(ledger.groups) <= 2


def test_one_that_cannot_be_stored_does_not_spoil_the_others_of_its_group() -> None:
    ledger = Gated()
    ledger.gate.clear()

    def picky(arrivals: Sequence[Arrival]) -> None:
        if any(one.id == "7:3" for one in arrivals):
            raise ValueError("a number that no column holds")

    ledger.before = picky
    found = stored(ledger, 6)
    assert [one for one in found if one is not True] == [found[3]]
    assert isinstance(found[3], WorldError)
    assert len(ledger.deliveries()) == 5


def test_after_a_bug_the_thread_goes_on() -> None:
    ledger = Gated()

    async def story() -> bool:
        writer = GroupCommitWriter(ledger)
        writer.start()

        def broken(_: Sequence[Arrival]) -> None:
            raise KeyError("bug")

        ledger.before = broken
        with pytest.raises(WorldError, match="bug of Precedent"):
            await writer.store(arrival(1))
        ledger.before = lambda _: None
        return await writer.store(arrival(2))

    assert asyncio.run(story())


def test_what_takes_too_long_is_given_up_and_does_no_harm() -> None:
    ledger = Gated()
    ledger.gate.clear()

    async def story() -> list[bool]:
        writer = GroupCommitWriter(ledger, patience=0.1)
        writer.start()
        with pytest.raises(TimeoutError):
            await writer.store(SAMPLE)
        ledger.gate.set()
        for _ in range(100):
            if ledger.deliveries():
                break
            await asyncio.sleep(0.02)
        return [await writer.store(SAMPLE), await writer.store(arrival(2))]

    assert asyncio.run(story()) == [False, True]


def test_who_gave_up_keeps_nobody_of_the_group_waiting() -> None:
    ledger = Gated()
    ledger.gate.clear()

    async def story() -> list[bool]:
        writer = GroupCommitWriter(ledger)
        writer.start()
        waiting = [asyncio.create_task(writer.store(arrival(number))) for number in range(4)]
        await asyncio.sleep(0.2)
        waiting[2].cancel()
        await asyncio.sleep(0)
        ledger.gate.set()
        return await asyncio.gather(waiting[0], waiting[1], waiting[3])

    assert asyncio.run(asyncio.wait_for(story(), 5)) == [True] * 3
    assert len(ledger.deliveries()) == 4


def test_while_it_is_shut_nothing_is_taken() -> None:
    found = stored(Gated(), 3, shut=lambda: "the disk is full")
    assert [str(one) for one in found] == ["the disk is full"] * 3


def test_it_opens_again_by_itself() -> None:
    reasons = ["the disk is full"]

    async def story() -> bool:
        writer = GroupCommitWriter(Gated(), lambda: reasons[0], look=0.05)
        writer.start()
        with pytest.raises(ReceiveQueueFull):
            await writer.store(SAMPLE)
        reasons[0] = ""
        await asyncio.sleep(0.5)
        return await writer.store(SAMPLE)

    assert asyncio.run(story())


def test_a_stopping_writer_stores_what_waits_and_takes_nothing_more() -> None:
    ledger = Gated()
    ledger.gate.clear()

    async def story() -> tuple[list[bool], float]:
        writer = GroupCommitWriter(ledger)
        writer.start()
        waiting = [asyncio.create_task(writer.store(arrival(number))) for number in range(50)]
        await asyncio.sleep(0.1)
        threading.Timer(0.2, ledger.gate.set).start()
        began = time.monotonic()
        assert await asyncio.to_thread(writer.stop, 5)
        with pytest.raises(ReceiveQueueFull):
            await writer.store(arrival(99))
        return await asyncio.gather(*waiting), time.monotonic() - began

    found, seconds = asyncio.run(story())
    assert found == [True] * 50
    assert seconds < 3


def test_counts_are_added_up_and_written_at_the_end_at_the_latest() -> None:
    ledger = Gated()
    writer = GroupCommitWriter(ledger)
    writer.start()
    for _ in range(3):
        writer.count("precedent_deliveries_total", ("issues", "stored"))
    assert writer.stop(5)
    assert ledger.counters() == {("precedent_deliveries_total", ("issues", "stored")): 3}


def test_counts_survive_a_lost_database() -> None:
    class Lost(Gated):
        lost = True

        def count_up(self, values):  # type: ignore[no-untyped-def]
            if self.lost:
                raise WorldError("the database does not answer")
            super().count_up(values)

    ledger = Lost()
    writer = GroupCommitWriter(ledger, look=0.05)
    writer.start()
    writer.count("precedent_deliveries_total", ("issues", "stored"))
    time.sleep(0.3)
    ledger.lost = False
    assert writer.stop(5)
    assert sum(ledger.counters().values()) == 1
