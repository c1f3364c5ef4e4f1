"""One order of threads from two kinds of evidence: what they are about, and what was said in them.

The title, opening text and digest of a thread are scored together; each of its messages is scored by itself. Both
scores are in BM25F units, and each counts by the square of the part of the query that is held:

    score = thread × part² + 1.5 × best message × part²

So a thread that holds all words in one message stands before those that hold most of them scattered, and one whose
title says it gains from its opening text too. Chosen on the development archives (docs/evaluation.md): weights from 1
to 3 and powers from 2 to 3 find as many.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from bot.domain.card import CardId, MessageHit

SAID = 1.5
"""Weight of the best message next to its thread."""


class ThreadEvidence(NamedTuple):
    """How well a thread, or its best ``message``, fits a search; ``score`` and ``part`` are as in `CardHit`."""

    score: float
    part: float
    terms: tuple[str, ...]
    message: MessageHit | None = None


def merged(
    about: Mapping[CardId, ThreadEvidence], messages: Iterable[MessageHit]
) -> list[tuple[CardId, ThreadEvidence]]:
    """The threads with either kind of evidence, best first; equal ones by id, numbers before texts.

    ``about`` holds the score of each thread by its title, opening text and digest.
    """
    best: dict[CardId, MessageHit] = {}
    for hit in messages:
        known = best.get(hit.thread)
        if known is None or _gain(hit.score, hit.part) > _gain(known.score, known.part):
            best[hit.thread] = hit
    found = {key: _joined(about.get(key), best.get(key)) for key in dict.fromkeys((*about, *best))}
    return sorted(found.items(), key=lambda pair: (-pair[1].score, isinstance(pair[0], str), pair[0]))


def _joined(about: ThreadEvidence | None, message: MessageHit | None) -> ThreadEvidence:
    score = _gain(about.score, about.part) if about else 0.0
    part, held = (about.part, about.terms) if about else (0.0, ())
    if message is None:
        return ThreadEvidence(score, part, held)
    held = tuple(dict.fromkeys((*held, *message.terms) if part >= message.part else (*message.terms, *held)))
    return ThreadEvidence(score + SAID * _gain(message.score, message.part), max(part, message.part), held, message)


def _gain(score: float, part: float) -> float:
    return score * part * part
