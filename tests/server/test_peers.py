"""Who a peer is, and what one peer may have."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from bot.server.receive.connections import PeerShare, PeerShares, client_of, peer_of


@pytest.mark.parametrize(
    ("address", "peer"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("2001:db8:1:2:ffff::1", "2001:db8:1:2::"),
        ("fe80::1%eth0", "fe80::"),
        ("::1", "::1"),
        ("", "local"),
        ("/run/socket", "local"),
    ],
)
def test_a_peer_is_an_address_or_the_network_of_one_customer(address: str, peer: str) -> None:
    assert peer_of((address, 443)) == peer
    assert peer_of(None) == "local", "a connection without an address"


TRUSTED = [ip_network(text) for text in ("10.0.0.0/8", "192.0.2.1", "2001:db8:5::/48")]


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("203.0.113.9", "198.51.100.7", "203.0.113.9"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("::ffff:10.0.0.1", "198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "8.8.8.8, 198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "8.8.8.8,198.51.100.7 , 192.0.2.1,10.9.9.9", "198.51.100.7"),
        ("10.0.0.1", "10.0.0.7, 10.0.0.8", "10.0.0.7"),
        ("10.0.0.1", "198.51.100.7:5678", "198.51.100.7"),
        ("10.0.0.1", "[2001:db8:7::1]:5678", "2001:db8:7::1"),
        ("2001:db8:5::2", "2001:db8:7::1", "2001:db8:7::1"),
        ("10.0.0.1", "::ffff:198.51.100.7", "198.51.100.7"),
        ("10.0.0.1", "8.8.8.8, unknown", "10.0.0.1"),
        ("10.0.0.1", "8.8.8.8, unknown, 192.0.2.1", "192.0.2.1"),
        ("10.0.0.1", "8.8.8.8, ", "10.0.0.1"),
        ("10.0.0.1", "127.0.0.1\x00", "10.0.0.1"),
        ("/run/socket", "198.51.100.7", "/run/socket"),
    ],
)
def test_only_a_trusted_proxy_names_the_client(peer: str, forwarded: str, client: str) -> None:
    named = client_of((peer, 443), forwarded, TRUSTED)
    assert named is not None
    assert named[0] == client
    assert client_of((peer, 443), forwarded, ()) == (peer, 443)
    assert client_of(None, forwarded, TRUSTED) is None


class Holders:
    """Shares by name, and the names of those that were ended."""

    def __init__(self, size: int, most: int) -> None:
        self.shares = PeerShares(size, most)
        self.ended: list[str] = []
        self.permanent: set[str] = set()

    def hold(self, name: str, peer: str, amount: int) -> tuple[PeerShare, bool]:
        share = self.shares.open(peer, lambda: self._end(name))
        return share, self.shares.take(share, amount)

    def _end(self, name: str) -> bool:
        if name in self.permanent:
            return False
        self.ended.append(name)
        return True


def test_anybody_gets_a_share_while_there_is_room() -> None:
    holders = Holders(10, 6)
    assert [holders.hold("a", "A", 6)[1], holders.hold("b", "B", 4)[1]] == [True, True]
    assert holders.ended == []


def test_a_peer_at_its_limit_loses_its_oldest_share() -> None:
    holders = Holders(100, 6)
    for name in "abcd":
        assert holders.hold(name, "A", 2)[1]
    assert holders.hold("e", "B", 2)[1]
    assert holders.ended == ["a"]


def test_when_all_is_taken_the_peer_with_the_most_loses_a_share() -> None:
    holders = Holders(10, 10)
    for name, peer in (("a", "A"), ("b", "B"), ("c", "B"), ("d", "C")):
        holders.hold(name, peer, 2)
    assert holders.hold("e", "D", 4)[1]
    assert holders.ended == ["b"]


def test_the_peer_with_the_most_loses_its_own_share_when_it_asks_for_more() -> None:
    holders = Holders(10, 10)
    first, _ = holders.hold("a", "A", 6)
    holders.hold("b", "B", 4)
    assert not holders.shares.take(first, 1)
    assert holders.ended == ["a"]
    assert holders.hold("c", "C", 6)[1]


def test_shares_that_cannot_be_ended_stay_and_newcomers_are_refused() -> None:
    holders = Holders(4, 4)
    holders.permanent = {"a", "b"}
    assert holders.hold("a", "A", 2)[1]
    assert holders.hold("b", "B", 2)[1]
    assert not holders.hold("c", "C", 1)[1]
    assert holders.ended == []


def test_a_renewed_share_counts_as_new() -> None:
    holders = Holders(2, 2)
    first, _ = holders.hold("a", "A", 1)
    holders.hold("b", "A", 1)
    holders.shares.renew(first)
    holders.hold("c", "A", 1)
    assert holders.ended == ["b"]


def test_a_closed_share_frees_its_room_once() -> None:
    holders = Holders(4, 4)
    share, _ = holders.hold("a", "A", 4)
    holders.shares.close(share)
    holders.shares.close(share)
    assert holders.hold("b", "B", 4)[1]
    holders.permanent = {"b"}
    assert not holders.hold("c", "C", 1)[1]
