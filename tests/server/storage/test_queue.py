"""The queue of leased keys: order of claims, protection by leases, and the same checked against a model."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from bot.server.model import Instant, Lease, Priority
from bot.server.storage.database import Database
from bot.server.storage.queue import LEASE_DURATION, OLDEST_EVERY, WorkQueue
from tests.examples import examples
from tests.server.app_environment import Clock
from tests.server.queues import Queue, copy_database, template_file

URGENT, CHANGE, CATCH_UP, HISTORY = Priority


@dataclass
class QueueBench:
    """A queue, its clock, and shorthands."""

    work: WorkQueue
    clock: Clock

    def add(self, *works: tuple[str, Priority, Instant], unread: Collection[str] = ()) -> None:
        self.work.add(works, unread)

    def claim(self, owner: str = "a") -> str:
        lease = self.work.claim(owner)
        return lease.key if lease else ""

    def lease(self, owner: str = "a") -> Lease:
        lease = self.work.claim(owner)
        assert lease
        return lease

    def finish(self, lease: Lease, due: Instant = 0, priority: Priority = CHANGE, *, is_unread: bool = False) -> bool:
        with self.work.database.transaction():
            has_lease = self.work.lock(lease)
            self.work.finish(lease, due, priority, is_unread=is_unread)
            return has_lease


@pytest.fixture
def bench(queue: Queue) -> QueueBench:
    clock = Clock(1_000_000)
    return QueueBench(WorkQueue(queue.inbox.database, clock), clock)


def test_the_most_urgent_key_comes_first_and_among_equals_the_longest_waiting(bench: QueueBench) -> None:
    now = bench.clock.now
    bench.add(("old", CATCH_UP, now - 9_000), ("b", URGENT, now - 2), ("a", URGENT, now - 1), ("c", CHANGE, now - 500))
    assert [bench.claim() for _ in range(5)] == ["b", "a", "c", "old", ""]


def test_every_eighth_claim_takes_the_longest_waiting_key(bench: QueueBench) -> None:
    now = bench.clock.now
    bench.add(("old", HISTORY, now - 9_000), *((f"new-{n}", URGENT, now) for n in range(20)))
    claimed = [bench.claim() for _ in range(OLDEST_EVERY)]
    assert claimed[-1] == "old"
    assert "old" not in claimed[:-1]


def test_concurrent_histories_are_limited_and_other_work_overtakes_them(bench: QueueBench) -> None:
    now, bench.work.histories = bench.clock.now, 2
    bench.add(*((f"history-{n}", HISTORY, now - 9_000 + n) for n in range(3)), ("missed", CATCH_UP, now))
    bench.add(("asked", URGENT, now - 8_000), unread={"asked"})
    leases = [bench.lease() for _ in range(3)]
    assert [(lease.key, lease.is_history) for lease in leases] == [
        ("asked", True), ("missed", False), ("history-0", True)]  # fmt: skip
    assert bench.claim() == "", "two histories are read, though one of them was urgent"
    bench.add(("new", URGENT, now), ("asked", URGENT, now))
    assert bench.claim() == "new"
    assert bench.finish(leases[0], now, URGENT)
    assert [bench.claim(), bench.claim()] == ["asked", "history-1"], "it has been read by now"


def test_a_history_slot_is_free_when_its_lease_expires_or_is_released(bench: QueueBench) -> None:
    now, bench.work.histories = bench.clock.now, 1
    bench.add(("one", HISTORY, now - 3), ("two", HISTORY, now - 2), ("three", HISTORY, now - 1))
    assert (bench.claim("a"), bench.claim("b")) == ("one", "")
    bench.clock.now += LEASE_DURATION
    assert (bench.claim("b"), bench.claim("a")) == ("one", "")
    assert bench.work.release("b") == 1
    assert (bench.claim("a"), bench.claim("b")) == ("one", "")


def test_expired_histories_of_dead_workers_come_before_all_waiting_histories(bench: QueueBench) -> None:
    """Longer waiting or more urgent ones would be interrupted too: each keeps a slot for another lease."""
    now, bench.work.histories = bench.clock.now, 2
    bench.add(*((f"waits-{n}", HISTORY, now - 9_000 + n) for n in range(9)))
    expired = {bench.claim("dead-1"), bench.claim("dead-2")}
    bench.add(("asked", URGENT, now), unread={"asked"})
    bench.clock.now += LEASE_DURATION - 1
    assert bench.claim("alive") == ""
    bench.clock.now += 1
    assert {bench.claim("alive"), bench.claim("alive")} == expired
    assert bench.claim("alive") == ""
    assert bench.work.release("alive") == 2
    assert {bench.claim("alive"), bench.claim("alive")} == expired, "so do those of one that is known to have ended"


def test_an_interrupted_history_has_no_precedence_after_its_next_run(bench: QueueBench) -> None:
    now, bench.work.histories = bench.clock.now, 1
    bench.add(("cut", HISTORY, now - 2), ("other", HISTORY, now - 1))
    assert bench.claim("dead") == "cut"
    bench.clock.now += LEASE_DURATION
    bench.add(("cut", HISTORY, now), ("new", URGENT, now))
    assert bench.claim() == "new", "what is more urgent and reads no history comes first"
    second_lease = bench.lease()
    assert (second_lease.key, second_lease.is_history) == ("cut", True)
    assert bench.finish(second_lease, bench.clock.now, HISTORY)
    assert bench.claim() == "other"


def test_less_urgent_work_does_not_starve_while_all_history_slots_are_taken(bench: QueueBench) -> None:
    now, bench.work.histories = bench.clock.now, 1
    bench.add(("history-0", HISTORY, now - 99_000), ("history-1", HISTORY, now - 98_000))
    assert bench.claim() == "history-0"
    bench.add(("old", CATCH_UP, now - 9_000), *((f"new-{n}", URGENT, now) for n in range(20)))
    assert [bench.claim() for _ in range(OLDEST_EVERY - 1)][-1] == "old"


def test_a_waiting_key_counts_as_history_only_if_all_its_work_is_history(bench: QueueBench) -> None:
    now = bench.clock.now
    bench.add(("a", HISTORY, now), ("b", CHANGE, now), ("c", HISTORY, now))
    bench.add(("a", CHANGE, now), ("b", HISTORY, now), ("c", HISTORY, now))
    assert {(lease.key, lease.is_history) for lease in (bench.lease(), bench.lease(), bench.lease())} == {
        ("a", False), ("b", False), ("c", True)}  # fmt: skip


def test_concurrent_claims_never_exceed_the_limit_of_histories(queue: Queue) -> None:
    clock = Clock(1_000_000)
    work = WorkQueue(queue.inbox.database, clock, histories=2)
    work.add([(f"{n:03}", HISTORY, clock.now) for n in range(40)])
    leased, counts, lock = set[str](), list[int](), threading.Lock()
    end = time.monotonic() + 60

    def drain(owner: int) -> None:
        while len(counts) < 40 and time.monotonic() < end:
            lease = work.claim(f"w{owner}")
            if lease is None:
                time.sleep(0.001)
                continue
            with lock:
                leased.add(lease.key)
                counts.append(len(leased))
            time.sleep(0.005)
            with lock:
                leased.remove(lease.key)
            with work.database.transaction():
                assert work.lock(lease)
                work.finish(lease)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(drain, range(4)))
    assert len(counts) == 40
    assert max(counts) <= 2


def test_a_key_is_leased_once_and_removed_when_finished_with_nothing_due(bench: QueueBench) -> None:
    bench.add(("a", CHANGE, bench.clock.now))
    lease = bench.lease()
    assert bench.claim("b") == ""
    bench.add(("a", URGENT, bench.clock.now))
    assert bench.claim("b") == "", "its worker looks for more before it finishes"
    assert bench.finish(lease)
    assert bench.claim() == ""


def test_more_work_makes_a_waiting_key_more_urgent_and_due_at_once(bench: QueueBench) -> None:
    now = bench.clock.now
    bench.add(("later", CATCH_UP, now + 60_000), ("other", CHANGE, now - 10))
    bench.add(("later", URGENT, now))
    bench.add(("later", HISTORY, now + 90_000))
    assert [bench.claim(), bench.claim(), bench.claim()] == ["later", "other", ""]


def test_only_a_lease_that_ran_out_is_reported_when_it_is_taken_over(
    bench: QueueBench, caplog: pytest.LogCaptureFixture
) -> None:
    bench.add(("17-4", CHANGE, bench.clock.now), ("17-5", CHANGE, bench.clock.now + LEASE_DURATION))
    bench.lease("gone")
    bench.clock.now += LEASE_DURATION
    assert {bench.claim("b"), bench.claim("b")} == {"17-4", "17-5"}
    (record,) = (vars(each) for each in caplog.records)
    assert (record["levelname"], record["repository"], record["worker"]) == ("WARNING", "17-4", "gone")


def test_a_lease_that_is_not_renewed_expires_and_its_owner_cannot_finish(bench: QueueBench) -> None:
    bench.add(("a", CHANGE, bench.clock.now))
    expired = bench.lease("a")
    bench.clock.now += LEASE_DURATION - 1
    assert bench.claim("b") == ""
    bench.clock.now += 1
    second_lease = bench.lease("b")
    assert bench.finish(expired) is False
    assert bench.work.renew("a", [expired.id]) == {expired.id}
    assert bench.work.renew("b", [second_lease.id]) == frozenset()
    assert bench.finish(second_lease) is True


def test_tasks_are_added_once(bench: QueueBench) -> None:
    bench.work.ensure(["resync"])
    lease = bench.lease()
    bench.finish(lease, bench.clock.now + 900_000, CATCH_UP)
    bench.work.ensure(["resync"])
    assert bench.claim() == ""


def test_hasten_makes_a_waiting_task_due_sooner_and_never_later(bench: QueueBench) -> None:
    bench.work.hasten("resync", bench.clock.now)  # not there yet
    bench.work.ensure(["resync"])
    bench.finish(bench.lease(), bench.clock.now + 900_000, CATCH_UP)
    for due in (90_000, 200_000):
        bench.work.hasten("resync", bench.clock.now + due)
    bench.clock.now += 89_000
    assert bench.claim() == ""
    bench.clock.now += 1_000
    assert bench.claim() == "resync"
    bench.work.hasten("resync", bench.clock.now)  # leased: its end says when it is due again
    assert bench.claim() == ""


def test_concurrent_claims_take_each_key_once(queue: Queue) -> None:
    clock = Clock(1_000_000)
    work = WorkQueue(queue.inbox.database, clock)
    work.add([(f"{n:03}", CHANGE, clock.now) for n in range(60)])

    def claim_all(owner: int) -> list[str]:
        keys = []
        while lease := work.claim(f"w{owner}"):
            keys.append(lease.key)
        return keys

    with ThreadPoolExecutor(4) as pool:
        claimed = [key for keys in pool.map(claim_all, range(4)) for key in keys]
    assert sorted(claimed) == [f"{n:03}" for n in range(60)]


def test_work_added_while_a_key_is_being_finished_is_not_lost(queue: Queue) -> None:
    """The worker looks for more and sees none; other work is stored before the worker's transaction ends."""
    clock = Clock(1_000_000)
    work = WorkQueue(queue.inbox.database, clock)
    work.add([("a", CHANGE, clock.now)])
    lease = work.claim("w")
    assert lease
    other = Database(queue.url)

    adding = threading.Thread(target=WorkQueue(other, clock).add, args=[[("a", URGENT, clock.now)]])
    with work.database.transaction():
        assert work.lock(lease)
        adding.start()
        adding.join(0.3)
        work.finish(lease)
    adding.join(10)
    other.close()
    next_lease = work.claim("w")
    assert next_lease
    assert (next_lease.key, next_lease.priority) == ("a", URGENT)


@dataclass
class Row:
    """A key in the model. ``lease`` is "" while nobody works on it; otherwise ``due`` is when the lease expires."""

    priority: Priority
    since: Instant
    due: Instant
    is_history: bool
    lease: str = ""
    owner: str = ""
    was_interrupted: bool = False

    def interrupt(self) -> None:
        """Its worker is gone."""
        self.was_interrupted = self.was_interrupted or bool(self.lease)
        self.lease = self.owner = ""


KEYS = st.sampled_from(["1-1", "1-2", "2-1", "2-2", "3-1"])
OWNERS = st.sampled_from(["a", "b"])
HISTORIES = 2


class Model(RuleBasedStateMachine):
    """The queue beside an equivalent dictionary: exclusive, fenced, in order, with nothing lost or duplicated."""

    open_database: Callable[[], tuple[Database, Callable[[], None]]]

    @initialize()
    def open(self) -> None:
        self.database, self.end = type(self).open_database()
        self.clock = Clock(1_000_000)
        self.work = WorkQueue(self.database, self.clock, HISTORIES)
        self.rows: dict[str, Row] = {}
        self.leases: list[tuple[str, Lease]] = []
        self.claims = 0

    def teardown(self) -> None:
        self.end()

    def _ready(self) -> dict[str, Row]:
        return {key: row for key, row in self.rows.items() if row.due <= self.clock.now}

    @rule(
        key=KEYS, priority=st.sampled_from(Priority), wait=st.sampled_from([0, 0, 10, 40_000]), is_unread=st.booleans()
    )
    def add(self, key: str, priority: Priority, wait: int, is_unread: bool) -> None:
        due, is_history = self.clock.now + wait, is_unread or priority == HISTORY
        self.work.add([(key, priority, due)], {key} if is_unread else set())
        row = self.rows.setdefault(key, Row(priority, due, due, is_history))
        row.priority, row.since = min(row.priority, priority), min(row.since, due)
        if not row.lease:
            row.due, row.is_history = min(row.due, due), row.is_history and is_history

    @rule(owner=OWNERS)
    def claim(self, owner: str) -> None:
        lease = self.work.claim(owner)
        ready = self._ready()
        for row in ready.values():
            row.interrupt()
        is_full = sum(row.is_history for row in self.rows.values() if row.lease) >= HISTORIES
        expired_come_first = any(row.is_history and row.was_interrupted for row in ready.values())
        allowed = {False: not is_full and not expired_come_first, True: not is_full}
        ready = {key: row for key, row in ready.items() if not row.is_history or allowed[row.was_interrupted]}
        assert (lease is not None) == bool(ready)
        if lease is None:
            return
        self.claims += 1
        by_age = {key: row.since for key, row in ready.items()}
        by_rank = {key: (row.priority, row.since) for key, row in ready.items()}
        if self.claims % OLDEST_EVERY == 0:
            assert by_age[lease.key] == min(by_age.values())
        else:
            assert by_rank[lease.key] == min(by_rank.values())
        row = self.rows[lease.key]
        assert lease.is_history == row.is_history
        row.lease, row.owner, row.due, row.was_interrupted = lease.id, owner, self.clock.now + LEASE_DURATION, False
        self.leases.append((owner, lease))

    @rule(
        at=st.integers(0, 20),
        wait=st.sampled_from([None, 0, 10, 40_000]),
        priority=st.sampled_from(Priority),
        is_unread=st.booleans(),
    )
    def finish(self, at: int, wait: int | None, priority: Priority, is_unread: bool) -> None:
        if not self.leases:
            return
        _, lease = self.leases.pop(at % len(self.leases))
        due = 0 if wait is None else self.clock.now + wait
        with self.database.transaction():
            has_lease = self.work.lock(lease)
            if has_lease:
                self.work.finish(lease, due, priority, is_unread=is_unread)
        row = self.rows.get(lease.key)
        assert has_lease == (row is not None and row.lease == lease.id)
        if not has_lease:
            return
        if due:
            since, is_history = max(due, self.clock.now), is_unread or priority == HISTORY
            self.rows[lease.key] = Row(priority, since, due, is_history)
        else:
            del self.rows[lease.key]

    @rule(owner=OWNERS)
    def renew(self, owner: str) -> None:
        ids = [lease.id for of, lease in self.leases if of == owner]
        held = {row.lease: row for row in self.rows.values() if row.lease and row.owner == owner}
        assert self.work.renew(owner, ids) == frozenset(ids) - held.keys()
        for each in ids:
            if each in held:
                held[each].due = self.clock.now + LEASE_DURATION

    @rule(owner=OWNERS)
    def die(self, owner: str) -> None:
        held = [row for row in self.rows.values() if row.lease and row.owner == owner]
        assert self.work.release(owner) == len(held)
        for row in held:
            row.interrupt()
            row.due = min(row.due, self.clock.now)

    @rule(seconds=st.sampled_from([1, 5, 29, 31, 60]))
    def pass_time(self, seconds: int) -> None:
        self.clock.now += 1000 * seconds

    @invariant()
    def same_keys(self) -> None:
        if not hasattr(self, "rows"):
            return
        rows = self.database.rows("select key, lease from queue")
        assert {row["key"] for row in rows} == self.rows.keys()
        working = [row["lease"] for row in rows if row["lease"]]
        assert len(working) == len(set(working))
        reading = self.database.rows("select key from queue where history = 1 and lease <> ''")
        assert len(reading) <= HISTORIES


def on_sqlite() -> tuple[Database, Callable[[], None]]:
    folder = Path(tempfile.mkdtemp(prefix="precedent-queue-"))
    database = Database(copy_database(template_file(), folder))

    def end() -> None:
        database.close()
        shutil.rmtree(folder)

    return database, end


MODEL_SETTINGS = settings(max_examples=examples(60), deadline=None, stateful_step_count=40)


@pytest.mark.slow
def test_the_queue_on_sqlite_behaves_like_the_model() -> None:
    Model.open_database = staticmethod(on_sqlite)
    run_state_machine_as_test(Model, settings=MODEL_SETTINGS)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_queue_on_postgres_behaves_like_the_model(postgres_url: str) -> None:
    database = Database(postgres_url)
    database.make_tables()

    def empty_queue() -> tuple[Database, Callable[[], None]]:
        database.change("delete from queue")
        return database, lambda: None

    Model.open_database = staticmethod(empty_queue)
    run_state_machine_as_test(Model, settings=MODEL_SETTINGS)
    database.close()
