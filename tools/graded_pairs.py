"""Pairs of a new issue and an earlier one that people graded, as the shipped search sees them.

They are in ``related.jsonl`` next to the development archives: `archive`, `id`, `earlier`, and a grade from 0 to 3 by
each of two readers. *Useful* is a mean of at least 2: closely related, the reporter would be glad to see it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.evaluate import mask_citations
from bot.evaluation.replay import ReplayHistory, past_library
from bot.ranking.fit import fit_probability
from bot.ranking.weights import CONFIDENCE_NAMES, RankingModels, RankingWeights
from bot.recall.library import Library
from bot.recall.mentions import canonical_chain, referenced_numbers
from bot.recall.similar import SimilarThread, find_candidates, judge_candidates

USEFUL = 2.0
_SURER = {
    "bitcoin_gui": (
        "45 94 117 150 198 212 222 245 247 249 259 265 314 316 356 371 530 564 567 661 670 731 768 785 796 874 880 "
    ),
    "ietf_http2-spec": (
        "261 267 269 289 331 362 384 385 390 424 466 492 499 530 558 564 567 586 634 649 726 740 743 758 927 "
        "974 990 1033 "
    ),
    "ietf_mls-protocol": (
        "119 174 238 248 409 485 506 696 782 783 784 785 786 788 790 791 793 802 803 804 805 806 807 808 809 "
    ),
    "ietf_qlog": (
        "25 30 33 50 62 75 85 102 111 154 168 171 183 239 246 323 346 366 373 391 410 426 435 447 484 488 507 "
    ),
    "rust_pre2015": (
        "11741 11757 12208 12760 12804 12824 13824 14018 14026 14409 14934 14987 15170 15200 15315 15475 "
        "15608 15906 16330 16382 16508 16623 17480 17572 17622 17792 18098 18100 18429 18576 18614 18715 "
        "18794 19404 19493 19718 19875 19919 20008 20023 20240 "
    ),
}
SURER = {name: frozenset(map(int, numbers.split())) for name, numbers in _SURER.items()}
"""These issues, half of all, were drawn from the surest 15 % of their archive; the others from the next 30 %."""


@dataclass(frozen=True, slots=True)
class Pair:
    """``place``: 1 or 2, the rank among the hits of the new issue when the pairs were drawn."""

    archive: str
    id: int
    earlier: int
    place: int
    is_useful: bool


@dataclass(frozen=True, slots=True)
class Graded:
    """A pair with the hit that shows it, None if it would never be shown."""

    pair: Pair
    hit: SimilarThread | None

    @property
    def evidence(self) -> Mapping[str, float]:
        return self.hit.candidate.evidence if self.hit else {}

    @property
    def confidence(self) -> float:
        return self.hit.candidate.confidence if self.hit else 0.0

    @property
    def is_shown(self) -> bool:
        return self.hit is not None and self.hit.is_shown(0.65)


def read_pairs(path: Path) -> list[Pair]:
    """All pairs."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return [
        Pair(row["archive"], row["id"], row["earlier"], row["place"], sum(row["grades"]) >= USEFUL * len(row["grades"]))
        for row in rows
    ]


def grade_archive(history: ReplayHistory, pairs: Sequence[Pair], ranking: RankingModels) -> Iterator[Graded]:
    """The pairs of one archive, each issue queried as of its opening."""
    ids = {pair.id for pair in pairs}
    with past_library(history) as past:
        library = past.with_ranking(ranking)
        for thread in history.threads:
            if thread.id not in ids:
                continue
            similar = _similar(thread, library)
            for pair in pairs:
                if pair.id == thread.id:
                    yield Graded(pair, next((hit for hit in similar if _is_hit_on(hit, pair.earlier)), None))


def _similar(thread: Thread, library: Library) -> list[SimilarThread]:
    opened, before = mask_citations(thread, ()), thread.created_at
    cited = [
        key
        for number in referenced_numbers(opened, RepositoryAddress())
        for key in canonical_chain(number, library, before, None)
    ]
    return judge_candidates(opened, find_candidates(opened, library, before, cited), library, before)


def _is_hit_on(hit: SimilarThread, earlier: int) -> bool:
    return earlier in (hit.thread.id, *hit.candidate.folded)


def fit_confidence(
    rows: Sequence[Graded], model: RankingWeights, names: Sequence[str] = CONFIDENCE_NAMES
) -> RankingWeights:
    """The model with the confidence fitted to these grades."""
    rows_with_hit = [row for row in rows if row.hit]
    used = [name for name in names if any(name in row.evidence for row in rows_with_hit)]
    evidence, labels = [row.evidence for row in rows_with_hit], [row.pair.is_useful for row in rows_with_hit]
    weights, intercept = fit_probability(evidence, labels, used)
    return replace(model, confidence=weights, intercept=intercept)


def cross_validated(
    rows: Sequence[Graded], model: RankingWeights, names: Sequence[str] = CONFIDENCE_NAMES
) -> list[float]:
    """The confidence in each pair, fitted to the pairs of all other archives."""
    models = {
        name: fit_confidence([row for row in rows if row.pair.archive != name], model, names)
        for name in {row.pair.archive for row in rows}
    }
    return [models[row.pair.archive].probability(row.evidence) if row.hit else 0.0 for row in rows]
