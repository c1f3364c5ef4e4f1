"""Who is at the other end of a request, and how much of the server each of these peers may hold."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

IPV6_HOST_BITS = 64
"""Last bits of an IPv6 address, which one customer chooses freely: a customer has a /64 network."""

LOCAL_PEER = "local"
"""The peer of a connection without an address, such as a Unix socket."""

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
