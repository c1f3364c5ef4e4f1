"""What `bot.questions.requests.Cards` promises holds for the local cache and for the fake that other tests use."""

from __future__ import annotations

from itertools import pairwise

import pytest

from bot.domain.card import CardId, Worktree
from bot.domain.thread import Thread
from bot.local_cache.cache import LocalCache
from bot.memory.memory import Memory
from bot.questions.related import expand
from bot.questions.requests import Cards, WorkRequest
from bot.questions.what import WhatAnswer, find_what
from bot.reading.analyzer import terms
from tests.questions.shelf import NOW, Shelf

IDS: tuple[CardId, ...] = (1, 14, 17, 26, 42, 48, 49, 50, 51, 73, 999, "42")
PATHS = ("session.py", "linkbarn/store/session.py", "auth/cookie.py", "COOKIE.py", "nothing.py", "", "/")
WORDS = ("session cookie", "login loop after the upgrade", "database is locked", "zebra", "")


@pytest.fixture(scope="module")
def shelf(memory: Memory) -> Shelf:
    return Shelf.of(one for one in memory.state.every_record() if isinstance(one, Thread))


@pytest.fixture(params=["glance", "shelf"])
def cards(request: pytest.FixtureRequest) -> Cards:
    found: Cards = request.getfixturevalue(request.param)
    return found


def weights(words: str) -> dict[str, float]:
    return dict.fromkeys(terms(words), 1.0)


@pytest.mark.parametrize("words", WORDS)
def test_hits_hold_what_the_floor_asks_for_best_first_and_no_more_than_wanted(cards: Cards, words: str) -> None:
    every = cards.search(weights(words), limit=100)
    assert [one.score for one in every] == sorted((one.score for one in every), reverse=True)
    assert all(0 < one.part <= 1.0000001 and set(one.terms) <= set(weights(words)) for one in every)
    assert cards.search(weights(words), limit=3) == every[:3]
    some = cards.search(weights(words), limit=100, floor=0.5, keep=lambda card: card.state == "closed")
    assert some == [one for one in every if one.part >= 0.5 and one.card.state == "closed"]


def test_equal_scores_go_by_id(cards: Cards) -> None:
    found = cards.search(weights("tags"), limit=100)
    assert all(one.score > other.score or int(one.card.id) < int(other.card.id) for one, other in pairwise(found))


def test_links_are_each_told_once_with_both_ends(cards: Cards) -> None:
    links = cards.links([48, 50])
    assert len(set(links)) == len(links)
    assert all({link.source, link.target} & {48, 50} for link in links)
    assert cards.links([]) == []


def test_both_know_the_same(glance: LocalCache, shelf: Shelf) -> None:
    ours, theirs = glance.cards(IDS), shelf.cards(IDS)
    assert ours.keys() == theirs.keys() == set(IDS) - {999, "42"}
    for key, card in ours.items():
        assert card._replace(ending=theirs[key].ending) == theirs[key]
    for path in PATHS:
        assert {key: set(found) for key, found in glance.file_mentions(path).items()} == {
            key: set(found) for key, found in shelf.file_mentions(path).items()
        }
    assert sorted(glance.links([48, 14, 51])) == sorted(shelf.links([48, 14, 51]))
    assert [card.id for card in glance.recently_decided(10)] == [card.id for card in shelf.recently_decided(10)]
    assert glance.size == shelf.size == 73
    hops = [(hop.card.id, hop.kind, hop.hit, hop.direction) for hop in expand([48, 12], glance)]
    assert hops == [(hop.card.id, hop.kind, hop.hit, hop.direction) for hop in expand([48, 12], shelf)]


@pytest.mark.parametrize(
    "checkout",
    [
        Worktree(branch="fix/42-session-timeout", modified=("linkbarn/store/session.py",)),
        Worktree(branch="login-loop", staged=("linkbarn/auth/cookie.py",)),
        Worktree(branch="wip"),
        Worktree(),
    ],
)
def test_the_work_at_hand_is_told_alike(glance: LocalCache, shelf: Shelf, checkout: Worktree) -> None:
    def told(work: WhatAnswer) -> list[list[tuple[CardId, object]]]:
        related = sorted((one.card.id, one.why) for one in work.related)  # the shelf's scores are simpler
        decisions = [(one.card.id, one.why) for one in work.decisions]
        return [related, decisions, [(one.card.id, one.why) for one in work.recent]]

    assert told(find_what(WorkRequest(checkout, NOW), glance)) == told(find_what(WorkRequest(checkout, NOW), shelf))
