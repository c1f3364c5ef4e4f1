"""How many guesses at the password of the status page a peer has."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from bot.server.pages.access import FORGET_AFTER, FREE_TRIES, MAX_PEERS, REFILL_SECONDS, SHARED_TRIES, PasswordLimiter

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
