"""The index on Whoosh beside a scorer that is too simple to be wrong: the same hits, numbers and order."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from math import sqrt
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bot.indexed import Hit
from bot.memory.bm25f import K1, LEVELS, idf, note_levels, text_levels
from bot.memory.index import NOTES, TEXT, Document, Query
from bot.memory.whoosh.search import MAX_LOOKED_UP
from tests.examples import examples
from tests.memory.test_whoosh import START, document, entry, index_of

LEVELS_OF = {TEXT: text_levels, NOTES: note_levels}


def cosine(one: bytes, other: bytes) -> float | None:
    """None where there is nothing to compare."""
    first, second = ([byte - 256 if byte > 127 else byte for byte in vector] for vector in (one, other))
    if not any(first) or not any(second) or len(first) != len(second):
        return None
    lengths = sum(x * x for x in first) * sum(x * x for x in second)
    return sum(x * y for x, y in zip(first, second, strict=True)) / sqrt(lengths)


def naive(
    documents: Sequence[Document], query: Query, limit: int, near: int, before: datetime | None = None
) -> list[Hit]:
    there = [found for found in documents if before is None or found.entry.created_at < before]
    gains: list[dict[str, float]] = [{} for _ in there]
    most = 0.0
    terms = sorted(query.terms, key=lambda term: (-query.terms[term], term))[:MAX_LOOKED_UP]
    for field, importance in sorted(query.fields.items()):
        levels = [LEVELS_OF[field](found) for found in there]
        for term in (term for term in terms if query.terms[term] > 0 and importance > 0):
            frequency = sum(term in held for held in levels)
            full = importance * query.terms[term] * idf(frequency, len(there)) * (K1 + 1)
            most += full
            for held, gained in zip(levels, gains, strict=True):
                if term in held:
                    gained[term] = gained.get(term, 0.0) + full * LEVELS[held[term]]
    close = [
        {arm: cosine(vector, found.vectors.get(arm, b"")) for arm, vector in query.vectors.items()} for found in there
    ]
    hits = [
        Hit(
            found.entry,
            score := sum(gained.values()),
            tuple(sorted(gained, key=lambda term: (-gained[term], term))[:8]),
            score / most if most else 0.0,
            {arm: value or 0.0 for arm, value in cosines.items()},
            sum(other.entry.duplicate_of_at(before) == found.entry.id for other in there),
        )
        for found, gained, cosines in zip(there, gains, close, strict=True)
    ]
    chosen = {hit.entry.id for hit in in_order(hits, {hit.entry.id: hit.score or None for hit in hits})[:limit]}
    for arm in query.vectors:
        values = {hit.entry.id: cosines[arm] for hit, cosines in zip(hits, close, strict=True)}
        chosen |= {hit.entry.id for hit in in_order(hits, values)[:near]}
    return in_order([hit for hit in hits if hit.entry.id in chosen], {hit.entry.id: hit.score for hit in hits})


def in_order(hits: Sequence[Hit], values: Mapping[object, float | None]) -> list[Hit]:
    """Those that have a value, the highest first."""
    found = [(-value, int(hit.entry.id), hit) for hit in hits if (value := values[hit.entry.id]) is not None]
    return [hit for _, _, hit in sorted(found, key=lambda each: each[:2])]


WORDS = [f"w{number}" for number in range(10)]
TERMS = st.lists(st.sampled_from(WORDS), max_size=8)
VECTOR = st.binary(min_size=3, max_size=3)
THREAD = st.tuples(TERMS, TERMS, TERMS, st.one_of(st.none(), VECTOR), st.one_of(st.none(), st.integers(0, 14)))
WEIGHTS = st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.0, 0.3, 1.0, 3.0]))
FIELDS = st.sampled_from([{TEXT: 1.0}, {NOTES: 1.0}, {TEXT: 1.0, NOTES: 0.5}])


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    threads=st.lists(THREAD, max_size=14),
    weights=WEIGHTS,
    fields=FIELDS,
    vector=VECTOR,
    sizes=st.tuples(st.integers(0, 6), st.integers(0, 6)),
)
def test_hits_are_those_of_the_naive_scorer(
    tmp_path_factory: pytest.TempPathFactory,
    threads: list[tuple[list[str], list[str], list[str], bytes | None, int | None]],
    weights: dict[str, float],
    fields: dict[str, float],
    vector: bytes,
    sizes: tuple[int, int],
) -> None:
    documents = [
        Document(
            entry(key, key, duplicate_of=of, duplicate_at=None if of is None else START + timedelta(days=of)),
            title,
            body,
            {"keywords": noted},
            {} if own is None else {"trained": own},
        )
        for key, (title, body, noted, own, of) in enumerate(threads)
    ]
    index = index_of(tmp_path_factory.mktemp("index"), documents[::2])
    index.update(documents[1::2])
    query = Query(weights, fields, {"trained": vector, "semantic": vector})
    limit, near = sizes
    for before in (None, START + timedelta(days=5)):
        found = index.search(query, limit=limit, near=near, before=before)
        expected = naive(documents, query, limit, near, before)
        assert [(hit.entry.id, hit.terms, hit.near, hit.duplicates) for hit in found] == [
            (hit.entry.id, hit.terms, hit.near, hit.duplicates) for hit in expected
        ]
        assert [(hit.score, hit.share) for hit in found] == [pytest.approx((hit.score, hit.share)) for hit in expected]


def test_every_term_of_a_long_query_counts(tmp_path: Path) -> None:
    words = [f"word{number:03}" for number in range(MAX_LOOKED_UP)]
    documents = [
        document(1, "", " ".join(words[:300])),
        document(2, "", " ".join(words[200:500])),
        document(3, "other"),
    ]
    query = Query(dict.fromkeys(words, 1.0))
    [first, second] = index_of(tmp_path, documents).search(query)
    assert [first, second] == naive(documents, query, 10, 0)
    assert first.share < 0.5
