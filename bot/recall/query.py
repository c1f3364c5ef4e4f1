"""A thread, or words, as a weighted query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from bot.memory.index import ARMS, NOTES, TEXT, Blend, Query
from bot.model import Thread
from bot.ranking import Model
from bot.reading.words import body_terms, terms

TITLE_BOOST = 2.0
"""What a term of the title counts beyond its place in the whole text, so that it weighs three times a body's."""

WORD_FIELDS = {TEXT: 1.0, NOTES: 0.8}


def similar_query(thread: Thread, vectors: Mapping[str, bytes] | None = None, model: Model | None = None) -> Query:
    """What threads like this one share with it: each of its terms once, those of the title three times.

    ``vectors`` are the thread's, by arm. With a ``model`` what it knows before a text is read counts in the choice.
    """
    title = set(terms(thread.title))
    weights = dict.fromkeys(body_terms(thread.body), 1.0)
    for term in title:
        weights[term] = 1.0 + TITLE_BOOST
    return Query(weights, vectors=vectors or {}, blend=blend(model.order) if model else None)


def blend(order: Mapping[str, float]) -> Blend:
    """The part of a model's order that an index can see."""
    return Blend(
        text=order.get("text", 0.0),
        near={arm: order[arm] for arm in ARMS if arm in order},
        open=order.get("open", 0.0),
        age=order.get("age", 0.0),
        closed=order.get("closed", 0.0),
        length=order.get("length", 0.0),
        duplicates=order.get("duplicates", 0.0),
    )


def word_query(words: str) -> Query:
    """A search by words, over titles, texts and what was noted of the threads."""
    return Query({term: float(count) for term, count in Counter(terms(words)).items()}, WORD_FIELDS)
