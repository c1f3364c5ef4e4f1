"""Who counts as one peer, and who gives way where something is scarce."""

from __future__ import annotations

import pytest

from bot.server.rate_limiter import PeerShare, PeerShares, is_near, peer_of


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


def test_a_connection_without_an_address_is_of_this_machine() -> None:
    assert peer_of(None) == "local"


def test_this_machine_is_known_by_its_address() -> None:
    assert all(map(is_near, ("127.0.0.1", "127.9.9.9", "::1", "local")))
    assert not any(map(is_near, ("192.0.2.7", "2001:db8::", "::")))


class Holders:
    """Shares by name, and who gave way."""

    def __init__(self, size: int, most: int) -> None:
        self.shares = PeerShares(size, most)
        self.gone: list[str] = []
        self.fixed: set[str] = set()

    def hold(self, name: str, peer: str, much: int) -> tuple[PeerShare, bool]:
        share = self.shares.open(peer, lambda: self._give_way(name))
        return share, self.shares.take(share, much)

    def _give_way(self, name: str) -> bool:
        if name in self.fixed:
            return False
        self.gone.append(name)
        return True


def test_all_of_it_is_for_whoever_comes_while_there_is_room() -> None:
    here = Holders(10, 6)
    assert [here.hold("a", "A", 6)[1], here.hold("b", "B", 4)[1]] == [True, True]
    assert here.gone == []


def test_a_peer_with_its_most_gives_way_to_itself_the_longest_first() -> None:
    here = Holders(100, 6)
    for name in "abcd":
        assert here.hold(name, "A", 2)[1]
    assert here.hold("e", "B", 2)[1]
    assert here.gone == ["a"]


def test_where_all_is_taken_the_peer_that_has_most_gives_way() -> None:
    here = Holders(10, 10)
    for name, peer in (("a", "A"), ("b", "B"), ("c", "B"), ("d", "C")):
        here.hold(name, peer, 2)
    assert here.hold("e", "D", 4)[1]
    assert here.gone == ["b"]


def test_who_has_most_and_asks_for_more_gives_way_itself() -> None:
    here = Holders(10, 10)
    first, _ = here.hold("a", "A", 6)
    here.hold("b", "B", 4)
    assert not here.shares.take(first, 1)
    assert here.gone == ["a"]
    assert here.hold("c", "C", 6)[1]


def test_what_cannot_be_ended_stays_and_whoever_comes_is_refused() -> None:
    here = Holders(4, 4)
    here.fixed = {"a", "b"}
    assert here.hold("a", "A", 2)[1]
    assert here.hold("b", "B", 2)[1]
    assert not here.hold("c", "C", 1)[1]
    assert here.gone == []


def test_what_was_renewed_waits_since_then() -> None:
    here = Holders(2, 2)
    first, _ = here.hold("a", "A", 1)
    here.hold("b", "A", 1)
    here.shares.renew(first)
    here.hold("c", "A", 1)
    assert here.gone == ["b"]


def test_room_is_free_again_after_its_end_and_once() -> None:
    here = Holders(4, 4)
    share, _ = here.hold("a", "A", 4)
    here.shares.close(share)
    here.shares.close(share)
    assert here.hold("b", "B", 4)[1]
    here.fixed = {"b"}
    assert not here.hold("c", "C", 1)[1]
