"""The learned numbers: the weights for order and confidence, and the cut above which a hit is shown.

`ranking.json` next to this module holds the shipped ones; a repository that learned its own stores them on its branch
in the same format. They are untrusted data: anything unexpected makes the whole ranking invalid.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from math import exp, log
from pathlib import Path
from typing import Any

from bot.ranking.features import CONFIDENCE_FEATURES, ORDER_FEATURES

FORMAT_VERSION = 2
MAX_WEIGHT = 1_000.0
"""The largest weight."""

MIN_PROBABILITY = 1e-9
_MIN_CUT = 1e-4
CUT_SIMILARITY = 0.65
"""The similarity to which the cut is mapped, in every repository."""

ORDER_NAMES = tuple(each.name for each in ORDER_FEATURES)
CONFIDENCE_NAMES = tuple(each.name for each in CONFIDENCE_FEATURES)

MODEL_EVIDENCE = "semantic"
"""The feature that only a hit has whose text and question were both read by a text model."""

MODEL_NAMES = ("by_words", "with_text_model")
"""The models of a ranking."""


@dataclass(frozen=True, slots=True)
class RankingWeights:
    """``order``: the weight of each feature in a candidate's score, in log-odds against the other candidates.

    ``confidence`` and ``intercept``: a logistic model of the probability that a reader of both threads finds the hit
    useful. ``cut``: the confidence, in 0..1, that is mapped to a similarity of 0.65.
    """

    order: Mapping[str, float]
    confidence: Mapping[str, float]
    intercept: float
    cut: float

    def probability(self, evidence: Mapping[str, float]) -> float:
        """The confidence for these features, in 0..1; missing features count as 0."""
        return probability_of(self.log_odds(evidence))

    def log_odds(self, evidence: Mapping[str, float]) -> float:
        """The logarithm of the odds of that confidence."""
        return self.intercept + sum(weight * evidence.get(name, 0.0) for name, weight in self.confidence.items())

    def similarity(self, confidence: float) -> float:
        """The similarity for a confidence, both in 0..1; their log-odds differ by a constant."""
        return probability_of(_log_odds(confidence) - _log_odds(self.cut) + _log_odds(CUT_SIMILARITY))

    def with_cut(self, cut: float) -> RankingWeights:
        """A copy with the cut at this confidence, limited to 0.001..0.999."""
        return replace(self, cut=min(0.999, max(0.001, cut)))


@dataclass(frozen=True, slots=True)
class RankingModels:
    """A model for each kind of memory: with words alone, and with a text model's vectors too.

    ``provenance``: the data from which the numbers were learned, as plain values.
    """

    by_words: RankingWeights
    with_text_model: RankingWeights
    provenance: Mapping[str, object] = field(default_factory=dict)

    def model(self, *, has_vectors: bool) -> RankingWeights:
        """The model for threads with vectors, or without."""
        return self.with_text_model if has_vectors else self.by_words

    def for_evidence(self, evidence: Mapping[str, float]) -> RankingWeights:
        """The model for the confidence in a hit: by words if one of the two texts has no vector."""
        return self.model(has_vectors=MODEL_EVIDENCE in evidence)

    def with_model(self, model: RankingWeights, *, has_vectors: bool) -> RankingModels:
        """A copy with another model for threads with vectors, or without."""
        return replace(self, with_text_model=model) if has_vectors else replace(self, by_words=model)


def parse(fields: Any) -> RankingModels:
    """A ranking from JSON. Raises ValueError when anything is missing, unknown or out of bounds."""
    if not isinstance(fields, dict) or fields.get("format") != FORMAT_VERSION:
        raise ValueError("not a ranking of this format")
    provenance = fields.get("provenance", {})
    if not isinstance(provenance, dict):
        raise ValueError("provenance: not an object")
    return RankingModels(**{kind: _model(fields, kind) for kind in MODEL_NAMES}, provenance=provenance)


def ranking_fields(ranking: RankingModels) -> dict[str, object]:
    """The inverse of `parse`: weights rounded to 4 digits and limited to its bounds, zeros left out."""
    return {
        "format": FORMAT_VERSION,
        "provenance": dict(ranking.provenance),
        **{kind: _model_fields(getattr(ranking, kind)) for kind in MODEL_NAMES},
    }


@cache
def shipped() -> RankingModels:
    """The numbers shipped with this version."""
    return parse(json.loads(Path(__file__).with_name("ranking.json").read_text(encoding="utf-8")))


@cache
def shipped_elsewhere() -> RankingModels:
    """The numbers for threads of other repositories, shipped with this version; an organisation's index has no
    vectors."""
    path = Path(__file__).with_name("elsewhere.json")
    by_words = _model({path.stem: json.loads(path.read_text(encoding="utf-8"))}, path.stem)
    return RankingModels(by_words, by_words)


def _model(fields: Mapping[str, Any], name: str) -> RankingWeights:
    section = _section(fields, name)
    cut = _number(section.get("cut"), f"{name}.cut")
    if not 0 < cut < 1:
        raise ValueError(f"{name}.cut: {cut} is not between 0 and 1")
    return RankingWeights(
        order=_weights(section, "order", ORDER_NAMES),
        confidence=_weights(section, "confidence", CONFIDENCE_NAMES),
        intercept=_number(section.get("intercept"), f"{name}.intercept"),
        cut=cut,
    )


def _section(fields: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = fields.get(name)
    if not isinstance(section, dict):
        raise ValueError(f"{name}: not an object")
    return section


def _model_fields(model: RankingWeights) -> dict[str, object]:
    return {
        "order": _without_zeros(model.order),
        "confidence": _without_zeros(model.confidence),
        "intercept": _round(model.intercept),
        "cut": min(1 - _MIN_CUT, max(_MIN_CUT, _round(model.cut))),
    }


def _weights(fields: Mapping[str, Any], section: str, names: tuple[str, ...]) -> dict[str, float]:
    weights = _section(fields, section)
    unknown = sorted(weights.keys() - set(names))
    if unknown:
        raise ValueError(f"{section}: no feature is called {unknown[0]!r:.60}")
    return {name: _number(weights[name], f"{section}.{name}") for name in names if name in weights}


def _number(value: object, name: str) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not abs(value) <= MAX_WEIGHT:  # type: ignore[arg-type]  # nor is NaN
        raise ValueError(f"{name}: not a number from -{MAX_WEIGHT:,.0f} to {MAX_WEIGHT:,.0f}")
    return float(value)  # type: ignore[arg-type]


def _without_zeros(weights: Mapping[str, float]) -> dict[str, float]:
    return {name: rounded for name, weight in weights.items() if (rounded := _round(weight))}


def _round(value: float) -> float:
    return round(max(-MAX_WEIGHT, min(MAX_WEIGHT, value)), 4)


def _log_odds(probability: float) -> float:
    clamped = min(1 - MIN_PROBABILITY, max(MIN_PROBABILITY, probability))
    return log(clamped / (1 - clamped))


def probability_of(log_odds: float) -> float:
    """The probability with these odds; logarithms beyond any weight count as the largest."""
    return 1 / (1 + exp(-max(-MAX_WEIGHT / 2, min(MAX_WEIGHT / 2, log_odds))))
