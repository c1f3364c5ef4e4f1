"""The brake on guesses at the password of the status page: for each peer, and for all of them together."""

from __future__ import annotations

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

FREE = 5
"""Wrong passwords in a row for which a peer need not wait."""

LONGEST = 300.0
"""Seconds that a peer waits at most; the first wait is one second, and each further one twice as long."""

FORGIVEN = 3_600.0
"""Seconds after its last wrong password in which a peer is forgotten."""

TOGETHER, AGAIN = 50, 10.0
"""Wrong passwords of all peers together that are looked at; one more after so many seconds each."""

MOST = 1_000
"""Peers that are remembered: as many that were wrong, and as many that were right."""

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a password. ``wait`` is how many seconds it was not looked at for; 0 where it was."""

    is_right: bool
    wait: int = 0


@dataclass(slots=True)
class _Wrong:
    times: int = 0
    last: float = 0.0
    until: float = 0.0


class Brake:
    """Looks at passwords, within bounds. Safe to use by several threads; ``clock`` is in seconds.

    Nobody can lock others out. A peer waits for its own wrong passwords, and what it tries meanwhile makes the wait no
    longer. The brake on all peers together leaves out whoever was right before, and whoever is ``near``: on this
    machine and not behind a proxy.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._wrong: OrderedDict[str, _Wrong] = OrderedDict()
        self._right: OrderedDict[str, None] = OrderedDict()
        self._left = float(TOGETHER)
        self._at = clock()

    def tried(self, peer: str, knows: Callable[[], bool], *, near: bool = False) -> Attempt:
        """``knows`` tells whether the password is right; it is asked only where this peer may try now."""
        with self._lock:
            now = self._clock()
            self._refill(now)
            if wait := self._wait(peer, now, near=near):
                return Attempt(is_right=False, wait=math.ceil(wait))
            if not knows():
                self._count(peer, now)
                return Attempt(is_right=False)
            self._wrong.pop(peer, None)
            _remember(self._right, peer, None)
            return Attempt(is_right=True)

    def _refill(self, now: float) -> None:
        self._left = min(TOGETHER, self._left + max(0.0, now - self._at) / AGAIN)
        self._at = now
        while self._wrong and now - next(iter(self._wrong.values())).last > FORGIVEN:
            self._wrong.popitem(last=False)

    def _wait(self, peer: str, now: float, *, near: bool) -> float:
        own = self._wrong[peer].until - now if peer in self._wrong else 0.0
        is_let_by = near or peer in self._right
        return max(0.0, own, 0.0 if is_let_by or self._left >= 1 else (1 - self._left) * AGAIN)

    def _count(self, peer: str, now: float) -> None:
        self._left = max(0.0, self._left - 1)
        wrong = self._wrong.get(peer) or _Wrong()
        wrong.times, wrong.last = wrong.times + 1, now
        if wrong.times >= FREE:
            wrong.until = now + min(LONGEST, 2.0 ** min(wrong.times - FREE, 20))
        _remember(self._wrong, peer, wrong)


def _remember(known: OrderedDict[str, _T], peer: str, what: _T) -> None:
    """The newest last, and no more than `MOST`."""
    known[peer] = what
    known.move_to_end(peer)
    if len(known) > MOST:
        known.popitem(last=False)
