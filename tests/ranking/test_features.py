"""What is known of a candidate before its text is read: what each number means, and that each is finite."""

from dataclasses import replace
from datetime import timedelta
from math import isclose, isfinite, log1p
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.thread import Kind
from bot.ranking.features import (
    CONFIDENCE_FEATURES,
    DEFAULT_RARITY,
    MODEL,
    ORDER_FEATURES,
    SPECIFIC_THREADS_FLOOR,
    SPECIFIC_THREADS_SHARE,
    DocumentColumns,
    Feature,
    RankedHit,
    RankingQuery,
    SharedText,
    is_distinctive,
    measure,
    order_features,
    query_for,
)
from bot.ranking.weights import CONFIDENCE_NAMES, MODEL_NAMES, ORDER_NAMES, shipped
from bot.reading.analyzer import terms
from bot.recall.library import blend
from tests.recall.samples import at, thread

TITLE = "Cookie lost behind the proxy"
WORDS = frozenset(terms(TITLE))
RAREST = 5.0
QUERY = query_for(thread(500, TITLE, "The session cookie is refused."), dict.fromkeys(WORDS, 2.0), RAREST)


def entry(title: str = TITLE, days: float = 1, **rest: Any) -> IndexEntry:
    values: dict[str, Any] = {"author": "octocat", "state": "open", "updated_at": at(days), **rest}
    return IndexEntry(1, Kind.ISSUE, title, created_at=at(days), **values)


def features(
    candidate: IndexEntry | None = None, query: RankingQuery = QUERY, best: float = 20.0, **rest: Any
) -> dict[str, float]:
    return order_features(IndexHit(candidate or entry(), **{"score": 10.0, **rest}), query, best)


def make_query(title: str, body: str = "", **rarity: float) -> RankingQuery:
    return query_for(thread(500, title, body), {terms(word)[0]: value for word, value in rarity.items()}, RAREST)


def test_a_question_is_the_analysed_thread_at_its_creation() -> None:
    query = query_for(thread(500, "Cookie lost", "A cookie of the proxy", author="hubot"), {}, 0.0)
    assert (query.title, query.body) == (frozenset(terms("cookie lost")), frozenset(terms("cookie proxy")))
    assert (query.words, query.length, query.author, query.at) == (3, 32, "hubot", at(500))
    assert query.rarest > 0, "it divides"


def test_every_feature_is_one_that_a_model_may_weigh() -> None:
    values = features(cosine=0.3)
    assert set(values) == set(ORDER_NAMES)
    assert values["semantic"] == 0.3
    assert set(features()) == set(ORDER_NAMES) - {"semantic"}


def test_the_text_counts_as_a_share_of_the_best() -> None:
    assert features(score=5.0, best=20.0)["text"] == 0.25
    assert features(score=20.0, best=20.0)["text"] == 1.0
    assert features(score=0.0, best=0.0)["text"] == 0.0


def test_times_are_logarithms_of_days_until_the_question() -> None:
    still_open = features(entry(days=400))
    assert (still_open["open"], still_open["closed"]) == (1.0, 0.0)
    assert isclose(still_open["age"], log1p(100))
    ended = features(entry(days=400, state_changes=(at(470),)))
    assert ended["open"] == 0.0
    assert isclose(ended["closed"], log1p(30))


def test_the_state_is_that_at_the_time_of_the_question() -> None:
    later = features(entry(days=400, state="closed", state_changes=(at(501),)))
    assert (later["open"], later["closed"]) == (1.0, 0.0)
    reopened = features(entry(days=400, state="closed", state_changes=(at(410), at(420), at(501))))
    assert (reopened["open"], reopened["closed"]) == (1.0, 0.0)
    assert isclose(features(entry(days=400, state_changes=(at(410), at(420), at(480))))["closed"], log1p(20))


def test_lengths_duplicates_and_authors() -> None:
    values = features(entry(length=999, author="monalisa"), duplicates=3)
    assert (values["length"], values["duplicates"], values["same_author"]) == (log1p(999), log1p(3), 1.0)
    assert isclose(values["length_ratio"], abs(log1p(999) - log1p(QUERY.length)))
    assert features(entry(length=QUERY.length, author="hubot"))["length_ratio"] == 0.0
    assert features(entry(author="hubot"))["same_author"] == 0.0


def test_a_title_is_found_in_the_text_by_the_rarity_of_its_words() -> None:
    values = features(entry("Cookie crumbles"), make_query("Session", "cookie cookie", cookie=2.5))
    assert values["title_found"] == 2.5 / RAREST
    assert features(entry("Cookie"), make_query("Cookie", "", cookie=2.5))["title_found"] == 0.0, "nor in the title"


def test_a_title_is_covered_by_the_share_of_its_rarity() -> None:
    values = features(entry("Cookie crumbles"), make_query("Session", "cookie", cookie=2.5))
    assert isclose(values["title_covered"], 2.5 / (2.5 + DEFAULT_RARITY * RAREST))
    assert features(entry("Cookie"), make_query("Cookie", "", cookie=2.5))["title_covered"] == 1.0
    assert features(entry("Dark theme"), make_query("Cookie", "", cookie=2.5))["title_covered"] == 0.0


@pytest.mark.parametrize(
    ("ours", "theirs", "share"),
    [("Cookie lost", "cookie LOST", 1.0), ("Cookie lost", "Cookie found", 1 / 3), ("Cookie", "Theme", 0.0)],
)
def test_titles_overlap_by_the_share_of_common_words(ours: str, theirs: str, share: float) -> None:
    assert isclose(features(entry(theirs), make_query(ours, "cookie theme"))["title_overlap"], share)


TEXTS = st.one_of(st.sampled_from(["", " ", "the", "***", "\x00", "\ud800", TITLE]), st.text(max_size=30))


@given(
    titles=st.tuples(TEXTS, TEXTS),
    body=TEXTS,
    lengths=st.sampled_from([0, 1, 65_536, 10**9]),
    ages=st.tuples(st.integers(-9, 9), st.lists(st.integers(-9, 9), max_size=3).map(sorted)),
    rarest=st.sampled_from([0.0, 1e-300, 5.0]),
    is_known=st.booleans(),
)
def test_features_are_finite_even_for_empty_texts_and_simultaneous_events(
    titles: tuple[str, str],
    body: str,
    lengths: int,
    ages: tuple[int, list[int]],
    rarest: float,
    is_known: bool,
) -> None:
    rarities = dict.fromkeys(terms(f"{titles[0]} {body}"), rarest) if is_known else {}
    query = query_for(thread(500, titles[0], body), rarities, rarest)
    created, state_changes = ages
    other = entry(
        titles[1], 500 + created, length=lengths, state_changes=tuple(at(500 + days) for days in state_changes)
    )
    measured = features(other, query, best=10.0)
    assert all(isfinite(value) for value in measured.values())
    assert min(measured["age"], measured["closed"]) >= 0
    assert all(0 <= measured[name] <= 1 for name in ("text", "open", "title_covered", "title_overlap"))


def test_a_thread_opened_and_closed_at_the_time_of_the_question_has_no_age() -> None:
    values = features(entry(days=500, state_changes=(at(500),)))
    assert (values["age"], values["closed"], values["open"]) == (0.0, 0.0, 0.0)
    assert features(entry(days=500, state_changes=(at(500) + timedelta(microseconds=1),)))["open"] == 1.0


def rarity(frequency: int, threads: int) -> float:
    return log1p((threads - frequency + 0.5) / (frequency + 0.5))


@pytest.mark.parametrize(
    ("threads", "few"),
    [(3, SPECIFIC_THREADS_FLOOR), (300, SPECIFIC_THREADS_FLOOR), (20_000, 20_000 * SPECIFIC_THREADS_SHARE)],
)
def test_few_is_a_number_in_a_small_memory_and_a_share_in_a_large_one(threads: int, few: float) -> None:
    query = query_for(thread(500, "", ""), {}, rarity(0, threads))
    assert query.threads == pytest.approx(threads)
    assert query.few == pytest.approx(few)
    assert replace(query, repeats=30).few == pytest.approx(few + 30), "of what is said again nothing is common"


def test_a_word_in_more_than_a_tenth_of_all_threads_is_not_distinctive() -> None:
    for threads, held_by, expected in ((1_000, 90, True), (1_000, 110, False), (20, 11, True), (20, 14, False)):
        rarities = {"cooki": rarity(held_by, threads)}
        query = query_for(thread(500, "Cookie"), rarities, rarity(0, threads))
        assert is_distinctive("cooki", query) is expected
    assert not is_distinctive("proxi", query), "what the question does not hold"


def titles(title: str, query: RankingQuery, *words: str) -> float:
    hit = RankedHit(IndexHit(entry(title), 1.0), query, text=SharedText(frozenset(words)))
    return measure(CONFIDENCE_FEATURES, hit)["titles"]


def test_titles_are_covered_by_the_mean_of_both_shares() -> None:
    query = make_query("Cookie lost", "", cookie=3.0, lost=1.0)
    half = 3.0 / (3.0 + DEFAULT_RARITY * RAREST)
    assert titles("Cookie crumbles", query, "cooki", "other") == (0.75 + half) / 2
    assert titles("Cookie lost", query, "cooki", "lost") == 1.0
    assert titles("Cookie", make_query("", ""), "cooki") == 0.0


HITS = st.lists(
    st.builds(
        IndexHit,
        st.builds(
            entry,
            days=st.integers(0, 600),
            length=st.integers(0, 10**9),
            state_changes=st.lists(st.integers(0, 600), max_size=4, unique=True).map(
                lambda days: tuple(map(at, sorted(days)))
            ),
        ),
        st.floats(0.1, 50),
        cosine=st.floats(-1, 1),
        duplicates=st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=5,
)
ARRAY_FEATURES = [each for each in ORDER_FEATURES if each.array]


@pytest.mark.filterwarnings("error")
@given(hits=HITS)
@pytest.mark.parametrize("feature", ARRAY_FEATURES, ids=lambda each: each.name)
def test_the_array_form_of_a_feature_agrees_with_its_scalar_form(feature: Feature, hits: list[IndexHit]) -> None:
    assert feature.array
    now, closed = QUERY.at, [hit.entry.closed_since(QUERY.at) for hit in hits]
    columns = DocumentColumns(
        scores=np.array([hit.score for hit in hits]),
        cosines=np.array([hit.cosine for hit in hits]),
        created=np.array([int(hit.entry.created_at.timestamp()) for hit in hits]),
        closed=np.array([int(moment.timestamp()) if moment else 0 for moment in closed]),
        lengths=np.array([hit.entry.length for hit in hits]),
        duplicates=np.array([hit.duplicates for hit in hits]),
        now=now.timestamp(),
    )
    best = max(hit.score for hit in hits)
    expected = [feature.scalar(RankedHit(hit, QUERY, best)) for hit in hits]
    assert feature.array(columns) == pytest.approx(expected, rel=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("number", [-(1 << 63), -1, 0, (1 << 63) - 1])
@pytest.mark.parametrize("now", [-1.5e9, 1.5e9])
def test_the_array_forms_give_finite_numbers_for_any_column(number: int, now: float) -> None:
    values = np.array([number])
    columns = DocumentColumns(np.zeros(1), None, values, values, values, values, now)
    arrays = {each.name: each.array(columns) for each in ARRAY_FEATURES if each.array}
    assert {name for name, column in arrays.items() if column is None} == {"semantic"}
    assert all(np.isfinite(column).all() for column in arrays.values() if column is not None)


def test_everything_that_names_features_follows_the_table() -> None:
    """The order, the confidence, the blend of the index, the shipped weights and the documentation name its rows."""
    page = (Path(__file__).parents[2] / "docs/evaluation.md").read_text(encoding="utf-8")
    for names, features in ((ORDER_NAMES, ORDER_FEATURES), (CONFIDENCE_NAMES, CONFIDENCE_FEATURES)):
        assert names == tuple(each.name for each in features)
        assert len(set(names)) == len(names)
        assert all(f"| `{each.name}` | {each.about} |" in page for each in features)
    models = [getattr(shipped(), name) for name in MODEL_NAMES]
    assert {name for model in models for name in model.order} == set(ORDER_NAMES)
    assert {name for model in models for name in model.confidence} == set(CONFIDENCE_NAMES)
    assert [each.name for each in ORDER_FEATURES if each.source == MODEL] == ["semantic"]
    assert set(blend(dict.fromkeys(ORDER_NAMES, 1.0))) == {each.name for each in ARRAY_FEATURES}
