"""The writer: it stores before it answers, in groups, with limits; a full queue or a database error fails quickly."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from bot.errors import WorldError
from bot.github.events import Event
from bot.server.model import Delivery, ReceiveQueueFull, RepositoryKey
from bot.server.receive.writer import MAX_GROUP, GroupCommitWriter
from tests.server.queues import FileInbox

SAMPLE = Delivery("7:1", RepositoryKey(1, 17), Event("issues", "opened", 1))


class GatedInbox(FileInbox):
    """An inbox that stores once its gate is open, and records the sizes of the groups."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.groups: list[int] = []
        self.before_put: Callable[[Sequence[Delivery]], None] = lambda _: None

    def put(self, arrivals: Sequence[Delivery]) -> list[bool]:
        self.entered.set()
        self.gate.wait(10)
        self.groups.append(len(arrivals))
        self.before_put(arrivals)
        return super().put(arrivals)


def arrival(number: int) -> Delivery:
    return replace(SAMPLE, id=f"7:{number}", event=Event("issues", "opened", number))


def store_many(inbox: GatedInbox, count: int, limit: int = 500) -> list[object]:
    """Store so many deliveries and return the results; behind a closed gate the first one waits for the others."""
    inbox.gate.clear()

    async def store_all() -> list[object]:
        writer = GroupCommitWriter(inbox, most=limit)
        writer.start()
        waiting = [asyncio.create_task(writer.store(arrival(0)))]
        await asyncio.to_thread(inbox.entered.wait, 5)
        waiting += [asyncio.create_task(writer.store(arrival(number))) for number in range(1, count)]
        await asyncio.sleep(0.2)
        inbox.gate.set()
        results = await asyncio.gather(*waiting, return_exceptions=True)
        assert writer.stop(5)
        return list(results)

    return asyncio.run(store_all())


def test_waiting_deliveries_are_stored_in_groups_and_in_order() -> None:
    inbox = GatedInbox()
    assert store_many(inbox, 100) == [True] * 100
    assert len(inbox.groups) <= 5
    assert max(inbox.groups) == MAX_GROUP
    assert [row.id for row in reversed(inbox.deliveries(limit=100))] == [f"7:{number}" for number in range(100)]


def test_deliveries_beyond_the_limit_are_refused_and_the_others_stored() -> None:
    inbox = GatedInbox()
    results = store_many(inbox, 40, limit=10)
    refused = [result for result in results if isinstance(result, ReceiveQueueFull)]
    assert results.count(True) + len(refused) == 40
    assert len(refused) == 29
    assert len(inbox.deliveries()) == results.count(True)


def test_a_database_error_reaches_all_deliveries_of_the_group() -> None:
    inbox = GatedInbox()

    def fail(_: Sequence[Delivery]) -> None:
        raise WorldError("the database does not answer")

    inbox.before_put = fail
    results = store_many(inbox, 5)
    assert [str(result) for result in results] == ["the database does not answer"] * 5
    assert len(inbox.groups) <= 2


def test_a_delivery_that_cannot_be_stored_does_not_affect_its_group() -> None:
    inbox = GatedInbox()

    def reject_third(arrivals: Sequence[Delivery]) -> None:
        if any(one.id == "7:3" for one in arrivals):
            raise ValueError("a number that no column holds")

    inbox.before_put = reject_third
    results = store_many(inbox, 6)
    assert [one for one in results if one is not True] == [results[3]]
    assert isinstance(results[3], WorldError)
    assert len(inbox.deliveries()) == 5


def test_the_writer_continues_after_a_bug() -> None:
    inbox = GatedInbox()

    async def store_after_bug() -> bool:
        writer = GroupCommitWriter(inbox)
        writer.start()

        def fail(_: Sequence[Delivery]) -> None:
            raise KeyError("bug")

        inbox.before_put = fail
        with pytest.raises(WorldError, match="bug of Precedent"):
            await writer.store(arrival(1))
        inbox.before_put = lambda _: None
        return await writer.store(arrival(2))

    assert asyncio.run(store_after_bug())


def test_a_store_that_times_out_is_still_completed_later() -> None:
    inbox = GatedInbox()
    inbox.gate.clear()

    async def store_after_timeout() -> list[bool]:
        writer = GroupCommitWriter(inbox, patience=0.1)
        writer.start()
        with pytest.raises(TimeoutError):
            await writer.store(SAMPLE)
        inbox.gate.set()
        for _ in range(100):
            if inbox.deliveries():
                break
            await asyncio.sleep(0.02)
        return [await writer.store(SAMPLE), await writer.store(arrival(2))]

    assert asyncio.run(store_after_timeout()) == [False, True]


def test_a_cancelled_store_does_not_hold_up_its_group() -> None:
    inbox = GatedInbox()
    inbox.gate.clear()

    async def cancel_one() -> list[bool]:
        writer = GroupCommitWriter(inbox)
        writer.start()
        waiting = [asyncio.create_task(writer.store(arrival(number))) for number in range(4)]
        await asyncio.sleep(0.2)
        waiting[2].cancel()
        await asyncio.sleep(0)
        inbox.gate.set()
        return await asyncio.gather(waiting[0], waiting[1], waiting[3])

    assert asyncio.run(asyncio.wait_for(cancel_one(), 5)) == [True] * 3
    assert len(inbox.deliveries()) == 4


def test_the_writer_reopens_automatically() -> None:
    reasons = ["the disk is full"]

    async def store_after_reopening() -> bool:
        writer = GroupCommitWriter(GatedInbox(), lambda: reasons[0], look=0.05)
        writer.start()
        with pytest.raises(ReceiveQueueFull, match="the disk is full"):
            await writer.store(SAMPLE)
        reasons[0] = ""
        await asyncio.sleep(0.5)
        return await writer.store(SAMPLE)

    assert asyncio.run(store_after_reopening())


def test_a_stopping_writer_stores_waiting_deliveries_and_refuses_new_ones() -> None:
    inbox = GatedInbox()
    inbox.gate.clear()

    async def stop_while_waiting() -> list[bool]:
        writer = GroupCommitWriter(inbox)
        writer.start()
        waiting = [asyncio.create_task(writer.store(arrival(number))) for number in range(50)]
        await asyncio.sleep(0.1)
        threading.Timer(0.2, inbox.gate.set).start()
        assert await asyncio.to_thread(writer.stop, 5)
        with pytest.raises(ReceiveQueueFull):
            await writer.store(arrival(99))
        return await asyncio.gather(*waiting)

    assert asyncio.run(stop_while_waiting()) == [True] * 50


def test_counts_are_summed_and_written_at_the_end_at_the_latest() -> None:
    inbox = GatedInbox()
    writer = GroupCommitWriter(inbox)
    writer.start()
    for _ in range(3):
        writer.count("precedent_deliveries_total", ("issues", "stored"))
    assert writer.stop(5)
    assert inbox.counters.read() == {("precedent_deliveries_total", ("issues", "stored")): 3}


def rename_table(inbox: GatedInbox, name: str, new: str) -> None:
    inbox.database.change(f"alter table {name} rename to {new}")


def test_counts_survive_a_database_outage() -> None:
    inbox = GatedInbox()
    rename_table(inbox, "tallied", "away")
    writer = GroupCommitWriter(inbox, look=0.05)
    writer.start()
    writer.count("precedent_deliveries_total", ("issues", "stored"))
    time.sleep(0.3)
    rename_table(inbox, "away", "tallied")
    assert writer.stop(5)
    assert sum(inbox.counters.read().values()) == 1
