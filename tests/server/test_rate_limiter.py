"""Guesses at the password of the status page: how many there may be, and that nobody is locked out by others."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.server.rate_limiter import (
    FORGET_AFTER,
    FREE_TRIES,
    LONGEST,
    MOST,
    REFILL_SECONDS,
    SHARED_TRIES,
    PasswordLimiter,
)
from tests.server.client import PASSWORD, Answer, Line, knowing
from tests.server.doorway import running

DAY = 86_400


class Guesses:
    """A brake, its clock, and how many passwords were looked at."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.looked = 0
        self.brake = PasswordLimiter(lambda: self.now)

    def _look(self, *, right: bool) -> bool:
        self.looked += 1
        return right

    def guess(self, peer: str, *, right: bool = False, near: bool = False) -> int | bool:
        """How long to wait, or whether it was right."""
        tried = self.brake.try_password(peer, lambda: self._look(right=right), near=near)
        return tried.wait or tried.is_right

    def besiege(self, seconds: float, peers: int, every: float = 1.0) -> int:
        """Wrong passwords from so many peers, one after another; how many were looked at."""
        before, until, run = self.looked, self.now + seconds, 0
        while self.now < until:
            self.guess(f"peer {run % peers}")
            run += 1
            self.now += every
        return self.looked - before


@pytest.fixture
def guesses() -> Guesses:
    return Guesses()


def test_a_few_wrong_ones_are_free_and_then_the_waits_grow(guesses: Guesses) -> None:
    waits = []
    for _ in range(FREE_TRIES + 12):
        while isinstance(wait := guesses.guess("a", near=True), int) and wait > 0 and not isinstance(wait, bool):
            waits.append(wait)
            guesses.now += wait
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]


def test_what_is_tried_meanwhile_is_not_looked_at_and_makes_the_wait_no_longer(guesses: Guesses) -> None:
    for _ in range(FREE_TRIES):
        guesses.guess("a")
    assert guesses.guess("a", right=True) == 1
    looked = guesses.looked
    for _ in range(1000):
        guesses.guess("a", right=True)
    assert guesses.looked == looked
    guesses.now += 1
    assert guesses.guess("a", right=True) is True


def test_the_right_one_ends_it(guesses: Guesses) -> None:
    for _ in range(3):
        for _ in range(FREE_TRIES - 1):
            assert guesses.guess("a") is False
        assert guesses.guess("a", right=True) is True


def test_whoever_stops_is_forgiven(guesses: Guesses) -> None:
    for _ in range(FREE_TRIES):
        guesses.guess("a")
    guesses.now += FORGET_AFTER + 1
    assert [guesses.guess("a") for _ in range(FREE_TRIES)] == [False] * FREE_TRIES


def test_a_peer_that_waits_keeps_no_other_peer_out(guesses: Guesses) -> None:
    for _ in range(2 * FREE_TRIES):
        guesses.guess("a")
    assert guesses.guess("b", right=True) is True


def test_one_peer_gets_a_few_hundred_guesses_a_day(guesses: Guesses) -> None:
    assert guesses.besiege(DAY, 1) < FREE_TRIES + 12 + DAY / LONGEST


def test_many_peers_get_no_more_than_one_in_ten_seconds(guesses: Guesses) -> None:
    assert guesses.besiege(DAY, 100_000, 0.5) <= SHARED_TRIES + DAY / REFILL_SECONDS + 1


def test_while_many_peers_guess_the_operator_comes_in_from_a_known_place_and_from_the_machine(guesses: Guesses) -> None:
    assert guesses.guess("home", right=True) is True
    for _ in range(200):
        guesses.besiege(20, 100_000, 0.5)
        assert guesses.guess("home", right=True) is True
        assert guesses.guess("127.0.0.1", right=True, near=True) is True
    guesses.guess("one more")
    assert guesses.brake.try_password("elsewhere", lambda: True).wait > 0, "it has to wait as all others"


def test_when_they_stop_everybody_comes_in_again(guesses: Guesses) -> None:
    guesses.besiege(1000, 100_000, 0.5)
    guesses.now += REFILL_SECONDS
    assert guesses.guess("elsewhere", right=True) is True


def test_the_tables_have_a_bound(guesses: Guesses) -> None:
    for number in range(3 * MOST):
        guesses.guess(f"right {number}", right=True)
        guesses.guess(f"wrong {number}", near=True)
    assert len(guesses.brake._wrong) <= MOST
    assert len(guesses.brake._right) <= MOST


def test_many_at_once_are_no_more_than_one_after_another(guesses: Guesses) -> None:
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(lambda _: guesses.guess("a"), range(500)))
    assert guesses.looked == FREE_TRIES


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with running(tmp_path_factory.mktemp("data")) as (port, _):
        yield port


def asked(port: int, source: str, credentials: str, path: str = "/", **more: str) -> Answer:
    async def story() -> Answer:
        line = await Line.to(port, source)
        try:
            return await line.ask(
                "GET", path, knowing(credentials) | {key.replace("_", "-"): more[key] for key in more}
            )
        finally:
            await line.close()

    return asyncio.run(story())


RIGHT = f"precedent:{PASSWORD}"


@pytest.mark.parametrize(
    ("source", "path"), [("127.1.0.1", "/"), ("127.1.0.2", "/metrics"), ("127.1.0.3", "/deliveries/1")]
)
def test_a_guesser_is_asked_to_wait_and_others_are_not(port: int, source: str, path: str) -> None:
    statuses = [asked(port, source, f"precedent:guess {number}", path).status for number in range(FREE_TRIES + 2)]
    assert statuses == [*[401] * FREE_TRIES, 429, 429]
    answer = asked(port, source, RIGHT, path)
    assert (answer.status, answer.headers["retry-after"]) == (429, "1")
    assert answer.headers["cache-control"] == "no-store"
    assert asked(port, "127.1.9.9", RIGHT, "/").status == 200


def test_guesses_through_a_proxy_do_not_keep_out_who_comes_directly(port: int) -> None:
    for number in range(FREE_TRIES + 1):
        found = asked(port, "127.1.0.4", f"precedent:{number}", x_forwarded_for=f"192.0.2.{number}")
    assert found.status == 429, "for whom a proxy asks is not believed"
    assert asked(port, "127.1.0.4", RIGHT).status == 200


def test_who_gives_no_password_is_asked_for_one_and_guesses_nothing(port: int) -> None:
    async def story() -> list[int]:
        line = await Line.to(port, "127.1.0.5")
        found = [(await line.ask("GET", "/", {"Host": "localhost"})).status for _ in range(3 * FREE_TRIES)]
        await line.close()
        return found

    assert asyncio.run(story()) == [401] * (3 * FREE_TRIES)
    assert asked(port, "127.1.0.5", RIGHT).status == 200
