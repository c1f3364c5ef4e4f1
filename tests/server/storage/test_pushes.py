"""The pace of pushes to a memory branch."""

from __future__ import annotations

import random
import threading
from pathlib import Path
from typing import NoReturn

import pytest

from bot.errors import StoreError, TipMoved
from bot.memory.folder_store import FolderStore
from bot.memory.store import Edits, Snapshot
from bot.server.model import Instant, ServerStopping
from bot.server.storage.branches import PacedStore, RateLimiter

BEGAN = 1_800_000_000_000


class Time:
    """A clock whose waits pass at once."""

    def __init__(self) -> None:
        self.now: Instant = BEGAN

    def __call__(self) -> Instant:
        return self.now

    def wait(self, stop: threading.Event, seconds: float) -> bool:
        if not stop.is_set():
            self.now += round(seconds * 1000)
        return stop.is_set()


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def limiter(time: Time) -> RateLimiter:
    return RateLimiter(6, time, time.wait)


@pytest.mark.parametrize(
    ("ago", "wait"),
    [
        pytest.param((), None, id="no push"),
        pytest.param((30_000, 4_000), 6_000, id="ten seconds after the last one"),
        pytest.param((4_000, 30_000), 6_000, id="in any order"),
        pytest.param((59_000, 40_000, 30_000, 20_000, 9_000), 1_000, id="as late as the next two may be pushed"),
        pytest.param((55_000, 40_000, 30_000, 20_000, 9_000), 5_000, id="when the fifth last is a minute old"),
        pytest.param((99_000, 55_000, 40_000, 30_000, 20_000, 9_000), 5_000, id="the sixth last does not matter"),
        pytest.param((600_000,), -590_000, id="long ago"),
        pytest.param((-50_000,), 60_000, id="a little in the future: it is waited for"),
        pytest.param((-86_400_000,), None, id="far in the future: the clock was set back"),
    ],
)
def test_the_next_run_begins_when_the_limit_of_pushes_allows(
    limiter: RateLimiter, time: Time, ago: tuple[int, ...], wait: int | None
) -> None:
    """``ago`` and ``wait`` are milliseconds before and after now."""
    earliest = limiter.earliest([BEGAN - each for each in ago])
    assert earliest == (0 if wait is None else BEGAN + wait)
    assert time.now == BEGAN, "nobody waits"


@pytest.mark.parametrize(("per_minute", "wait"), [(1, 60_000), (2, 60_000), (3, 60_000), (4, 15_000), (60, 1_000)])
def test_after_two_pushes_the_next_run_waits_as_the_limit_demands(time: Time, per_minute: int, wait: int) -> None:
    limiter = RateLimiter(per_minute, time, time.wait)
    assert limiter.earliest([BEGAN, BEGAN]) == BEGAN + wait


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize(("most", "waits"), [(9, True), (2, False)])
def test_no_minute_has_more_than_six_pushes_and_two_in_a_run_that_began_on_time_do_not_wait(
    limiter: RateLimiter, time: Time, most: int, waits: bool, tmp_path: Path
) -> None:
    chance, pushes = random.Random(5), list[Instant]()
    for run in range(200):
        began = time.now = max(time.now, limiter.earliest(pushes[-6:]))
        store = PacedStore(FolderStore(tmp_path), limiter, pushes[-6:], threading.Event())
        for each in range(chance.randint(0, most)):
            store.write(store.open(), {"file": f"{run} {each}".encode()}, "next")
            time.now += chance.randint(0, 3_000) * waits
        pushes += store.pushes
        assert waits or time.now == began
        time.now += chance.randint(0, 3_000)
    assert max(sum(start <= each < start + 60_000 for each in pushes) for start in pushes) <= 6


def test_a_write_without_a_change_or_that_lost_the_race_does_not_count_as_a_push(
    limiter: RateLimiter, time: Time, tmp_path: Path
) -> None:
    store = PacedStore(FolderStore(tmp_path), limiter, (), threading.Event())
    first = store.open()
    second = store.write(first, {"file": b"1"}, "one")
    assert store.pushes == [BEGAN]
    with pytest.raises(TipMoved):
        store.write(first, {"file": b"2"}, "two")
    assert store.write(second, {"file": b"1"}, "one again") is second
    assert store.pushes == [BEGAN]


def test_a_push_that_waits_ends_when_the_server_stops(limiter: RateLimiter, tmp_path: Path) -> None:
    stop = threading.Event()
    store = PacedStore(FolderStore(tmp_path), limiter, [BEGAN - at for at in range(6)], stop)
    base = store.open()
    stop.set()
    with pytest.raises(ServerStopping):
        store.write(base, {"file": b"1"}, "one")


def test_a_push_whose_answer_is_lost_counts_and_so_do_its_threads(tmp_path: Path) -> None:
    class Lossy(FolderStore):
        def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> NoReturn:
            super().write(base, edits, message, squash=squash)
            raise StoreError("the connection broke")

    store = PacedStore(Lossy(tmp_path), RateLimiter(6, lambda: BEGAN), (), threading.Event())
    with pytest.raises(StoreError):
        store.write(store.open(), {"records/0000/7.json": b"{}"}, "one")
    assert (store.pushes, store.changed) == ([BEGAN], {7})
