"""The contract of `bot.questions.requests.Cards` holds for the local cache and for the fake of other tests."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bot.domain.card import CardId, Worktree
from bot.domain.thread import Thread
from bot.local_cache.cache import LocalCache
from bot.memory.memory import Memory
from bot.questions.related import expand
from bot.questions.requests import Cards, WorkRequest
from bot.questions.work import WorkAnswer, find_for_work
from bot.reading.analyzer import terms
from tests.questions.in_memory_cards import NOW, InMemoryCards

IDS: tuple[CardId, ...] = (1, 14, 17, 26, 42, 48, 49, 50, 51, 73, 999, "42")
PATHS = ("session.py", "linkbarn/store/session.py", "auth/cookie.py", "COOKIE.py", "nothing.py", "", "/")
WORDS = ("session cookie", "login loop after the upgrade", "database is locked", "zebra", "")


@pytest.fixture(scope="module")
def in_memory_cards(memory: Memory) -> InMemoryCards:
    return InMemoryCards.of(one for one in memory.state.every_record() if isinstance(one, Thread))


@pytest.fixture(params=["local_cache", "in_memory_cards"])
def cards(request: pytest.FixtureRequest) -> Cards:
    fixture_cards: Cards = request.getfixturevalue(request.param)
    return fixture_cards


def weights(words: str) -> dict[str, float]:
    return dict.fromkeys(terms(words), 1.0)


@pytest.mark.parametrize("words", WORDS)
def test_hits_respect_the_floor_the_filter_and_the_limit_and_come_best_first(cards: Cards, words: str) -> None:
    all_hits = cards.search(weights(words), limit=100)
    assert [hit.score for hit in all_hits] == sorted((hit.score for hit in all_hits), reverse=True)
    assert all(0 < hit.part <= 1.0000001 and set(hit.terms) <= set(weights(words)) for hit in all_hits)
    assert cards.search(weights(words), limit=3) == all_hits[:3]
    filtered_hits = cards.search(weights(words), limit=100, floor=0.5, keep=lambda card: card.state == "closed")
    assert filtered_hits == [hit for hit in all_hits if hit.part >= 0.5 and hit.card.state == "closed"]


def test_equal_scores_are_ordered_by_id(cards: Cards) -> None:
    hits = cards.search(weights("tags"), limit=100)
    assert all(
        hit.score > next_hit.score or int(hit.card.id) < int(next_hit.card.id) for hit, next_hit in pairwise(hits)
    )


def test_each_link_of_either_end_is_listed_once(cards: Cards) -> None:
    links = cards.links([48, 50])
    assert len(set(links)) == len(links)
    assert all({link.source, link.target} & {48, 50} for link in links)
    assert cards.links([]) == []


def test_the_cache_and_the_fake_give_the_same_answers(local_cache: LocalCache, in_memory_cards: InMemoryCards) -> None:
    cached, expected = local_cache.cards(IDS), in_memory_cards.cards(IDS)
    assert cached.keys() == expected.keys() == set(IDS) - {999, "42"}
    for key, card in cached.items():
        assert card._replace(ending=expected[key].ending) == expected[key]
    for path in PATHS:
        assert {key: set(terms_found) for key, terms_found in local_cache.file_mentions(path).items()} == {
            key: set(terms_found) for key, terms_found in in_memory_cards.file_mentions(path).items()
        }
    assert sorted(local_cache.files(), key=str) == sorted(in_memory_cards.files(), key=str)
    assert sorted(local_cache.links([48, 14, 51])) == sorted(in_memory_cards.links([48, 14, 51]))
    assert [card.id for card in local_cache.recently_decided(10)] == [
        card.id for card in in_memory_cards.recently_decided(10)
    ]
    assert local_cache.size == in_memory_cards.size == 73
    neighbours = [
        (neighbour.card.id, neighbour.kind, neighbour.hit, neighbour.direction)
        for neighbour in expand([48, 12], local_cache)
    ]
    assert neighbours == [
        (neighbour.card.id, neighbour.kind, neighbour.hit, neighbour.direction)
        for neighbour in expand([48, 12], in_memory_cards)
    ]


@pytest.mark.parametrize(
    "checkout",
    [
        Worktree(branch="fix/42-session-timeout", modified=("linkbarn/store/session.py",)),
        Worktree(branch="login-loop", staged=("linkbarn/auth/cookie.py",)),
        Worktree(branch="wip"),
        Worktree(),
    ],
)
def test_the_cache_and_the_fake_find_the_same_for_the_current_work(
    local_cache: LocalCache, in_memory_cards: InMemoryCards, checkout: Worktree
) -> None:
    def reasons(work: WorkAnswer) -> list[list[tuple[CardId, object]]]:
        related = sorted((item.card.id, item.why) for item in work.threads)  # the scores in memory are simpler
        decisions = [(item.card.id, item.why) for item in work.decisions]
        return [related, decisions, [(item.card.id, item.why) for item in work.recent]]

    assert reasons(find_for_work(WorkRequest(checkout, NOW), local_cache)) == reasons(
        find_for_work(WorkRequest(checkout, NOW), in_memory_cards)
    )
