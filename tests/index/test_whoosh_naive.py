"""The index on Whoosh beside a scorer that is too simple to be wrong: the same hits, numbers and order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil, log1p, sqrt
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.digest import Hit
from bot.domain.thread import ThreadId
from bot.index.bm25f import note_impacts, text_impacts
from bot.index.impacts import K1, LEVELS, MAX_LOOKED_UP, smoothed_idf
from bot.index.protocol import NOTES, TEXT, IndexDocument, Query
from bot.index.whoosh.codec import FLIPS
from tests.examples import examples
from tests.index.test_whoosh import START, document, entry, index_of

LEVELS_OF = {TEXT: text_impacts, NOTES: note_impacts}


def cosine(one: bytes, other: bytes) -> float:
    """0 where there is nothing to compare."""
    first, second = ([byte - 256 if byte > 127 else byte for byte in vector] for vector in (one, other))
    lengths = sum(x * x for x in first) * sum(x * x for x in second)
    if not lengths or len(first) != len(second):
        return 0.0
    return sum(x * y for x, y in zip(first, second, strict=True)) / sqrt(lengths)


def naive(documents: Sequence[IndexDocument], query: Query, before: datetime | None = None) -> list[Hit]:
    """All threads as hits, in the order of their documents."""
    there = [found for found in documents if before is None or found.entry.created_at < before]
    gains: list[dict[str, float]] = [{} for _ in there]
    most = 0.0
    terms = sorted(query.terms, key=lambda term: (-query.terms[term], term))[:MAX_LOOKED_UP]
    for field, importance in sorted(query.fields.items()):
        levels = [LEVELS_OF[field](found) for found in there]
        for term in (term for term in terms if query.terms[term] > 0 and importance > 0):
            frequency = sum(term in held for held in levels)
            full = importance * query.terms[term] * smoothed_idf(frequency, len(there)) * (K1 + 1)
            most += full
            for held, gained in zip(levels, gains, strict=True):
                if term in held:
                    gained[term] = gained.get(term, 0.0) + full * LEVELS[held[term]]
    return [
        Hit(
            found.entry,
            score := sum(gained.values()),
            tuple(sorted(gained, key=lambda term: (-gained[term], term))[:8]),
            score / most if most else 0.0,
            {arm: cosine(vector, found.vectors.get(arm, b"")) for arm, vector in query.vectors.items()},
            sum(other.entry.duplicate_of_at(before) == found.entry.id for other in there),
        )
        for found, gained in zip(there, gains, strict=True)
    ]


def blended(hits: Sequence[Hit], blend: Mapping[str, float], moment: datetime) -> dict[ThreadId, float]:
    """The sum of the blend for each thread, from what is known of it at the moment."""
    best = max((hit.score for hit in hits), default=0.0)
    return {hit.entry.id: _sum(hit, blend, moment, best) for hit in hits}


def _sum(hit: Hit, blend: Mapping[str, float], moment: datetime, best: float) -> float:
    closed_at = replace(hit.entry, flips=hit.entry.flips[: len(FLIPS)]).closed_since(moment)
    values = {
        **hit.near,
        "text": hit.score / best if best else 0.0,
        "open": float(closed_at is None),
        "age": log_days(hit.entry.created_at, moment),
        "closed": log_days(closed_at, moment) if closed_at else 0.0,
        "length": log1p(hit.entry.length),
        "duplicates": log1p(hit.duplicates),
    }
    return sum(weight * values.get(name, 0.0) for name, weight in blend.items())


def log_days(since: datetime, until: datetime) -> float:
    return log1p(max(0.0, until.timestamp() - ceil(since.timestamp())) / 86_400)


def in_order(hits: Sequence[Hit]) -> list[Hit]:
    return sorted(hits, key=lambda hit: (-hit.score, int(hit.entry.id)))


def assert_alike(found: Sequence[Hit], expected: Mapping[ThreadId, Hit]) -> None:
    """That each of these hits says what the naive one says, and that they come in their order."""
    for hit in found:
        other = expected[hit.entry.id]
        assert replace(hit, score=0, share=0) == replace(other, score=0, share=0)
        assert (hit.score, hit.share) == pytest.approx((other.score, other.share))
    assert list(found) == in_order(found)


@dataclass(frozen=True)
class Drawn:
    """What a thread is made of; days count from START."""

    title: list[str]
    body: list[str]
    noted: list[str]
    vector: bytes | None
    duplicate: tuple[int, float] | None
    flips: list[float]
    length: int

    def document(self, key: int) -> IndexDocument:
        of, known = self.duplicate or (None, None)
        described = entry(
            key,
            key / 2,
            duplicate_of=of,
            duplicate_at=None if known is None else START + timedelta(days=known),
            flips=tuple(START + timedelta(days=day) for day in sorted(set(self.flips))),
            length=self.length,
        )
        vectors = {} if self.vector is None else {"trained": self.vector}
        return IndexDocument(described, self.title, self.body, {"keywords": self.noted}, vectors)


WORDS = [f"w{number}" for number in range(10)]
TERMS = st.lists(st.sampled_from(WORDS), max_size=8)
VECTOR = st.binary(min_size=3, max_size=3)
DAY = st.sampled_from([number / 2 for number in range(16)])
THREAD = st.builds(
    Drawn,
    TERMS,
    TERMS,
    TERMS,
    st.one_of(st.none(), VECTOR),
    st.one_of(st.none(), st.tuples(st.integers(0, 14), DAY)),
    st.lists(DAY, max_size=6),
    st.integers(0, 65_536),
)
WEIGHTS = st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.0, 0.3, 1.0, 3.0]))
FIELDS = st.sampled_from([{TEXT: 1.0}, {NOTES: 1.0}, {TEXT: 1.0, NOTES: 0.5}])
WEIGHT = st.sampled_from([-2.0, -0.25, 0.0, 1.0, 3.5])
BLENDED = ("text", "trained", "semantic", "trained_title", "open", "age", "closed", "length", "duplicates")
BLEND = st.dictionaries(st.sampled_from(BLENDED), WEIGHT)
SEARCHED = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.mark.slow
@SEARCHED
@given(threads=st.lists(THREAD, max_size=14), weights=WEIGHTS, fields=FIELDS, vector=VECTOR, limit=st.integers(0, 6))
def test_hits_are_those_of_the_naive_scorer(
    tmp_path_factory: pytest.TempPathFactory,
    threads: list[Drawn],
    weights: dict[str, float],
    fields: dict[str, float],
    vector: bytes,
    limit: int,
) -> None:
    documents = [drawn.document(key) for key, drawn in enumerate(threads)]
    index = index_of(tmp_path_factory.mktemp("index"), documents[::2])
    index.update(documents[1::2])
    query = Query(weights, fields, {"trained": vector, "semantic": vector})
    for before in (None, START + timedelta(days=3)):
        expected = [hit for hit in naive(documents, query, before) if hit.score]
        found = index.search(query, limit=limit, before=before)
        assert [hit.entry.id for hit in found] == [hit.entry.id for hit in in_order(expected)[:limit]]
        assert_alike(found, {hit.entry.id: hit for hit in expected})


@pytest.mark.slow
@SEARCHED
@given(
    threads=st.lists(THREAD, max_size=14),
    weights=WEIGHTS,
    blend=BLEND,
    vector=VECTOR,
    asked=st.tuples(st.integers(0, 8), DAY),
)
def test_with_a_blend_the_best_are_those_of_the_naive_sum(
    tmp_path_factory: pytest.TempPathFactory,
    threads: list[Drawn],
    weights: dict[str, float],
    blend: Mapping[str, float],
    vector: bytes,
    asked: tuple[int, float],
) -> None:
    documents = [drawn.document(key) for key, drawn in enumerate(threads)]
    index = index_of(tmp_path_factory.mktemp("index"), documents[::2])
    index.update(documents[1::2])
    limit, before = asked[0], START + timedelta(days=asked[1])
    query = Query(weights, vectors={"trained": vector, "semantic": vector}, blend=blend)
    expected = {hit.entry.id: hit for hit in naive(documents, query, before)}
    sums = blended(list(expected.values()), blend, before)
    found = index.search(query, limit=limit, before=before)
    assert_alike(found, expected)
    chosen = {hit.entry.id for hit in found}
    assert len(chosen) == len(found) == min(limit, len(expected))
    left_out = max((sums[key] for key in sums.keys() - chosen), default=float("-inf"))
    assert all(sums[key] >= left_out - 1e-9 for key in chosen)


def test_every_term_of_a_long_query_counts(tmp_path: Path) -> None:
    words = [f"word{number:03}" for number in range(MAX_LOOKED_UP)]
    documents = [
        document(1, "", " ".join(words[:300])),
        document(2, "", " ".join(words[200:500])),
        document(3, "other"),
    ]
    query = Query(dict.fromkeys(words, 1.0))
    [first, second] = index_of(tmp_path, documents).search(query)
    expected = in_order(naive(documents, query))[:2]
    assert [(hit.entry.id, hit.terms) for hit in (first, second)] == [(hit.entry.id, hit.terms) for hit in expected]
    assert [hit.score for hit in (first, second)] == pytest.approx([hit.score for hit in expected])
    assert first.share < 0.5
