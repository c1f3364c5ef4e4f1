"""Guesses at the password of the status page: how many are allowed, and that nobody is locked out by others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.server.rate_limiter import (
    FORGET_AFTER,
    FREE_TRIES,
    MAX_PEERS,
    MAX_WAIT,
    REFILL_SECONDS,
    SHARED_TRIES,
    PasswordLimiter,
)
from tests.server.client import PASSWORD, Answer, Connection, auth_headers
from tests.server.web_process import web_process

DAY = 86_400


class Guesses:
    """A limiter, its clock, and the number of passwords checked."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.checked = 0
        self.limiter = PasswordLimiter(lambda: self.now)

    def _check(self, *, right: bool) -> bool:
        self.checked += 1
        return right

    def guess(self, peer: str, *, right: bool = False, near: bool = False) -> int | bool:
        """Return how long to wait, or whether the password was right."""
        attempt = self.limiter.try_password(peer, lambda: self._check(right=right), near=near)
        return attempt.wait or attempt.is_right

    def attack(self, seconds: float, peers: int, every: float = 1.0) -> int:
        """Send wrong passwords from this many peers, one after another; return how many were checked."""
        before, until, run = self.checked, self.now + seconds, 0
        while self.now < until:
            self.guess(f"peer {run % peers}")
            run += 1
            self.now += every
        return self.checked - before


@pytest.fixture
def guesses() -> Guesses:
    return Guesses()


def test_a_few_wrong_passwords_cost_nothing_and_then_the_waits_grow(guesses: Guesses) -> None:
    waits = []
    for _ in range(FREE_TRIES + 12):
        while isinstance(wait := guesses.guess("a", near=True), int) and wait > 0 and not isinstance(wait, bool):
            waits.append(wait)
            guesses.now += wait
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_tries_during_a_wait_are_not_checked_and_do_not_prolong_it(guesses: Guesses) -> None:
    for _ in range(FREE_TRIES):
        guesses.guess("a")
    assert guesses.guess("a", right=True) == 1
    checked = guesses.checked
    for _ in range(1000):
        guesses.guess("a", right=True)
    assert guesses.checked == checked
    guesses.now += 1
    assert guesses.guess("a", right=True) is True


def test_the_right_password_resets_the_count(guesses: Guesses) -> None:
    for _ in range(3):
        for _ in range(FREE_TRIES - 1):
            assert guesses.guess("a") is False
        assert guesses.guess("a", right=True) is True


def test_wrong_tries_are_forgotten_after_a_while(guesses: Guesses) -> None:
    for _ in range(FREE_TRIES):
        guesses.guess("a")
    guesses.now += FORGET_AFTER + 1
    assert [guesses.guess("a") for _ in range(FREE_TRIES)] == [False] * FREE_TRIES


def test_a_waiting_peer_does_not_lock_out_others(guesses: Guesses) -> None:
    for _ in range(2 * FREE_TRIES):
        guesses.guess("a")
    assert guesses.guess("b", right=True) is True


def test_one_peer_gets_a_few_hundred_guesses_a_day(guesses: Guesses) -> None:
    assert guesses.attack(DAY, 1) < FREE_TRIES + 12 + DAY / MAX_WAIT


def test_many_peers_together_get_one_guess_in_ten_seconds(guesses: Guesses) -> None:
    assert guesses.attack(DAY, 100_000, 0.5) <= SHARED_TRIES + DAY / REFILL_SECONDS + 1


def test_while_many_peers_guess_the_operator_can_log_in_from_known_or_local_addresses(guesses: Guesses) -> None:
    assert guesses.guess("home", right=True) is True
    for _ in range(200):
        guesses.attack(20, 100_000, 0.5)
        assert guesses.guess("home", right=True) is True
        assert guesses.guess("127.0.0.1", right=True, near=True) is True
    guesses.guess("one more")
    assert guesses.limiter.try_password("elsewhere", lambda: True).wait > 0, "it has to wait as all others"


def test_everybody_can_log_in_again_after_an_attack(guesses: Guesses) -> None:
    guesses.attack(1000, 100_000, 0.5)
    guesses.now += REFILL_SECONDS
    assert guesses.guess("elsewhere", right=True) is True


def test_the_tables_of_peers_are_bounded(guesses: Guesses) -> None:
    for number in range(3 * MAX_PEERS):
        guesses.guess(f"right {number}", right=True)
        guesses.guess(f"wrong {number}", near=True)
    assert len(guesses.limiter._wrong) <= MAX_PEERS
    assert len(guesses.limiter._right) <= MAX_PEERS


def test_concurrent_guesses_count_like_sequential_ones(guesses: Guesses) -> None:
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: guesses.guess("a"), range(500)))
    assert guesses.checked == FREE_TRIES


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with web_process(tmp_path_factory.mktemp("data")) as (port, _):
        yield port


def request_page(port: int, source: str, credentials: str, path: str = "/", **more: str) -> Answer:
    async def request() -> Answer:
        line = await Connection.open(port, source)
        try:
            return await line.ask(
                "GET", path, auth_headers(credentials) | {key.replace("_", "-"): more[key] for key in more}
            )
        finally:
            await line.close()

    return asyncio.run(request())


RIGHT = f"precedent:{PASSWORD}"


@pytest.mark.parametrize(
    ("source", "path"), [("127.1.0.1", "/"), ("127.1.0.2", "/metrics"), ("127.1.0.3", "/deliveries/1")]
)
def test_a_guesser_has_to_wait_and_others_do_not(port: int, source: str, path: str) -> None:
    statuses = [
        request_page(port, source, f"precedent:guess {number}", path).status for number in range(FREE_TRIES + 2)
    ]
    assert statuses == [*[401] * FREE_TRIES, 429, 429]
    answer = request_page(port, source, RIGHT, path)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert answer.headers["cache-control"] == "no-store"
    assert request_page(port, "127.1.9.9", RIGHT, "/").status == 200


def test_guesses_through_a_proxy_do_not_lock_out_direct_visitors(port: int) -> None:
    for number in range(FREE_TRIES + 1):
        answer = request_page(port, "127.1.0.4", f"precedent:{number}", x_forwarded_for=f"192.0.2.{number}")
    assert answer.status == 429, "for whom a proxy asks is not believed"
    assert request_page(port, "127.1.0.4", RIGHT).status == 200


def test_a_request_without_a_password_does_not_count_as_a_guess(port: int) -> None:
    async def requests() -> list[int]:
        line = await Connection.open(port, "127.1.0.5")
        statuses = [(await line.ask("GET", "/", {"Host": "localhost"})).status for _ in range(3 * FREE_TRIES)]
        await line.close()
        return statuses

    assert asyncio.run(requests()) == [401] * (3 * FREE_TRIES)
    assert request_page(port, "127.1.0.5", RIGHT).status == 200
