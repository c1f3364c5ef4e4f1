"""The queue of leased keys: who gets which key when, what a lease protects, and the same against a model."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test

from bot.server.database import Database
from bot.server.model import Instant, Lease, Priority
from bot.server.queue import LEASE, OLDEST_EVERY, Wakeups, WorkQueue
from tests.examples import examples
from tests.server import postgres
from tests.server.queues import Queue, copied, made_file

URGENT, CHANGE, CATCH_UP, HISTORY = Priority


class Now:
    """A clock that moves when it is told to."""

    def __init__(self, now: Instant = 1_000_000) -> None:
        self.now = now

    def __call__(self) -> Instant:
        return self.now


@dataclass
class Bench:
    """A queue, its clock, and short ways to use it."""

    work: WorkQueue
    clock: Now

    def add(self, *works: tuple[str, Priority, Instant], unread: Collection[str] = ()) -> None:
        with self.work.database.transaction() as adding:
            self.work.add(adding, works, unread)

    def claim(self, owner: str = "a") -> str:
        lease = self.work.claim(owner)
        return lease.key if lease else ""

    def taken(self, owner: str = "a") -> Lease:
        lease = self.work.claim(owner)
        assert lease
        return lease

    def finish(self, lease: Lease, due: Instant = 0, priority: Priority = CHANGE, *, is_unread: bool = False) -> bool:
        with self.work.database.transaction() as ending:
            holds = self.work.lock(ending, lease)
            self.work.finish(ending, lease, due, priority, is_unread=is_unread)
            return holds


@pytest.fixture
def bench(queue: Queue) -> Bench:
    clock = Now()
    return Bench(WorkQueue(queue.inbox.database, clock), clock)


def test_the_most_urgent_comes_first_and_of_equal_ones_what_waited_longest(bench: Bench) -> None:
    now = bench.clock.now
    bench.add(("old", CATCH_UP, now - 9_000), ("b", URGENT, now - 2), ("a", URGENT, now - 1), ("c", CHANGE, now - 500))
    assert [bench.claim() for _ in range(5)] == ["b", "a", "c", "old", ""]


def test_every_eighth_claim_takes_what_has_waited_longest(bench: Bench) -> None:
    now = bench.clock.now
    bench.add(("old", HISTORY, now - 9_000), *((f"new-{n}", URGENT, now) for n in range(20)))
    claimed = [bench.claim() for _ in range(OLDEST_EVERY)]
    assert claimed[-1] == "old"
    assert "old" not in claimed[:-1]


def test_so_many_histories_are_leased_at_once_and_all_else_goes_past_them(bench: Bench) -> None:
    now, bench.work.histories = bench.clock.now, 2
    bench.add(*((f"history-{n}", HISTORY, now - 9_000 + n) for n in range(3)), ("missed", CATCH_UP, now))
    bench.add(("asked", URGENT, now - 8_000), unread={"asked"})
    leases = [bench.taken() for _ in range(3)]
    assert [(lease.key, lease.is_history) for lease in leases] == [
        ("asked", True), ("missed", False), ("history-0", True)]  # fmt: skip
    assert bench.claim() == "", "two histories are read, though one of them was urgent"
    bench.add(("new", URGENT, now), ("asked", URGENT, now))
    assert bench.claim() == "new"
    assert bench.finish(leases[0], now, URGENT)
    assert [bench.claim(), bench.claim()] == ["asked", "history-1"], "it has been read by now"


def test_the_place_of_a_history_is_free_when_its_lease_has_run_out_or_is_released(bench: Bench) -> None:
    now, bench.work.histories = bench.clock.now, 1
    bench.add(("one", HISTORY, now - 3), ("two", HISTORY, now - 2), ("three", HISTORY, now - 1))
    assert (bench.claim("a"), bench.claim("b")) == ("one", "")
    bench.clock.now += LEASE
    assert (bench.claim("b"), bench.claim("a")) == ("one", "")
    assert bench.work.release("b") == 1
    assert (bench.claim("a"), bench.claim("b")) == ("one", "")


def test_histories_of_dead_workers_are_taken_over_when_their_leases_run_out_whatever_waits(bench: Bench) -> None:
    """Those that waited longer, or are more urgent, would be cut off as well: each keeps a place for another lease."""
    now, bench.work.histories = bench.clock.now, 2
    bench.add(*((f"waits-{n}", HISTORY, now - 9_000 + n) for n in range(9)))
    taken = {bench.claim("dead-1"), bench.claim("dead-2")}
    bench.add(("asked", URGENT, now), unread={"asked"})
    bench.clock.now += LEASE - 1
    assert bench.claim("alive") == ""
    bench.clock.now += 1
    assert {bench.claim("alive"), bench.claim("alive")} == taken
    assert bench.claim("alive") == ""
    assert bench.work.release("alive") == 2
    assert {bench.claim("alive"), bench.claim("alive")} == taken, "so do those of one that is known to have ended"


def test_a_cut_off_history_is_an_ordinary_one_when_its_next_run_has_ended(bench: Bench) -> None:
    now, bench.work.histories = bench.clock.now, 1
    bench.add(("cut", HISTORY, now - 2), ("other", HISTORY, now - 1))
    assert bench.claim("dead") == "cut"
    bench.clock.now += LEASE
    bench.add(("cut", HISTORY, now), ("new", URGENT, now))
    assert bench.claim() == "new", "what is more urgent and reads no history comes first"
    again = bench.taken()
    assert (again.key, again.is_history) == ("cut", True)
    assert bench.finish(again, bench.clock.now, HISTORY)
    assert bench.claim() == "other"


def test_what_waits_behind_more_urgent_work_does_not_starve_while_histories_are_full(bench: Bench) -> None:
    now, bench.work.histories = bench.clock.now, 1
    bench.add(("history-0", HISTORY, now - 99_000), ("history-1", HISTORY, now - 98_000))
    assert bench.claim() == "history-0"
    bench.add(("old", CATCH_UP, now - 9_000), *((f"new-{n}", URGENT, now) for n in range(20)))
    assert [bench.claim() for _ in range(OLDEST_EVERY - 1)][-1] == "old"


def test_a_key_that_waits_counts_as_a_history_only_if_all_its_work_does(bench: Bench) -> None:
    now = bench.clock.now
    bench.add(("a", HISTORY, now), ("b", CHANGE, now), ("c", HISTORY, now))
    bench.add(("a", CHANGE, now), ("b", HISTORY, now), ("c", HISTORY, now))
    assert {(lease.key, lease.is_history) for lease in (bench.taken(), bench.taken(), bench.taken())} == {
        ("a", False), ("b", False), ("c", True)}  # fmt: skip


def test_many_claims_at_once_never_lease_more_histories_than_may_be(queue: Queue) -> None:
    clock = Now()
    work = WorkQueue(queue.inbox.database, clock, histories=2)
    with queue.inbox.database.transaction() as adding:
        work.add(adding, [(f"{n:03}", HISTORY, clock.now) for n in range(40)])
    held, most, guard = set[str](), list[int](), threading.Lock()
    end = time.monotonic() + 60

    def drain(owner: int) -> None:
        while len(most) < 40 and time.monotonic() < end:
            lease = work.claim(f"w{owner}")
            if lease is None:
                time.sleep(0.001)
                continue
            with guard:
                held.add(lease.key)
                most.append(len(held))
            time.sleep(0.005)
            with guard:
                held.remove(lease.key)
            with work.database.transaction() as ending:
                assert work.lock(ending, lease)
                work.finish(ending, lease)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(drain, range(4)))
    assert len(most) == 40
    assert max(most) <= 2


def test_a_key_is_leased_once_and_gone_when_it_is_finished_with_nothing_due(bench: Bench) -> None:
    bench.add(("a", CHANGE, bench.clock.now))
    lease = bench.taken()
    assert bench.claim("b") == ""
    bench.add(("a", URGENT, bench.clock.now))
    assert bench.claim("b") == "", "its worker looks for more before it finishes"
    assert bench.finish(lease)
    assert bench.claim() == ""


def test_work_that_is_due_later_comes_then_and_not_before(bench: Bench) -> None:
    bench.add(("a", CHANGE, bench.clock.now + 5_000))
    assert bench.claim() == ""
    bench.clock.now += 5_000
    lease = bench.taken()
    bench.finish(lease, bench.clock.now + 7_000, HISTORY)
    bench.clock.now += 6_999
    assert bench.claim() == ""
    bench.clock.now += 1
    assert bench.taken().priority == HISTORY


def test_more_work_makes_a_waiting_key_more_urgent_and_due_at_once(bench: Bench) -> None:
    now = bench.clock.now
    bench.add(("later", CATCH_UP, now + 60_000), ("other", CHANGE, now - 10))
    bench.add(("later", URGENT, now))
    bench.add(("later", HISTORY, now + 90_000))
    assert [bench.claim(), bench.claim(), bench.claim()] == ["later", "other", ""]


def test_a_lease_that_is_not_renewed_runs_out_and_its_owner_can_finish_nothing(bench: Bench) -> None:
    bench.add(("a", CHANGE, bench.clock.now))
    lost = bench.taken("a")
    bench.clock.now += LEASE - 1
    assert bench.claim("b") == ""
    bench.clock.now += 1
    taken = bench.taken("b")
    assert bench.finish(lost) is False
    assert bench.work.renew("a", [lost.id]) == {lost.id}
    assert bench.work.renew("b", [taken.id]) == frozenset()
    assert bench.finish(taken) is True


def test_a_lease_that_is_renewed_stays(bench: Bench) -> None:
    bench.add(("a", CHANGE, bench.clock.now))
    lease = bench.taken("a")
    for _ in range(4):
        bench.clock.now += LEASE - 1
        assert bench.work.renew("a", [lease.id]) == frozenset()
        assert bench.claim("b") == ""
    assert bench.finish(lease) is True


def test_what_an_owner_held_is_ready_when_it_is_known_to_have_ended(bench: Bench) -> None:
    now = bench.clock.now
    bench.add(("a", CHANGE, now), ("b", CHANGE, now), ("c", CHANGE, now))
    lost = [bench.taken("dead"), bench.taken("dead")]
    kept = bench.taken("alive")
    assert bench.work.release("dead") == 2
    assert bench.work.release("dead") == 0
    assert not any(bench.finish(lease) for lease in lost)
    assert {bench.claim("alive"), bench.claim("alive"), bench.claim("alive")} == {"a", "b", ""}
    assert bench.finish(kept) is True


def test_tasks_are_added_once(bench: Bench) -> None:
    bench.work.ensure(["resync"])
    lease = bench.taken()
    bench.finish(lease, bench.clock.now + 900_000, CATCH_UP)
    bench.work.ensure(["resync"])
    assert bench.claim() == ""


def test_a_task_that_waits_is_hastened_and_never_put_off(bench: Bench) -> None:
    bench.work.hasten("resync", bench.clock.now)  # not there yet
    bench.work.ensure(["resync"])
    bench.finish(bench.taken(), bench.clock.now + 900_000, CATCH_UP)
    for due in (90_000, 200_000):
        bench.work.hasten("resync", bench.clock.now + due)
    bench.clock.now += 89_000
    assert bench.claim() == ""
    bench.clock.now += 1_000
    assert bench.claim() == "resync"
    bench.work.hasten("resync", bench.clock.now)  # leased: its end says when it is due again
    assert bench.claim() == ""


def test_many_claims_at_once_take_each_key_once(queue: Queue) -> None:
    clock = Now()
    work = WorkQueue(queue.inbox.database, clock)
    with queue.inbox.database.transaction() as adding:
        work.add(adding, [(f"{n:03}", CHANGE, clock.now) for n in range(60)])

    def drained(owner: int) -> list[str]:
        found = []
        while lease := work.claim(f"w{owner}"):
            found.append(lease.key)
        return found

    with ThreadPoolExecutor(4) as pool:
        found = [key for keys in pool.map(drained, range(4)) for key in keys]
    assert sorted(found) == [f"{n:03}" for n in range(60)]


def test_work_that_comes_while_a_key_is_finished_is_not_lost(queue: Queue) -> None:
    """The worker looks for more and sees none; the other's work is stored before the worker's transaction ends."""
    clock = Now()
    work = WorkQueue(queue.inbox.database, clock)
    with work.database.transaction() as adding:
        work.add(adding, [("a", CHANGE, clock.now)])
    lease = work.claim("w")
    assert lease
    other = Database(queue.url)

    def add() -> None:
        with other.transaction() as adding:
            work.add(adding, [("a", URGENT, clock.now)])

    adding = threading.Thread(target=add)
    with work.database.transaction() as ending:
        assert work.lock(ending, lease)
        adding.start()
        adding.join(0.3)
        work.finish(ending, lease)
    adding.join(10)
    other.close()
    again = work.claim("w")
    assert again
    assert (again.key, again.priority) == ("a", URGENT)


@pytest.mark.postgres
def test_a_worker_is_woken_by_another_connection(postgres_server: postgres.Server, made_postgres: str) -> None:
    with ExitStack() as stack:
        url = stack.enter_context(postgres_server.database(template=made_postgres))
        here, there = (stack.enter_context(closing(Database(url))) for _ in range(2))
        wakeups, work = Wakeups(here, interval=30.0), WorkQueue(there, Now())
        stack.enter_context(wakeups.listening())
        until_listens = time.monotonic() + 100  # until then a wait lasts its 30 s
        seconds = 30.0
        while seconds > 5 and time.monotonic() < until_listens:
            adding = threading.Timer(0.1, lambda: _add(work))
            adding.start()
            began = time.monotonic()
            wakeups.wait()
            seconds = time.monotonic() - began
            adding.join()
        assert seconds < 5


def _add(work: WorkQueue) -> None:
    with work.database.transaction() as adding:
        work.add(adding, [("a", CHANGE, 1)])


def test_on_sqlite_it_looks_again_after_a_moment(tmp_path: Path) -> None:
    database = Database(copied(made_file(), tmp_path))
    wakeups = Wakeups(database, interval=0.05)
    with wakeups.listening():
        began = time.monotonic()
        wakeups.wait()
        assert time.monotonic() - began < 5
    database.close()


@dataclass
class Row:
    """A key in the model. ``lease`` is "" where nobody works on it; ``due`` is when its lease runs out otherwise."""

    priority: Priority
    since: Instant
    due: Instant
    is_history: bool
    lease: str = ""
    owner: str = ""
    was_cut_off: bool = False

    def cut_off(self) -> None:
        """Its worker is gone."""
        self.was_cut_off = self.was_cut_off or bool(self.lease)
        self.lease = self.owner = ""


KEYS = st.sampled_from(["1-1", "1-2", "2-1", "2-2", "3-1"])
OWNERS = st.sampled_from(["a", "b"])
HISTORIES = 2


class Model(RuleBasedStateMachine):
    """The queue beside a dictionary that means the same: exclusive, fenced, in order, with nothing lost or twice."""

    made: Callable[[], tuple[Database, Callable[[], None]]]

    @initialize()
    def open(self) -> None:
        self.database, self.end = type(self).made()
        self.clock = Now()
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
        with self.database.transaction() as adding:
            self.work.add(adding, [(key, priority, due)], {key} if is_unread else set())
        row = self.rows.setdefault(key, Row(priority, due, due, is_history))
        row.priority, row.since = min(row.priority, priority), min(row.since, due)
        if not row.lease:
            row.due, row.is_history = min(row.due, due), row.is_history and is_history

    @rule(owner=OWNERS)
    def claim(self, owner: str) -> None:
        lease = self.work.claim(owner)
        ready = self._ready()
        for row in ready.values():
            row.cut_off()
        is_full = sum(row.is_history for row in self.rows.values() if row.lease) >= HISTORIES
        first = any(row.is_history and row.was_cut_off for row in ready.values())
        may_read = {False: not is_full and not first, True: not is_full}
        ready = {key: row for key, row in ready.items() if not row.is_history or may_read[row.was_cut_off]}
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
        row.lease, row.owner, row.due, row.was_cut_off = lease.id, owner, self.clock.now + LEASE, False
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
        with self.database.transaction() as ending:
            holds = self.work.lock(ending, lease)
            if holds:
                self.work.finish(ending, lease, due, priority, is_unread=is_unread)
        row = self.rows.get(lease.key)
        assert holds == (row is not None and row.lease == lease.id)
        if not holds:
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
                held[each].due = self.clock.now + LEASE

    @rule(owner=OWNERS)
    def die(self, owner: str) -> None:
        held = [row for row in self.rows.values() if row.lease and row.owner == owner]
        assert self.work.release(owner) == len(held)
        for row in held:
            row.cut_off()
            row.due = min(row.due, self.clock.now)

    @rule(seconds=st.sampled_from([1, 5, 29, 31, 60]))
    def pass_time(self, seconds: int) -> None:
        self.clock.now += 1000 * seconds

    @invariant()
    def same_keys(self) -> None:
        if not hasattr(self, "rows"):
            return
        with self.database.transaction() as asking:
            found = asking.rows("select key, lease from queue")
        assert {row["key"] for row in found} == self.rows.keys()
        working = [row["lease"] for row in found if row["lease"]]
        assert len(working) == len(set(working))
        with self.database.transaction() as asking:
            reading = asking.rows("select key from queue where history = 1 and lease <> ''")
        assert len(reading) <= HISTORIES


def on_sqlite() -> tuple[Database, Callable[[], None]]:
    folder = Path(tempfile.mkdtemp(prefix="precedent-queue-"))
    database = Database(copied(made_file(), folder))

    def end() -> None:
        database.close()
        shutil.rmtree(folder)

    return database, end


MODELLED = settings(max_examples=examples(60), deadline=None, stateful_step_count=40)


@pytest.mark.slow
def test_the_queue_on_sqlite_does_what_the_model_does() -> None:
    Model.made = staticmethod(on_sqlite)
    run_state_machine_as_test(Model, settings=MODELLED)


@pytest.mark.slow
@pytest.mark.postgres
def test_the_queue_on_postgres_does_what_the_model_does(postgres_url: str) -> None:
    database = Database(postgres_url)
    database.make_tables()

    def emptied() -> tuple[Database, Callable[[], None]]:
        with database.transaction() as emptying:
            emptying.change("delete from queue")
        return database, lambda: None

    Model.made = staticmethod(emptied)
    run_state_machine_as_test(Model, settings=MODELLED)
    database.close()
