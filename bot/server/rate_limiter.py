"""Limits: pushes to a repository in a minute; connections, memory and wrong passwords of each peer."""

from __future__ import annotations

import itertools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address
from threading import Lock
from typing import TypeVar

from bot.memory.store import Edits, Snapshot, Store
from bot.server.model import MINUTE, Instant, Stopping

Wait = Callable[[threading.Event, float], bool]


class RateLimiter:
    """At most ``per_minute`` pushes within any minute. ``wait`` waits so many seconds for an event to be set."""

    def __init__(self, per_minute: int, clock: Callable[[], Instant], wait: Wait = threading.Event.wait) -> None:
        self.per_minute = per_minute
        self.clock = clock
        self.wait = wait

    def ready(self, pushes: Sequence[Instant], stop: threading.Event) -> bool:
        """Wait until the last push is long enough ago for a run to be worth it; False when told to stop meanwhile."""
        last = max(pushes, default=0)
        return not stop.is_set() and self._until(last + MINUTE // self.per_minute, stop)

    def room(self, pushes: Sequence[Instant], stop: threading.Event) -> None:
        """Wait until one more push is within the bounds. Raises Stopping."""
        full = sorted(pushes)[-self.per_minute :]
        if len(full) == self.per_minute and not self._until(full[0] + MINUTE, stop):
            raise Stopping("the server stopped: the next one goes on")

    def store(self, store: Store, pushes: Iterable[Instant], stop: threading.Event) -> PacedStore:
        """``store``, whose writes keep to this; ``pushes`` are earlier ones to the same branch."""
        return PacedStore(store, self, pushes, stop)

    def _until(self, then: Instant, stop: threading.Event) -> bool:
        left = min(then - self.clock(), MINUTE)  # a push from the future is one by a clock that was put back
        return left <= 0 or not self.wait(stop, left / 1000)


class PacedStore:
    """A store whose writes wait until they may be pushed. ``pushes`` are the times of its own."""

    def __init__(self, store: Store, pace: RateLimiter, earlier: Iterable[Instant], stop: threading.Event) -> None:
        self.pushes: list[Instant] = []
        self._store, self._pace, self._stop = store, pace, stop
        self._earlier = tuple(earlier)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """As `Store.write`, after a wait where there were enough of late. Raises Stopping."""
        self._pace.room((*self._earlier, *self.pushes), self._stop)
        written = self._store.write(base, edits, message, squash=squash)
        if written is not base:
            self.pushes.append(self._pace.clock())
        return written

    def close(self) -> None:
        self._store.close()


CUSTOMER = 64
"""Bits of an IPv6 address that are one customer's, who may use any address behind them."""

NAMELESS = "local"
"""The peer of a connection without an address, as over a socket of the machine itself."""

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


def peer_of(client: tuple[str, int] | None) -> str:
    """Who is at the other end: an IPv4 address, or the first 64 bits of an IPv6 one.

    Behind a proxy that is the proxy, for everybody: what a header says about others is not believed.
    """
    try:
        address = ip_address(client[0].partition("%")[0]) if client else None
    except ValueError:
        address = None
    if isinstance(address, IPv6Address) and not address.is_loopback:
        address = address.ipv4_mapped or IPv6Address(int(address) >> CUSTOMER << CUSTOMER)
    return str(address) if address else NAMELESS


def is_near(peer: str) -> bool:
    """Whether that is this machine."""
    return peer == NAMELESS or ip_address(peer).is_loopback


@dataclass(slots=True, eq=False)
class PeerShare:
    """What one holder has. ``give_way`` has it end and returns True, or False where it cannot be ended now."""

    peer: str
    give_way: Callable[[], bool]
    since: int
    held: int = 0


class PeerShares:
    """Up to ``size`` of something, of which a peer has ``most`` at once. Used by one event loop alone.

    Where there is no room, whoever has waited longest gives way: of the peer itself once it has its ``most``, else of
    the peer that has more than any other. So slow ones do not keep quick ones out, whether they come from one address,
    from hundreds, or through one proxy.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._most = most
        self._open: set[PeerShare] = set()
        self._total = 0
        self._of_peer: dict[str, int] = {}
        self._counted = itertools.count()

    def open(self, peer: str, give_way: Callable[[], bool]) -> PeerShare:
        """A share that holds nothing yet."""
        share = PeerShare(peer, give_way, next(self._counted))
        self._open.add(share)
        return share

    def take(self, share: PeerShare, much: int) -> bool:
        """Whether the share may hold so much more; what it held is free again where not."""
        while share in self._open and not self._fits(share.peer, much):
            if not self._make_room(share.peer, much):
                self.close(share)
        if share not in self._open:
            return False
        share.held += much
        self._count(share.peer, much)
        return True

    def renew(self, share: PeerShare) -> None:
        """The share waits from now on."""
        share.since = next(self._counted)

    def close(self, share: PeerShare) -> None:
        """What the share held is free again. Twice is nothing."""
        if share in self._open:
            self._open.remove(share)
            self._count(share.peer, -share.held)

    def _count(self, peer: str, much: int) -> None:
        self._total += much
        self._of_peer[peer] = self._of_peer.get(peer, 0) + much
        if not self._of_peer[peer]:
            del self._of_peer[peer]

    def _fits(self, peer: str, much: int) -> bool:
        return self._of_peer.get(peer, 0) + much <= self._most and self._total + much <= self._size

    def _make_room(self, peer: str, much: int) -> bool:
        """Whether somebody gave way."""
        is_own = self._of_peer.get(peer, 0) + much > self._most
        holders = [share for share in self._open if share.held and (share.peer == peer or not is_own)]
        for share in sorted(holders, key=lambda each: (-self._of_peer[each.peer], each.since)):
            if share.give_way():
                self.close(share)
                return True
        return False


@dataclass(frozen=True, slots=True)
class Attempt:
    """What became of a password. ``wait`` is how many seconds it was not looked at for; 0 where it was."""

    is_right: bool
    wait: int = 0


@dataclass(slots=True)
class _WrongPasswords:
    times: int = 0
    last: float = 0.0
    until: float = 0.0


class PasswordLimiter:
    """Looks at passwords, within bounds. Safe to use by several threads; ``clock`` is in seconds.

    Nobody can lock others out. A peer waits for its own wrong passwords, and what it tries meanwhile makes the wait no
    longer. The limit on all peers together leaves out whoever was right before, and whoever is ``near``: on this
    machine and not behind a proxy.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._wrong: OrderedDict[str, _WrongPasswords] = OrderedDict()
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
        wrong = self._wrong.get(peer) or _WrongPasswords()
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
