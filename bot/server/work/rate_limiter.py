"""Limits the pushes to a repository per minute, and the connections, memory and wrong passwords of each peer."""

from __future__ import annotations

import itertools
import math
import re
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from threading import Lock

from bot.errors import StoreError
from bot.memory.store import Edits, Snapshot, Store
from bot.server.model import MINUTE, Instant, ServerStopping
from bot.server.organisation.changed_threads import changed_threads

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
"""Most peers remembered for wrong passwords."""

Network = IPv4Network | IPv6Network


def client_of(peer: tuple[str, int] | None, forwarded: str, proxies: Sequence[Network]) -> tuple[str, int] | None:
    """Return who sent a request: the other end of its connection, or the last address in ``forwarded``
    (``X-Forwarded-For``) that is not one of the ``proxies``, if the other end is one of them.

    Anybody may have written what stands before that address. A proxy that names no address counts as the client.
    """
    for text in reversed(forwarded.split(",")):
        address = _address(peer[0]) if peer else None
        named = _address(re.sub(r"^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$", r"\1\2", text.strip()))
        if address is None or named is None or not any(address in network for network in proxies):
            break
        peer = str(named), 0
    return peer


def peer_of(client: tuple[str, int] | None) -> str:
    """Return the peer that a client counts as: an IPv4 address, or the first 64 bits of an IPv6 one."""
    address = _address(client[0]) if client else None
    if isinstance(address, IPv6Address) and not address.is_loopback:
        address = IPv6Address(int(address) >> IPV6_HOST_BITS << IPV6_HOST_BITS)
    return str(address) if address else LOCAL_PEER


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


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

    def move(self, share: PeerShare, peer: str) -> bool:
        """Give a share to another peer. Returns False, and closes the share, if there is no room."""
        if share.peer == peer:
            return True
        held, is_open = share.held, share in self._open
        if is_open:
            self._count(share.peer, -held)
            share.peer, share.held = peer, 0
        return is_open and self.take(share, held)

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


@dataclass(slots=True)
class _WrongPasswords:
    times: int = 0
    last: float = 0.0
    until: float = 0.0


class PasswordLimiter:
    """Says how long whoever gave a wrong password has to wait. Safe for several threads; ``clock`` is in seconds.

    A right password is never refused, or a stranger could lock out everybody who has the same address, as all have
    behind a proxy. So no wait keeps a guess from being right. That is up to the password,
    which has at least `options.MIN_PASSWORD_BITS`. A wait costs a guesser a connection for each further guess, and
    keeps them out of the log.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = Lock()
        self._wrong: OrderedDict[str, _WrongPasswords] = OrderedDict()
        self._allowance = float(SHARED_TRIES)
        self._refilled_at = clock()

    def note_wrong(self, peer: str) -> int:
        """Note a wrong password; returns the seconds that the peer still has to wait, or 0. One during a wait does not
        prolong it."""
        with self._lock:
            now = self._clock()
            self._refill(now)
            wait = math.ceil(self._remaining_wait(peer, now))
            if not wait:
                self._count(peer, now)
            return wait

    def note_right(self, peer: str) -> None:
        """Note a right password: the next wrong one of this peer is its first."""
        with self._lock:
            self._wrong.pop(peer, None)

    def _refill(self, now: float) -> None:
        self._allowance = min(SHARED_TRIES, self._allowance + max(0.0, now - self._refilled_at) / REFILL_SECONDS)
        self._refilled_at = now
        while self._wrong and now - next(iter(self._wrong.values())).last > FORGET_AFTER:
            self._wrong.popitem(last=False)

    def _remaining_wait(self, peer: str, now: float) -> float:
        own_wait = self._wrong[peer].until - now if peer in self._wrong else 0.0
        return max(0.0, own_wait, (1 - self._allowance) * REFILL_SECONDS)

    def _count(self, peer: str, now: float) -> None:
        self._allowance = max(0.0, self._allowance - 1)
        attempts = self._wrong.setdefault(peer, _WrongPasswords())
        attempts.times, attempts.last = attempts.times + 1, now
        if attempts.times >= FREE_TRIES:
            attempts.until = now + min(MAX_WAIT, 2.0 ** min(attempts.times - FREE_TRIES, 20))
        self._wrong.move_to_end(peer)
        if len(self._wrong) > MAX_PEERS:
            self._wrong.popitem(last=False)
