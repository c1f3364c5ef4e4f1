"""Older issues that say the same as the question: they tell how much it matters, and nothing about what answers it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import log1p

from bot.indexed import Entry, Hit
from bot.model import ThreadId
from bot.recall.features import Question, title_terms

COPY_LENGTH = 0.1
"""A copy has the question's words in its title, and a length that differs by no more than this in its logarithm."""

COPY_SCORE = 0.9
"""And at least this share of the best score of all hits."""

OUTAGE = timedelta(days=2)
OUTAGE_SCORE = 0.5
OUTAGE_WRITERS = 2
"""Reports of an outage are the issues of the last two days that are open and have half of the best score, when several
people wrote them. On 1,653 issues of the development data that changes next to nothing: outages are rare."""


def echoes(hits: Sequence[Hit], asked: Question) -> frozenset[ThreadId]:
    """The copies of the question among the hits, and what others report of an outage while it lasts."""
    best = max((hit.score for hit in hits), default=0.0)
    copies = [hit for hit in hits if hit.score >= COPY_SCORE * best and _is_copy(hit.entry, asked)]
    reports = [hit for hit in hits if hit.score >= OUTAGE_SCORE * best and _is_news(hit.entry, asked)]
    writers = {hit.entry.author for hit in reports} - {asked.author}
    found = [*copies, *reports] if len(writers) >= OUTAGE_WRITERS else copies
    return frozenset(hit.entry.id for hit in found)


def _is_copy(entry: Entry, asked: Question) -> bool:
    is_as_long = abs(log1p(entry.length) - log1p(asked.length)) <= COPY_LENGTH
    return is_as_long and title_terms(entry.title) == asked.title


def _is_news(entry: Entry, asked: Question) -> bool:
    """Whether it was opened shortly before the question, and was still open then."""
    return entry.closed_since(asked.at) is None and asked.at - entry.created_at <= OUTAGE
