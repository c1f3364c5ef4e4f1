"""A search gives the same threads, in the same order and with the same shares, on a developer's machine and in the
bot's replies: one reads copies of posting lists in plain Python, the other the index itself with NumPy."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.card import Card, CardHit
from bot.domain.thread import Thread
from bot.local_cache.cache import LocalCache
from bot.memory.memory import Memory
from bot.pipeline.memory_cards import MemoryCards
from bot.questions.requests import CardSearch
from bot.questions.thread_search import find_threads
from bot.reading.analyzer import tokens
from bot.reading.search_query import search_query
from tests.examples import examples

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
QUALIFIERS = (
    "author:octocat",
    "author:hubot",
    "role:maintainer",
    "is:open",
    "is:issue",
    "label:bug",
    "before:2026-05-01",
)
FORMS = ("{}", "what did we decide about {}?", "{} decision", "why did we drop {}?", "have we seen {} before?", '"{}"')


@pytest.fixture(scope="module")
def memory_cards(memory: Memory) -> MemoryCards:
    return MemoryCards(memory, lambda _: True)


@pytest.fixture(scope="module")
def words(memory: Memory) -> list[str]:
    """All words of the sample, and some of none."""
    threads = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    texts = [text for thread in threads for text in (thread.title, thread.body, *(c.text for c in thread.comments))]
    return sorted({token for text in texts for token in tokens(text)} | {"zebra", "quantum", "C++", "R"})


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_a_search_gives_the_same_threads_in_the_same_order_with_the_same_shares(
    memory_cards: MemoryCards, local_cache: LocalCache, words: list[str], data: st.DataObject
) -> None:
    typed = " ".join(data.draw(st.lists(st.sampled_from(words), max_size=32)))
    filters = data.draw(st.lists(st.sampled_from(QUALIFIERS), max_size=2))
    query = search_query(" ".join([data.draw(st.sampled_from(FORMS)).format(typed), *filters]), NOW, strict=False)
    limit = data.draw(st.sampled_from((1, 5, 10, 60)))

    def found(cards: CardSearch) -> list[CardHit]:
        return find_threads(query, cards, memory_cards.read, limit=limit, keep=None)

    here, there = found(local_cache), found(memory_cards)
    assert [hit.card.id for hit in here] == [hit.card.id for hit in there]
    assert [(hit.decides, set(hit.terms)) for hit in here] == [(hit.decides, set(hit.terms)) for hit in there]
    assert [hit.part for hit in here] == pytest.approx([hit.part for hit in there], abs=1e-9)
    assert [hit.score for hit in here] == pytest.approx([hit.score for hit in there])
    assert [_place(hit) for hit in here] == [_place(hit) for hit in there]


def _place(hit: CardHit) -> tuple[object, ...] | None:
    return hit.message and (hit.message.thread, hit.message.position, hit.message.author, hit.message.role)


def test_both_list_the_same_threads_without_words(memory_cards: MemoryCards, local_cache: LocalCache) -> None:
    def everything(cards: CardSearch) -> list[Card]:
        return cards.newest(100, lambda _: True)

    assert [card.id for card in everything(memory_cards)] == [card.id for card in everything(local_cache)]
    assert memory_cards.threads_with(lambda hit: hit.author == "hubot") == local_cache.threads_with(
        lambda hit: hit.author == "hubot"
    )
    assert (memory_cards.size, memory_cards.messages) == (local_cache.size, local_cache.messages)
