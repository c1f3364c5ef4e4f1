"""Pushes are held apart, whoever pushed before."""

from __future__ import annotations

import random
import threading
from pathlib import Path

import pytest

from bot.errors import TipMoved
from bot.memory.folder_store import FolderStore
from bot.server.model import Instant, Stopping
from bot.server.rate_limiter import RateLimiter

BEGAN = 1_800_000_000_000


class Time:
    """Waits that pass at once."""

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
def pace(time: Time) -> RateLimiter:
    return RateLimiter(6, time, time.wait)


def test_a_turn_begins_ten_seconds_after_the_last_push(pace: RateLimiter, time: Time) -> None:
    assert pace.ready((), threading.Event())
    assert time.now == BEGAN
    assert pace.ready((BEGAN - 30_000, BEGAN - 4_000), threading.Event())
    assert time.now == BEGAN + 6_000


def test_a_turn_does_not_begin_when_the_server_stops(pace: RateLimiter) -> None:
    stop = threading.Event()
    stop.set()
    assert not pace.ready((BEGAN,), stop)
    assert not pace.ready((), stop)


def test_a_push_from_the_future_holds_nobody_up_for_long(pace: RateLimiter, time: Time) -> None:
    assert pace.ready((BEGAN + 86_400_000,), threading.Event())
    assert time.now == BEGAN + 60_000


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_no_minute_has_more_than_six_pushes(pace: RateLimiter, time: Time, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    pushes: list[Instant] = []
    for turn in range(8):
        assert pace.ready(pushes[-6:], threading.Event())
        store = pace.store(FolderStore(tmp_path), pushes[-6:], threading.Event())
        for each in range(chance.randint(0, 9)):
            store.write(store.open(), {"file": f"{turn} {each}".encode()}, "next")
            time.now += chance.randint(0, 3_000)
        pushes += store.pushes
    assert max(sum(start <= each < start + 60_000 for each in pushes) for start in pushes) <= 6


def test_what_changes_nothing_and_what_came_too_late_is_no_push(pace: RateLimiter, time: Time, tmp_path: Path) -> None:
    store = pace.store(FolderStore(tmp_path), (), threading.Event())
    first = store.open()
    second = store.write(first, {"file": b"1"}, "one")
    assert store.pushes == [BEGAN]
    with pytest.raises(TipMoved):
        store.write(first, {"file": b"2"}, "two")
    assert store.write(second, {"file": b"1"}, "one again") is second
    assert store.pushes == [BEGAN]


def test_a_push_that_waits_ends_when_the_server_stops(pace: RateLimiter, tmp_path: Path) -> None:
    stop = threading.Event()
    store = pace.store(FolderStore(tmp_path), [BEGAN - at for at in range(6)], stop)
    base = store.open()
    stop.set()
    with pytest.raises(Stopping):
        store.write(base, {"file": b"1"}, "one")
