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
from bot.server.model import MINUTE, Instant, ServerStopping

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
        ordered = sorted(pushes)
        recent = ordered[-self.per_minute + 1 :] if self.per_minute > 1 else ordered[-1:]
        start = max(
            ordered[-1] + MINUTE // self.per_minute, recent[0] + MINUTE if len(recent) == self.per_minute - 1 else 0
        )
        return start if start - self.clock() <= MINUTE else 0  # a push in the future: the clock was set back

    def wait_for_room(self, pushes: Sequence[Instant], stop: threading.Event) -> None:
        """Wait until one more push is allowed. Raises ServerStopping."""
        recent = sorted(pushes)[-self.per_minute :]
        if len(recent) == self.per_minute and not self._wait_until(recent[0] + MINUTE, stop):
            raise ServerStopping("the server stopped: the next one continues")

    def _wait_until(self, moment: Instant, stop: threading.Event) -> bool:
        left = min(moment - self.clock(), MINUTE)  # a push in the future: the clock was set back
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
        """See `Store.write`. Waits for the limit first. Raises ServerStopping."""
        self._pace.wait_for_room((*self._earlier, *self.pushes), self._stop)
        try:
            written = self._store.write(base, edits, message, squash=squash)
        except StoreError:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)  # it may have arrived, with only its answer lost
            raise
        if written is not base:
            self.pushes.append(self._pace.clock())
            self.changed |= changed_threads(base, edits)
        return written

    def close(self) -> None:
        self._store.close()


IPV6_HOST_BITS = 64
"""Last bits of an IPv6 address, which one customer chooses freely: a customer has a /64 network."""

LOCAL_PEER = "local"
"""The peer of a connection without an address, such as a Unix socket."""

FREE_TRIES = 5
"""Wrong passwords in a row without a wait."""

MAX_WAIT = 300.0
"""Longest wait in seconds; the first is one second, and each further one doubles."""

FORGET_AFTER = 3_600.0
"""Seconds after its last wrong password until a peer is forgotten."""

SHARED_TRIES, REFILL_SECONDS = 50, 10.0
"""Wrong passwords allowed to all peers together, and the seconds until one more is."""

MAX_PEERS = 1_000
"""Most peers remembered for wrong passwords, and as many for right ones."""

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
        address = address.ipv4_mapped or IPv6Address(int(address) >> IPV6_HOST_BITS << IPV6_HOST_BITS)
    return str(address) if address else LOCAL_PEER


def is_near(peer: str) -> bool:
    """Whether the peer is this machine."""
    return peer == LOCAL_PEER or ip_address(peer).is_loopback


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
        self._held_by_peer: dict[str, int] = {}
        self._order = itertools.count()

    def open(self, peer: str, give_way: Callable[[], bool]) -> PeerShare:
        """Return an empty share."""
        share = PeerShare(peer, give_way, next(self._order))
        self._open.add(share)
        return share

    def take(self, share: PeerShare, amount: int) -> bool:
        """Add to a share. Returns False, and closes the share, if there is no room."""
        while share in self._open and not self._fits(share.peer, amount):
            if not self._make_room(share.peer, amount):
                self.close(share)
        if share not in self._open:
            return False
        share.held += amount
        self._count(share.peer, amount)
        return True

    def renew(self, share: PeerShare) -> None:
        """Restart the waiting time of a share."""
        share.since = next(self._order)

    def close(self, share: PeerShare) -> None:
        """Free a share. May be repeated."""
        if share in self._open:
            self._open.remove(share)
            self._count(share.peer, -share.held)

    def _count(self, peer: str, amount: int) -> None:
        self._total += amount
        self._held_by_peer[peer] = self._held_by_peer.get(peer, 0) + amount
        if not self._held_by_peer[peer]:
            del self._held_by_peer[peer]

    def _fits(self, peer: str, amount: int) -> bool:
        return self._held_by_peer.get(peer, 0) + amount <= self._most and self._total + amount <= self._size

    def _make_room(self, peer: str, amount: int) -> bool:
        is_own = self._held_by_peer.get(peer, 0) + amount > self._most
        holders = [share for share in self._open if share.held and (share.peer == peer or not is_own)]
        for share in sorted(holders, key=lambda each: (-self._held_by_peer[each.peer], each.since)):
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
        self._allowance = float(SHARED_TRIES)
        self._refilled_at = clock()

    def try_password(self, peer: str, is_correct: Callable[[], bool], *, near: bool = False) -> Attempt:
        """Check a password with ``knows``, which is called only if this peer may try now."""
        with self._lock:
            now = self._clock()
            self._refill(now)
            if wait := self._remaining_wait(peer, now, near=near):
                return Attempt(is_right=False, wait=math.ceil(wait))
            if not is_correct():
                self._count(peer, now)
                return Attempt(is_right=False)
            self._wrong.pop(peer, None)
            _remember(self._right, peer, None)
            return Attempt(is_right=True)

    def _refill(self, now: float) -> None:
        self._allowance = min(SHARED_TRIES, self._allowance + max(0.0, now - self._refilled_at) / REFILL_SECONDS)
        self._refilled_at = now
        while self._wrong and now - next(iter(self._wrong.values())).last > FORGET_AFTER:
            self._wrong.popitem(last=False)

    def _remaining_wait(self, peer: str, now: float, *, near: bool) -> float:
        own_wait = self._wrong[peer].until - now if peer in self._wrong else 0.0
        is_exempt = near or peer in self._right
        return max(0.0, own_wait, 0.0 if is_exempt or self._allowance >= 1 else (1 - self._allowance) * REFILL_SECONDS)

    def _count(self, peer: str, now: float) -> None:
        self._allowance = max(0.0, self._allowance - 1)
        attempts = self._wrong.get(peer) or _WrongPasswords()
        attempts.times, attempts.last = attempts.times + 1, now
        if attempts.times >= FREE_TRIES:
            attempts.until = now + min(MAX_WAIT, 2.0 ** min(attempts.times - FREE_TRIES, 20))
        _remember(self._wrong, peer, attempts)


def _remember(peers: OrderedDict[str, _T], peer: str, value: _T) -> None:
    """Keep the newest last, and at most `MAX_PEERS`."""
    peers[peer] = value
    peers.move_to_end(peer)
    if len(peers) > MAX_PEERS:
        peers.popitem(last=False)
