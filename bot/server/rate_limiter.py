"""Limits the pushes to a repository per minute, and the connections, memory and wrong passwords of each peer."""

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

from bot.errors import StoreError
from bot.memory.store import Edits, Snapshot, Store
from bot.server.changed_threads import changed_threads
from bot.server.model import MINUTE, Instant, Stopping

Wait = Callable[[threading.Event, float], bool]


class RateLimiter:
    """Allows ``per_minute`` pushes within any minute. ``wait`` waits some seconds for an event to be set."""

    def __init__(self, per_minute: int, clock: Callable[[], Instant], wait: Wait = threading.Event.wait) -> None:
        self.per_minute = per_minute
        self.clock = clock
        self.wait = wait

    def earliest(self, pushes: Sequence[Instant]) -> Instant:
        """When the next run of a repository may begin, so that its two pushes need not wait; 0 for at once."""
        if not pushes:
            return 0
        last = sorted(pushes)
        full = last[-self.per_minute + 1 :] if self.per_minute > 1 else last[-1:]
        then = max(last[-1] + MINUTE // self.per_minute, full[0] + MINUTE if len(full) == self.per_minute - 1 else 0)
        return then if then - self.clock() <= MINUTE else 0  # a push in the future: the clock was set back

    def room(self, pushes: Sequence[Instant], stop: threading.Event) -> None:
        """Wait until one more push is allowed. Raises Stopping."""
        full = sorted(pushes)[-self.per_minute :]
        if len(full) == self.per_minute and not self._until(full[0] + MINUTE, stop):
            raise Stopping("the server stopped: the next one goes on")

    def _until(self, then: Instant, stop: threading.Event) -> bool:
        left = min(then - self.clock(), MINUTE)  # a push in the future: the clock was set back
        return left <= 0 or not self.wait(stop, left / 1000)


class PacedStore:
    """A store whose writes wait for the limit; there were ``earlier`` pushes to its branch.

    ``pushes`` are the times of its own, ``changed`` the threads in them.
    """

    def __init__(self, store: Store, pace: RateLimiter, earlier: Iterable[Instant], stop: threading.Event) -> None:
        self.pushes: list[Instant] = []
        self.changed: set[int] = set()
        self._store, self._pace, self._stop = store, pace, stop
        self._earlier = tuple(earlier)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """See `Store.write`. Waits for the limit first. Raises Stopping."""
        self._pace.room((*self._earlier, *self.pushes), self._stop)
        try:
            written = self._store.write(base, edits, message, squash=squash)
        except StoreError:
            self.changed |= changed_threads(base, edits)  # it may have arrived, and its answer been lost
            raise
        if written is not base:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)
        return written

    def close(self) -> None:
        self._store.close()


CUSTOMER = 64
"""Prefix length of one customer's IPv6 network."""

NAMELESS = "local"
"""The peer of a connection without an address, such as a Unix socket."""

FREE = 5
"""Wrong passwords in a row without a wait."""

LONGEST = 300.0
"""Longest wait in seconds; the first is one second, and each further one doubles."""

FORGIVEN = 3_600.0
"""Seconds after its last wrong password until a peer is forgotten."""

TOGETHER, AGAIN = 50, 10.0
"""Wrong passwords allowed to all peers together, and the seconds until one more is."""

MOST = 1_000
"""Peers that are remembered, with wrong and with right passwords each."""

_T = TypeVar("_T")


def peer_of(client: tuple[str, int] | None) -> str:
    """Return the other end of a connection: an IPv4 address, or the first 64 bits of an IPv6 one.

    Behind a proxy it is the proxy for everybody: headers about the origin are not trusted.
    """
    try:
        address = ip_address(client[0].partition("%")[0]) if client else None
    except ValueError:
        address = None
    if isinstance(address, IPv6Address) and not address.is_loopback:
        address = address.ipv4_mapped or IPv6Address(int(address) >> CUSTOMER << CUSTOMER)
    return str(address) if address else NAMELESS


def is_near(peer: str) -> bool:
    """Whether the peer is this machine."""
    return peer == NAMELESS or ip_address(peer).is_loopback


@dataclass(slots=True, eq=False)
class PeerShare:
    """The share of one holder. ``give_way`` ends the holder and returns True, or False if that is impossible now."""

    peer: str
    give_way: Callable[[], bool]
    since: int
    held: int = 0


class PeerShares:
    """Divides ``size`` units among peers, of which each may have ``most``. For one event loop.

    Without room, the holder that has waited longest gives way: one of the same peer if that has its ``most``, else one
    of the peer with the largest share. So slow senders do not keep quick ones out, whether they come from one address,
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
        """Return an empty share."""
        share = PeerShare(peer, give_way, next(self._counted))
        self._open.add(share)
        return share

    def take(self, share: PeerShare, much: int) -> bool:
        """Add to a share. Returns False, and closes the share, if there is no room."""
        while share in self._open and not self._fits(share.peer, much):
            if not self._make_room(share.peer, much):
                self.close(share)
        if share not in self._open:
            return False
        share.held += much
        self._count(share.peer, much)
        return True

    def renew(self, share: PeerShare) -> None:
        """Restart the waiting time of a share."""
        share.since = next(self._counted)

    def close(self, share: PeerShare) -> None:
        """Free a share. May be repeated."""
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
        is_own = self._of_peer.get(peer, 0) + much > self._most
        holders = [share for share in self._open if share.held and (share.peer == peer or not is_own)]
        for share in sorted(holders, key=lambda each: (-self._of_peer[each.peer], each.since)):
            if share.give_way():
                self.close(share)
                return True
        return False


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result for a password. ``wait`` is the remaining wait in seconds if it was not checked, else 0."""

    is_right: bool
    wait: int = 0


@dataclass(slots=True)
class _WrongPasswords:
    times: int = 0
    last: float = 0.0
    until: float = 0.0


class PasswordLimiter:
    """Checks passwords at a limited rate. Safe for several threads; ``clock`` is in seconds.

    Nobody can lock others out. A peer waits after its own wrong passwords, and attempts meanwhile do not prolong the
    wait. The limit on all peers together does not apply to peers that were right before, or are ``near``: on this
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
        """Check a password with ``knows``, which is called only if this peer may try now."""
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
    """Keep the newest last, and at most `MOST`."""
    known[peer] = what
    known.move_to_end(peer)
    if len(known) > MOST:
        known.popitem(last=False)
