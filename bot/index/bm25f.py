"""BM25F: the weight of a term in a document, in a form that is small enough to store with every posting.

S. Robertson, H. Zaragoza and M. Taylor, "Simple BM25 extension to multiple weighted fields", CIKM 2004: the
frequencies of the fields are normalised and added *before* they are saturated,

    f(t, d) = Σ_s  weight_s · tf_s / (1 - b_s + b_s · length_s / average_s)
    score(q, d) = Σ_t  q_t · idf(t) · f · (k1 + 1) / (k1 + f)

The averages are constants, so a document's part of the score, f/(k1 + f), never changes: it is computed once, stored as
one of 31 levels, and does not depend on later documents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from bot.index.protocol import IndexDocument
from bot.index.scoring import K1, level_of


class WeightedField(NamedTuple):
    """A part of a document: its weight, the influence of its length (b), and its usual length in terms."""

    weight: float
    b: float
    average: float


TITLE = WeightedField(8.0, 0.5, 6.0)
BODY = WeightedField(1.0, 0.9, 100.0)
NOTES = {
    "decisions": WeightedField(4.0, 0.5, 20.0),
    "keywords": WeightedField(3.0, 0.5, 20.0),
    "files": WeightedField(3.0, 0.5, 10.0),
    "summary": WeightedField(2.0, 0.5, 40.0),
}
OTHER_NOTES = WeightedField(1.0, 0.5, 40.0)

MAX_BODY_TERMS = 400
"""Most distinct terms of a body that are indexed, most frequent first; longer bodies are logs."""
MAX_NOTE_TERMS = 200
"""Most distinct terms of all notes that are indexed, in descending order of level."""


def text_impacts(document: IndexDocument) -> dict[str, int]:
    """Term → level in title and opening text."""
    body = dict(Counter(document.body).most_common(MAX_BODY_TERMS))
    return _levels([(TITLE, document.title, Counter(document.title)), (BODY, document.body, body)])


def note_impacts(document: IndexDocument) -> dict[str, int]:
    """Term → level in the notes, which only a search by words uses."""
    levels = _levels(
        (NOTES.get(section, OTHER_NOTES), terms, Counter(terms)) for section, terms in sorted(document.notes.items())
    )
    if len(levels) > MAX_NOTE_TERMS:
        best = sorted(levels.items(), key=lambda item: -item[1])
        return dict(best[:MAX_NOTE_TERMS])
    return levels


def _levels(parts: Iterable[tuple[WeightedField, Sequence[str], Mapping[str, int]]]) -> dict[str, int]:
    weights: dict[str, float] = {}
    for section, terms, frequencies in parts:
        scale = section.weight / (1 - section.b + section.b * len(terms) / section.average)
        for term, frequency in frequencies.items():
            weights[term] = weights.get(term, 0.0) + scale * frequency
    return {term: level_of(f / (K1 + f)) for term, f in weights.items()}
