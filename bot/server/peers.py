"""Peers by their addresses, and something scarce that all of them share."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address

CUSTOMER = 64
"""Bits of an IPv6 address that are one customer's, who may use any address behind them."""

NAMELESS = "local"
"""The peer of a connection without an address, as over a socket of the machine itself."""


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
class Share:
    """What one holder has. ``give_way`` has it end and returns True, or False where it cannot be ended now."""

    peer: str
    give_way: Callable[[], bool]
    since: int
    held: int = 0


class Shares:
    """Up to ``size`` of something, of which a peer has ``most`` at once. Used by one event loop alone.

    Where there is no room, whoever has waited longest gives way: of the peer itself once it has its ``most``, else of
    the peer that has more than any other. So slow ones do not keep quick ones out, whether they come from one address,
    from hundreds, or through one proxy.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._most = most
        self._open: set[Share] = set()
        self._total = 0
        self._of_peer: dict[str, int] = {}
        self._counted = itertools.count()

    def open(self, peer: str, give_way: Callable[[], bool]) -> Share:
        """A share that holds nothing yet."""
        share = Share(peer, give_way, next(self._counted))
        self._open.add(share)
        return share

    def take(self, share: Share, much: int) -> bool:
        """Whether the share may hold so much more; what it held is free again where not."""
        while share in self._open and not self._fits(share.peer, much):
            if not self._make_room(share.peer, much):
                self.close(share)
        if share not in self._open:
            return False
        share.held += much
        self._count(share.peer, much)
        return True

    def renew(self, share: Share) -> None:
        """The share waits from now on."""
        share.since = next(self._counted)

    def close(self, share: Share) -> None:
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
