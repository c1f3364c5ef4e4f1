"""Neighbours one link from the hits."""

from datetime import timedelta

from bot.domain.card import CardId, Ending
from bot.questions.related import MAX_NEIGHBOURS, MAX_PER_HIT, expand
from tests.questions.in_memory_cards import NOW, InMemoryCards, card


def test_expansion_follows_links_both_ways_and_names_their_kind() -> None:
    cards = InMemoryCards(
        [
            card(1, "Hit", references=(2,), duplicate_of=3, ending=Ending("fixed", fix="#4")),
            *(card(key) for key in (2, 3, 4)),
            card(5, "Its duplicate", duplicate_of=1),
            card(6, "Names it", references=(1,)),
            card(7, "Fixed by it", ending=Ending("fixed", fix="#1")),
            card(8, "Far", references=(2,)),
        ]
    )
    neighbours = {
        (neighbour.card.id, neighbour.kind, neighbour.hit, neighbour.direction) for neighbour in expand([1], cards)
    }
    expected = {(4, "fix", 1, "to"), (3, "duplicate", 1, "to"), (7, "fix", 1, "from"), (5, "duplicate", 1, "from")}
    assert len(neighbours) == MAX_PER_HIT
    assert expected < neighbours


def test_strong_links_come_first_and_among_equal_links_the_newest_thread() -> None:
    old, new = (card(key, references=(1,), updated_at=NOW - timedelta(days=age)) for key, age in ((5, 9), (6, 1)))
    cards = InMemoryCards([card(1, duplicate_of=3, ending=Ending("fixed", fix="#4")), card(3), card(4), old, new])
    assert [neighbour.card.id for neighbour in expand([1], cards)] == [4, 3, 6, 5]


def test_hits_are_not_neighbours_and_each_neighbour_is_listed_once() -> None:
    cards = InMemoryCards([card(1, references=(2, 3)), card(2, references=(1, 3)), card(3)])
    assert [(neighbour.card.id, neighbour.hit) for neighbour in expand([1, 2, 1], cards)] == [(3, 1)]


def test_unknown_threads_are_left_out() -> None:
    assert expand([1, 99], InMemoryCards([card(1, references=(77,))])) == ()


def test_a_hit_has_at_most_five_neighbours_and_all_hits_together_twenty() -> None:
    many = [card(key, references=(key % 6 + 1,)) for key in range(100, 200)]
    hits: list[CardId] = [1, 2, 3, 4, 5, 6]
    neighbours = expand(hits, InMemoryCards([*(card(key) for key in hits), *many]))
    assert len(neighbours) == MAX_NEIGHBOURS
    assert all(sum(neighbour.hit == hit for neighbour in neighbours) <= MAX_PER_HIT for hit in hits)
