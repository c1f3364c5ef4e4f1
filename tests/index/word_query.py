"""A search by words, as `bot.pipeline.memory_cards` asks an index."""

from collections import Counter

from bot.index.protocol import Query
from bot.pipeline.memory_cards import FIELDS
from bot.reading.analyzer import terms


def word_query(words: str) -> Query:
    return Query({term: float(count) for term, count in Counter(terms(words)).items()}, FIELDS)
