"""Ranks threads by two kinds of evidence: what they are about, and what was said in them.

The title, opening text and digest of a thread are scored together; each of its messages is scored by itself. Both
scores are in BM25F units, and each is multiplied by the square of the part of the query that it holds:

    score = thread × part² + 1.5 × best message × part²

So a thread with all words in one message comes before threads with most of them scattered, and a thread with a matching
title also gains from its opening text. Chosen on the development archives (docs/evaluation.md): weights from 1
to 3 and powers from 2 to 3 find as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bot.domain.card import CardId, MessageHit, id_order
from bot.index.scoring import rank_key

MESSAGE_WEIGHT = 1.5
"""Weight of the best message next to its thread."""


class ThreadEvidence(NamedTuple):
    """How well a thread, or its best ``message``, fits a search; ``score`` and ``part`` are as in `CardHit`."""

    score: float
    part: float
    terms: tuple[str, ...]
    message: MessageHit | None = None


def rank_by_evidence(
    about: Mapping[CardId, ThreadEvidence], messages: Iterable[MessageHit]
) -> list[tuple[CardId, ThreadEvidence]]:
    """The threads with either kind of evidence, best first; ties by id, numbers before texts.

    ``about`` holds the score of each thread by its title, opening text and digest.
    """
    best: dict[CardId, MessageHit] = {}
    for hit in messages:
        current = best.get(hit.thread)
        if current is None or _contribution(hit.score, hit.part) > _contribution(current.score, current.part):
            best[hit.thread] = hit
    evidence = {key: _combine(about.get(key), best.get(key)) for key in dict.fromkeys((*about, *best))}
    return sorted(evidence.items(), key=lambda pair: (rank_key(pair[1].score), *id_order(pair[0])))


def _combine(thread: ThreadEvidence | None, message: MessageHit | None) -> ThreadEvidence:
    score = _contribution(thread.score, thread.part) if thread else 0.0
    part, matched_terms = (thread.part, thread.terms) if thread else (0.0, ())
    if message is None:
        return ThreadEvidence(score, part, matched_terms)
    matched_terms = tuple(
        dict.fromkeys((*matched_terms, *message.terms) if part >= message.part else (*message.terms, *matched_terms))
    )
    return ThreadEvidence(
        score + MESSAGE_WEIGHT * _contribution(message.score, message.part),
        max(part, message.part),
        matched_terms,
        message,
    )


def _contribution(score: float, part: float) -> float:
    return score * part * part
