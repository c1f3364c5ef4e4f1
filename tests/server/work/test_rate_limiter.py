"""Limits: guesses at the password of the status page, the pace of pushes, and what one peer may have."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_network
from pathlib import Path
from typing import NoReturn

import pytest

from bot.errors import StoreError, TipMoved
from bot.memory.folder_store import FolderStore
from bot.memory.store import Edits, Snapshot
from bot.server.model import Instant, ServerStopping
from bot.server.work.rate_limiter import (
    FORGET_AFTER,
    FREE_TRIES,
    MAX_PEERS,
    REFILL_SECONDS,
    SHARED_TRIES,
    PacedStore,
    PasswordLimiter,
    PeerShare,
    PeerShares,
    RateLimiter,
    client_of,
    peer_of,
)

BEGAN = 1_800_000_000_000
HOUR = 3_600


class Guesses:
    """A limiter, its clock, and the number of wrong passwords that it counted."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.counted = 0
        self.limiter = PasswordLimiter(lambda: self.now)

    def guess(self, peer: str) -> int:
        """Return how long to wait after a wrong password."""
        wait = self.limiter.note_wrong(peer)
        self.counted += not wait
        return wait

    def attack(self, seconds: float, peers: int, every: float = 1.0) -> int:
        """Send wrong passwords from this many peers, one after another; return how many were counted."""
        before, until, run = self.counted, self.now + seconds, 0
        while self.now < until:
            self.guess(f"peer {run % peers}")
            run += 1
            self.now += every
        return self.counted - before


@pytest.fixture
def guesses() -> Guesses:
    return Guesses()


def test_a_few_wrong_passwords_cost_nothing_and_then_the_waits_grow(guesses: Guesses) -> None:
    waits = []
    for _ in range(FREE_TRIES + 12):
        while wait := guesses.guess("a"):
            waits.append(wait)
            guesses.now += wait
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_tries_during_a_wait_do_not_prolong_it(guesses: Guesses) -> None:
    for _ in range(FREE_TRIES):
        assert guesses.guess("a") == 0
    assert {guesses.guess("a") for _ in range(1000)} == {1}
    guesses.now += 1
    assert guesses.guess("a") == 0


def test_the_right_password_resets_the_count(guesses: Guesses) -> None:
    for _ in range(3):
        assert [guesses.guess("a") for _ in range(FREE_TRIES)] == [0] * FREE_TRIES
        guesses.limiter.note_right("a")


def test_wrong_tries_are_forgotten_after_a_while(guesses: Guesses) -> None:
    for _ in range(FREE_TRIES):
        guesses.guess("a")
    guesses.now += FORGET_AFTER + 1
    assert [guesses.guess("a") for _ in range(FREE_TRIES)] == [0] * FREE_TRIES


def test_a_waiting_peer_makes_no_other_wait(guesses: Guesses) -> None:
    for _ in range(2 * FREE_TRIES):
        guesses.guess("a")
    assert guesses.guess("b") == 0


def test_many_peers_together_get_one_guess_in_ten_seconds(guesses: Guesses) -> None:
    assert guesses.attack(4 * HOUR, 100_000, 0.5) <= SHARED_TRIES + 4 * HOUR / REFILL_SECONDS + 1
    guesses.now += REFILL_SECONDS
    assert guesses.guess("elsewhere") == 0


def test_the_table_of_peers_is_bounded(guesses: Guesses) -> None:
    for number in range(3 * MAX_PEERS):
        guesses.guess(f"wrong {number}")
        guesses.now += REFILL_SECONDS / 10
    assert len(guesses.limiter._wrong) <= MAX_PEERS


def test_concurrent_guesses_count_like_sequential_ones(guesses: Guesses) -> None:
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: guesses.guess("a"), range(500)))
    assert guesses.counted == FREE_TRIES


# -- the pace of pushes


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


# -- peers, and their shares


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::1"),
        ("", "local"),
        ("/run/socket", "local"),
    ],
)
def test_a_peer_is_an_address_or_the_network_of_one_customer(address: str, peer: str) -> None:
    assert peer_of((address, 443)) == peer
    assert peer_of(None) == "local", "a connection without an address"


TRUSTED = [ip_network(text) for text in ("10.0.0.0/8", "192.0.2.1", "2001:db8:5::/48")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "8.8.8.8, 198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "8.8.8.8,198.51.100.7 , 192.0.2.1,10.9.9.9", "198.51.100.7"),
        ("10.0.0.1", "10.0.0.7, 10.0.0.8", "10.0.0.7"),
        ("10.0.0.1", "198.51.100.7:5678", "198.51.100.7"),
        ("10.0.0.1", "[2001:db8:7::1]:5678", "2001:db8:7::1"),
        ("2001:db8:5::2", "2001:db8:7::1", "2001:db8:7::1"),
        ("10.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "8.8.8.8, unknown", "10.0.0.1"),
        ("10.0.0.1", "8.8.8.8, unknown, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "8.8.8.8, ", "10.0.0.1"),
        ("10.0.0.1", "127.0.0.1\x00", "10.0.0.1"),
        ("/run/socket", "198.51.100.7", "/run/socket"),
    ],
)
def test_only_a_trusted_proxy_names_the_client(peer: str, forwarded: str, client: str) -> None:
    named = client_of((peer, 443), forwarded, TRUSTED)
    assert named is not None
    assert named[0] == client
    assert client_of((peer, 443), forwarded, ()) == (peer, 443)
    assert client_of(None, forwarded, TRUSTED) is None


class Holders:
    """Shares by name, and the names of those that were ended."""

    def __init__(self, size: int, most: int) -> None:
        self.shares = PeerShares(size, most)
        self.ended: list[str] = []
        self.permanent: set[str] = set()

    def hold(self, name: str, peer: str, amount: int) -> tuple[PeerShare, bool]:
        share = self.shares.open(peer, lambda: self._end(name))
        return share, self.shares.take(share, amount)

    def _end(self, name: str) -> bool:
        if name in self.permanent:
            return False
        self.ended.append(name)
        return True


def test_anybody_gets_a_share_while_there_is_room() -> None:
    holders = Holders(10, 6)
    assert [holders.hold("a", "A", 6)[1], holders.hold("b", "B", 4)[1]] == [True, True]
    assert holders.ended == []


def test_a_peer_at_its_limit_loses_its_oldest_share() -> None:
    holders = Holders(100, 6)
    for name in "abcd":
        assert holders.hold(name, "A", 2)[1]
    assert holders.hold("e", "B", 2)[1]
    assert holders.ended == ["a"]


def test_when_all_is_taken_the_peer_with_the_most_loses_a_share() -> None:
    holders = Holders(10, 10)
    for name, peer in (("a", "A"), ("b", "B"), ("c", "B"), ("d", "C")):
        holders.hold(name, peer, 2)
    assert holders.hold("e", "D", 4)[1]
    assert holders.ended == ["b"]


def test_the_peer_with_the_most_loses_its_own_share_when_it_asks_for_more() -> None:
    holders = Holders(10, 10)
    first, _ = holders.hold("a", "A", 6)
    holders.hold("b", "B", 4)
    assert not holders.shares.take(first, 1)
    assert holders.ended == ["a"]
    assert holders.hold("c", "C", 6)[1]


def test_shares_that_cannot_be_ended_stay_and_newcomers_are_refused() -> None:
    holders = Holders(4, 4)
    holders.permanent = {"a", "b"}
    assert holders.hold("a", "A", 2)[1]
    assert holders.hold("b", "B", 2)[1]
    assert not holders.hold("c", "C", 1)[1]
    assert holders.ended == []


def test_a_renewed_share_counts_as_new() -> None:
    holders = Holders(2, 2)
    first, _ = holders.hold("a", "A", 1)
    holders.hold("b", "A", 1)
    holders.shares.renew(first)
    holders.hold("c", "A", 1)
    assert holders.ended == ["b"]


def test_a_closed_share_frees_its_room_once() -> None:
    holders = Holders(4, 4)
    share, _ = holders.hold("a", "A", 4)
    holders.shares.close(share)
    holders.shares.close(share)
    assert holders.hold("b", "B", 4)[1]
    holders.permanent = {"b"}
    assert not holders.hold("c", "C", 1)[1]
