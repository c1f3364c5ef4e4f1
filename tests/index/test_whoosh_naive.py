"""The index on Whoosh compared with a scorer too simple to be wrong: the same hits, numbers and order."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from math import ceil, log1p, sqrt
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.domain.digest import IndexHit
from bot.domain.thread import ThreadId
from bot.index.bm25f import note_impacts, text_impacts
from bot.index.protocol import NOTES, TEXT, IndexDocument, Query
from bot.index.scoring import K1, LEVELS, MAX_QUERY_TERMS, smoothed_idf
from bot.ranking.features import COSINE_SLOPE, LEAST_COSINE
from tests.examples import examples
from tests.index.test_whoosh import START, document, entry, index_of

LEVELS_OF = {TEXT: text_impacts, NOTES: note_impacts}


def cosine(left: bytes, right: bytes) -> float:
    """The cosine, or 0 if there is nothing to compare."""
    first, second = ([byte - 256 if byte > 127 else byte for byte in vector] for vector in (left, right))
    lengths = sum(x * x for x in first) * sum(x * x for x in second)
    if not lengths or len(first) != len(second):
        return 0.0
    return sum(x * y for x, y in zip(first, second, strict=True)) / sqrt(lengths)


def naive_search(documents: Sequence[IndexDocument], query: Query, before: datetime | None = None) -> list[IndexHit]:
    """All threads as hits, in the order of their documents."""
    visible = [candidate for candidate in documents if before is None or candidate.entry.created_at < before]
    gains: list[dict[str, float]] = [{} for _ in visible]
    max_score = 0.0
    terms = sorted(query.terms, key=lambda term: (-query.terms[term], term))[:MAX_QUERY_TERMS]
    for field, importance in sorted(query.fields.items()):
        impacts_by_document = [LEVELS_OF[field](candidate) for candidate in visible]
        for term in (term for term in terms if query.terms[term] > 0 and importance > 0):
            frequency = sum(term in impacts for impacts in impacts_by_document)
            full = importance * query.terms[term] * smoothed_idf(frequency, len(visible)) * (K1 + 1)
            max_score += full
            for impacts, term_gains in zip(impacts_by_document, gains, strict=True):
                if term in impacts:
                    term_gains[term] = term_gains.get(term, 0.0) + full * LEVELS[impacts[term]]
    return [
        IndexHit(
            candidate.entry,
            score := sum(term_gains.values()),
            tuple(sorted(term_gains, key=lambda term: (-term_gains[term], term))[:8]),
            score / max_score if max_score else 0.0,
            cosine(query.vector, candidate.vector or b"") if query.vector else None,
            sum(other.entry.duplicate_of_at(before) == candidate.entry.id for other in visible),
        )
        for candidate, term_gains in zip(visible, gains, strict=True)
    ]


def blend_sums(hits: Sequence[IndexHit], blend: Mapping[str, float], moment: datetime) -> dict[ThreadId, float]:
    """The sum of the blend for each thread, as of the moment."""
    best = max((hit.score for hit in hits), default=0.0)
    return {hit.entry.id: _sum(hit, blend, moment, best) for hit in hits}


def _sum(hit: IndexHit, blend: Mapping[str, float], moment: datetime, best: float) -> float:
    closed_at = hit.entry.closed_since(moment)
    values = {
        "text": (text := hit.score / best if best else 0.0),
        "semantic": hit.cosine or LEAST_COSINE + COSINE_SLOPE * text,
        "open": float(closed_at is None),
        "age": log_days(hit.entry.created_at, moment),
        "closed": log_days(closed_at, moment) if closed_at else 0.0,
        "length": log1p(hit.entry.length),
        "duplicates": log1p(hit.duplicates),
    }
    return sum(weight * values[name] for name, weight in blend.items())


def log_days(since: datetime, until: datetime) -> float:
    return log1p(max(0.0, until.timestamp() - ceil(since.timestamp())) / 86_400)


def sorted_hits(hits: Sequence[IndexHit]) -> list[IndexHit]:
    return sorted(hits, key=lambda hit: (-hit.score, int(hit.entry.id)))


def assert_equal_hits(hits: Sequence[IndexHit], expected: Mapping[ThreadId, IndexHit]) -> None:
    """Assert that each hit equals the naive one, and that they are sorted."""
    for hit in hits:
        other = expected[hit.entry.id]
        assert replace(hit, score=0, share=0) == replace(other, score=0, share=0)
        assert (hit.score, hit.share) == pytest.approx((other.score, other.share))
    assert list(hits) == sorted_hits(hits)


@dataclass(frozen=True)
class Drawn:
    """The parts of a random thread; days count from START."""

    title: list[str]
    body: list[str]
    notes: list[str]
    vector: bytes | None
    duplicate: tuple[int, float] | None
    state_changes: list[float]
    length: int

    def document(self, key: int) -> IndexDocument:
        of, known_day = self.duplicate or (None, None)
        index_entry = entry(
            key,
            key / 2,
            duplicate_of=of,
            duplicate_at=None if known_day is None else START + timedelta(days=known_day),
            state_changes=tuple(START + timedelta(days=day) for day in sorted(set(self.state_changes))),
            length=self.length,
        )
        return IndexDocument(index_entry, self.title, self.body, {"keywords": self.notes}, self.vector)


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
BLENDED = ("text", "semantic", "open", "age", "closed", "length", "duplicates")
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
    query = Query(weights, fields, vector)
    for before in (None, START + timedelta(days=3)):
        expected = [hit for hit in naive_search(documents, query, before) if hit.score]
        hits = index.search(query, limit=limit, before=before)
        assert [hit.entry.id for hit in hits] == [hit.entry.id for hit in sorted_hits(expected)[:limit]]
        assert_equal_hits(hits, {hit.entry.id: hit for hit in expected})


@pytest.mark.slow
@SEARCHED
@given(
    threads=st.lists(THREAD, max_size=14),
    weights=WEIGHTS,
    blend=BLEND,
    vector=VECTOR,
    limit_and_day=st.tuples(st.integers(0, 8), DAY),
)
def test_with_a_blend_the_best_are_those_of_the_naive_sum(
    tmp_path_factory: pytest.TempPathFactory,
    threads: list[Drawn],
    weights: dict[str, float],
    blend: Mapping[str, float],
    vector: bytes,
    limit_and_day: tuple[int, float],
) -> None:
    documents = [drawn.document(key) for key, drawn in enumerate(threads)]
    index = index_of(tmp_path_factory.mktemp("index"), documents[::2])
    index.update(documents[1::2])
    limit, before = limit_and_day[0], START + timedelta(days=limit_and_day[1])
    query = Query(weights, vector=vector, blend=blend)
    expected = {hit.entry.id: hit for hit in naive_search(documents, query, before)}
    sums = blend_sums(list(expected.values()), blend, before)
    hits = index.search(query, limit=limit, before=before)
    assert_equal_hits(hits, expected)
    chosen = {hit.entry.id for hit in hits}
    assert len(chosen) == len(hits) == min(limit, len(expected))
    left_out = max((sums[key] for key in sums.keys() - chosen), default=float("-inf"))
    assert all(sums[key] >= left_out - 1e-9 for key in chosen)


def test_every_term_of_a_long_query_counts(tmp_path: Path) -> None:
    words = [f"word{number:03}" for number in range(MAX_QUERY_TERMS)]
    documents = [
        document(1, "", " ".join(words[:300])),
        document(2, "", " ".join(words[200:500])),
        document(3, "other"),
    ]
    query = Query(dict.fromkeys(words, 1.0))
    [first, second] = index_of(tmp_path, documents).search(query)
    expected = sorted_hits(naive_search(documents, query))[:2]
    assert [(hit.entry.id, hit.terms) for hit in (first, second)] == [(hit.entry.id, hit.terms) for hit in expected]
    assert [hit.score for hit in (first, second)] == pytest.approx([hit.score for hit in expected])
    assert first.share < 0.5
