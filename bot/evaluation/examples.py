"""What a ranking learns from: the candidates of a question as they were, and which of them people called the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.memory.index import ARMS
from bot.model import ThreadId
from bot.ranking import ORDER, Model, Ranking
from bot.recall.rank import Ranked

LEAST_EXAMPLES = 100
"""Marked duplicates from which a repository learns weights of its own: fewer give worse ones than the shipped."""

MOST_EXAMPLES = 500
"""The newest are enough: the curve is flat from 250 on."""

STRENGTH = 10.0
"""How strongly own weights are drawn to the shipped ones, in units of each feature's spread."""


@dataclass(frozen=True, slots=True)
class Example:
    """One question: the features of its candidates, and which of them are right. ``known_at``: since when that is."""

    features: tuple[Mapping[str, float], ...]
    right: tuple[bool, ...]
    known_at: datetime


def example(found: Ranked, right: frozenset[ThreadId], known_at: datetime) -> Example | None:
    """The example that a ranked question gives; None when nothing right is among its candidates."""
    is_right = tuple(bool(right.intersection((c.entry.id, *c.folded))) for c in found.candidates)
    return Example(tuple(c.features for c in found.candidates), is_right, known_at) if any(is_right) else None


def fit(
    examples: Sequence[Example], base: Ranking | None, strength: float = STRENGTH, names: Sequence[str] = ORDER
) -> Ranking:
    """The ranking that these examples teach, drawn to ``base``; confidences and cuts stay those of ``base``.

    Of the features only those in ``names`` are weighed.
    """
    known = base or _blank()
    trained = [name for name in names if not name.startswith("semantic")]
    return Ranking(
        _fitted(examples, known.with_vectors, strength, trained),
        _fitted(examples, known.by_words, strength, [name for name in names if name not in ARMS]),
        _fitted(examples, known.with_text_model, strength, names),
        {**known.provenance, "order": f"{len(examples)} marked duplicates of this repository"},
    )


def own_ranking(examples: Iterable[Example], base: Ranking, moment: datetime) -> Ranking:
    """``base``, fitted to what a repository had marked before that moment where that is enough."""
    known = sorted((one for one in examples if one.known_at < moment), key=lambda one: one.known_at)
    return fit(known[-MOST_EXAMPLES:], base) if len(known) >= LEAST_EXAMPLES else base


def _fitted(examples: Sequence[Example], model: Model, strength: float, names: Sequence[str]) -> Model:
    from bot.numeric.fitting import fit_order

    used = [name for name in names if any(name in one.features[0] for one in examples)]
    order = fit_order([(one.features, one.right) for one in examples], used, prior=model.order, strength=strength)
    kept = {name: weight for name, weight in model.order.items() if name not in used}
    return Model({**kept, **order}, model.confidence, model.intercept, model.cut)


def _blank() -> Ranking:
    nothing = Model({}, {}, 0.0, 0.5)
    return Ranking(nothing, nothing, nothing)
