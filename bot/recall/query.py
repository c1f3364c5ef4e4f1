"""A thread, or words, as a weighted query."""

from __future__ import annotations

from collections import Counter

from bot.memory.index import NOTES, TEXT, Query
from bot.model import Thread
from bot.reading.words import body_terms, terms

TITLE_BOOST = 2.0
"""What a term of the title counts beyond its place in the whole text, so that it weighs three times a body's."""

WORD_FIELDS = {TEXT: 1.0, NOTES: 0.8}


def similar_query(thread: Thread) -> Query:
    """What threads like this one share with it: each of its terms once, those of the title three times."""
    title = set(terms(thread.title))
    weights = dict.fromkeys(body_terms(thread.body), 1.0)
    for term in title:
        weights[term] = 1.0 + TITLE_BOOST
    return Query(weights)


def word_query(words: str) -> Query:
    """A search by words, over titles, texts and what was noted of the threads."""
    return Query({term: float(count) for term, count in Counter(terms(words)).items()}, WORD_FIELDS)
