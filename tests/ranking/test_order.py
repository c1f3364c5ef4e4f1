"""From hits to candidates: an order with a written rule, and a similarity that means the same everywhere."""

from dataclasses import replace
from math import isclose, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.digest import FOREVER, IndexEntry, IndexHit
from bot.domain.thread import Kind, ThreadId
from bot.ranking.features import MIN_SHARE, RankingQuery, SharedText, order_features, query_for
from bot.ranking.order import (
    CIRCUMSTANCE_FEATURES,
    MIN_SHARED_TERMS,
    Candidate,
    RankedCandidates,
    limit_unknown_authors,
    rank_candidates,
    similarity_key,
    sort_candidates,
)
from bot.ranking.weights import CONFIDENCE_NAMES, CUT_SIMILARITY, RankingModels, RankingWeights, shipped
from bot.recall.similar import Limits, find_candidates, judge_candidates
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, similar, thread

TITLE = "Cookie lost"
QUERY: RankingQuery = query_for(thread(500, TITLE, "behind the proxy"), {}, 5.0)
BY_WORDS = shipped().by_words
PLAIN = RankingWeights({"text": 4.0, "age": -1.0, "open": 2.0}, {"titles": 1.0}, -2.0, 0.25)
NO_TEXT = SharedText()


def entry(key: ThreadId, days: float = 1, **rest: Any) -> IndexEntry:
    values: dict[str, Any] = {"title": TITLE, "author": "octocat", "state": "open", "updated_at": at(days), **rest}
    return IndexEntry(key, Kind.ISSUE, created_at=at(days), **values)


def hit(key: ThreadId, score: float = 10.0, days: float = 1, **rest: Any) -> IndexHit:
    return IndexHit(entry(key, days), score, ("one", "two", "three"), **rest)


def candidate(
    key: ThreadId, score: float = 1.0, hit_score: float = 10.0, days: float = 1, sure: float = 0.0
) -> Candidate:
    return Candidate(entry(key, days), hit(key, hit_score), score, score, {}, (key,), sure)


def rank(
    *hits: IndexHit, model: RankingWeights = PLAIN, canonical: dict[ThreadId, IndexEntry] | None = None
) -> RankedCandidates:
    return rank_candidates(hits, canonical or {}, QUERY, RankingModels(model, model))


def ids(ranked: RankedCandidates) -> list[ThreadId]:
    return [c.entry.id for c in ranked.candidates]


# Order.


def test_ties_go_to_the_higher_score_for_terms_then_to_the_older_then_by_id() -> None:
    expected = [
        candidate("Z-9", 2.0),
        candidate(8, hit_score=20.0, days=3),
        candidate(7, days=1),
        candidate(100, days=2),
        candidate("B-1", days=2),
        candidate("B-2", days=2),
    ]
    assert sort_candidates(reversed(expected)) == expected
    assert sort_candidates(expected) == expected


def test_numbers_of_equal_age_are_ordered_as_numbers() -> None:
    assert [c.entry.id for c in sort_candidates([candidate(n) for n in (10, 9, 100)])] == [9, 10, 100]


def test_the_most_confident_is_first_and_ties_keep_the_ranking_order() -> None:
    expected = [candidate(1, 0.0, sure=0.9), candidate(2, 5.0, sure=0.5), candidate(3, 4.0, sure=0.5)]
    assert sorted((expected[2], expected[0], expected[1]), key=similarity_key) == expected


def test_candidates_are_in_the_order_of_their_scores() -> None:
    ranked = rank(hit(1, 5.0), hit(2, 10.0), hit(3, 10.0, days=400))
    assert ids(ranked) == [3, 2, 1]
    assert ranked.candidates == tuple(sort_candidates(ranked.candidates))


@given(st.permutations([hit(key, score) for key, score in ((1, 9.0), (2, 9.0), (3, 8.0), (4, 1.0), (5, 0.0))]))
def test_the_order_does_not_depend_on_that_of_the_hits(hits: list[IndexHit]) -> None:
    assert ids(rank(*hits, model=BY_WORDS)) == ids(rank(*sorted(hits, key=lambda each: str(each.entry.id))))


def test_no_hits_give_no_candidates() -> None:
    assert rank() == RankedCandidates((), QUERY, RankingModels(PLAIN, PLAIN))


def test_a_score_is_the_weighted_sum_of_the_features() -> None:
    (scored,) = rank(hit(1, cosine=0.5), model=shipped().with_text_model).candidates
    order = shipped().with_text_model.order
    assert scored.features == order_features(scored.hit, QUERY, 10.0)
    weighed = {name: weight * scored.features[name] for name, weight in order.items() if name in scored.features}
    assert "semantic" in weighed
    assert isclose(scored.score, sum(weighed.values()))
    assert isclose(scored.likeness, sum(value for name, value in weighed.items() if name not in CIRCUMSTANCE_FEATURES))


TIMES = st.tuples(st.integers(-3000, 499), st.lists(st.integers(-3000, 499), max_size=4).map(sorted))


@given(TIMES, TIMES, st.sampled_from([shipped().by_words, shipped().with_text_model, PLAIN]))
def test_likeness_does_not_depend_on_when_a_candidate_was_opened_and_closed(
    one: tuple[int, list[int]], other: tuple[int, list[int]], model: RankingWeights
) -> None:
    first, second = (
        rank(
            replace(hit(1), entry=entry(1, days, state_changes=tuple(map(at, state_changes)))), model=model
        ).candidates[0]
        for days, state_changes in (one, other)
    )
    assert first.likeness == second.likeness
    changed = [name for name in CIRCUMSTANCE_FEATURES if first.features[name] != second.features[name]]
    if not changed:
        assert first.score == second.score


def test_the_score_depends_on_when_a_candidate_was_opened_and_closed() -> None:
    def score(days: float, *state_changes: float) -> float:
        changed = replace(hit(1), entry=entry(1, days, state_changes=tuple(map(at, state_changes))))
        return rank(changed, model=PLAIN).candidates[0].score

    assert score(400) > score(100)
    assert score(100) > score(100, 150)


# Duplicates.


def test_a_duplicate_counts_for_its_canonical_thread() -> None:
    canonical = replace(entry(1), title="Renamed")
    (group,) = rank(hit(2), canonical={2: canonical}).candidates
    assert group.entry is canonical
    assert (group.found_as, group.folded) == (2, (2,))


def test_the_most_similar_duplicate_represents_all_with_the_best_score_among_them() -> None:
    alike, fresh = hit(2, 10.0), hit(1, 8.0, days=499)
    alone = {c.entry.id: c for c in rank(alike, fresh).candidates}
    assert alone[2].likeness > alone[1].likeness
    assert alone[2].score < alone[1].score
    for hits in ((alike, fresh), (fresh, alike)):
        (group,) = rank(*hits, canonical={2: entry(1, 499)}).candidates
        assert (group.entry.id, group.found_as, set(group.folded)) == (1, 2, {1, 2})
        assert (group.likeness, group.score) == (alone[2].likeness, alone[1].score)
        assert group.features == alone[2].features


def test_among_equally_similar_duplicates_the_higher_ranked_represents_all() -> None:
    (group,) = rank(
        hit(3, days=1), hit(2, days=400), hit(4, days=1), canonical=dict.fromkeys((2, 4), entry(3))
    ).candidates
    assert group.found_as == 2
    assert set(group.folded) == {2, 3, 4}


def test_folding_moves_the_group_to_the_place_of_its_best() -> None:
    hits = (hit(1, 1.0), hit(2, 10.0), hit(3, 7.0))
    assert ids(rank(*hits)) == [2, 3, 1]
    assert ids(rank(*hits, canonical={2: entry(1)})) == [1, 3]


# Confidence.


def test_the_evidence_holds_every_confidence_feature() -> None:
    hits = [hit(key, 20.0 - key, share=0.3, cosine=0.4) for key in range(1, 5)]
    ranked = rank(*hits, model=shipped().with_text_model)
    text = SharedText(frozenset(), errors=3, same_error=True)
    evidence = {c.entry.id: ranked.judge(c, text).evidence for c in ranked.candidates}
    signals = {"titles": 0.0, "errors": log(4), "same_error": 1.0, "same_failure": 0.0, "other_error": 0.0}
    assert evidence[1] == {"share": log(0.3), "place": 1.0, "semantic": 0.4, **signals}
    assert set(evidence[1]) == set(CONFIDENCE_NAMES)
    assert [evidence[key]["place"] for key in (2, 3, 4)] == [1 / 2, 1 / 3, 1 / 4]
    assert "semantic" not in rank(hit(1)).judge(rank(hit(1)).candidates[0], text).evidence


def test_hits_of_equal_score_share_a_place_and_hits_by_vectors_alone_have_a_share() -> None:
    ranked = rank(hit(1, 9.0), hit(2, 9.0), hit(3, 0.0))
    evidence = {c.entry.id: ranked.judge(c, NO_TEXT).evidence for c in ranked.candidates}
    assert [evidence[key]["place"] for key in (1, 2, 3)] == [1.0, 1.0, 1 / 3]
    assert evidence[3]["share"] == log(MIN_SHARE)


def test_repeats_of_the_question_take_no_place_however_many_there_are() -> None:
    query = query_for(thread(500, TITLE, "behind the proxy"), {}, 5.0)
    repeats = [replace(hit(key, 10.0), entry=entry(key, length=query.length)) for key in range(2, 9)]
    other = replace(hit(1, 8.0), entry=entry(1, title="Cookies get lost"))
    ranked = rank_candidates([*repeats, other], {}, query, RankingModels(PLAIN, PLAIN))
    evidence = {c.entry.id: ranked.judge(c, NO_TEXT).evidence for c in ranked.candidates}
    assert ranked.scores == (8.0,)
    assert {key: each["place"] for key, each in evidence.items()} == dict.fromkeys(range(1, 9), 1.0)


def test_the_age_of_an_opening_or_closing_is_no_evidence() -> None:
    fresh, old, still_open = (
        replace(hit(1), entry=entry(1, days, state_changes=state_changes))
        for days, state_changes in ((490, (at(491),)), (-900, (at(-899),)), (-900, ()))
    )
    evidence = [rank(each).judge(rank(each).candidates[0], NO_TEXT).evidence for each in (fresh, old, still_open)]
    assert evidence[0] == evidence[1] == evidence[2]


def test_judging_changes_only_confidence_similarity_and_evidence() -> None:
    ranked = rank(hit(1))
    judged = ranked.judge(ranked.candidates[0], NO_TEXT)
    assert judged.confidence == PLAIN.probability(judged.evidence)
    assert judged.similarity == PLAIN.similarity(judged.confidence)
    assert replace(judged, confidence=0.0, similarity=0.0, evidence={}) == ranked.candidates[0]


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=2).map(sorted), st.floats(-60, 60), st.floats(0.001, 0.999))
def test_higher_confidence_means_higher_similarity(errors: list[int], intercept: float, cut: float) -> None:
    model = replace(PLAIN, confidence={"errors": 1.0}, intercept=intercept).with_cut(cut)
    ranked = rank(hit(1), model=model)
    less, more = (ranked.judge(ranked.candidates[0], SharedText(errors=each)) for each in errors)
    assert 0 <= less.confidence <= more.confidence <= 1
    assert 0 <= less.similarity <= more.similarity <= 1
    for judged in (less, more):
        if abs(judged.confidence - cut) > 1e-9:
            assert (judged.similarity >= CUT_SIMILARITY) == (judged.confidence >= cut)


# What is shown.

SCARCE = ("Zephyr gadget", "Quokka marmot on the walrus.")
EVERYTHING = Limits(floor=0.0, closed=9, open=9, budget=9_000)


@pytest.mark.parametrize(("body", "is_shown"), [("marmot", True), ("", False)])
def test_a_thread_that_shares_fewer_than_three_terms_is_never_shown(
    remember: Remember, body: str, is_shown: bool
) -> None:
    other = [thread(n, f"Table {n}", f"Sorting row {n} is slow") for n in range(2, 9)]
    title = f"{SCARCE[0]} elsewhere"
    memory = remember(closed(1, title, body), thread(9, title, body), *other)
    question = thread(500, *SCARCE)
    candidates = {c.entry.id: c for c in find_candidates(question, memory, None, ()).candidates}
    assert {1, 9} <= set(candidates), "they are found"
    assert (len(candidates[1].hit.terms) >= MIN_SHARED_TERMS) is is_shown
    shown = [match.id for part in similar(question, memory, None, (), EVERYTHING) for match in part]
    assert shown == ([1, 9] if is_shown else [])


def test_a_hit_by_vectors_alone_has_no_reason_and_is_left_out(remember: Remember) -> None:
    """A text whose only shared words no reader would see in both has no reason either."""
    memory = remember(closed(1, "Sessions expire", "Nobody can log in."), closed(2, *SCARCE))
    question = thread(500, *SCARCE)
    near = [
        replace(hit(1), entry=entry(1, state_changes=(at(2),)), score=0.0, terms=(), cosine=0.99),
        replace(hit(2), entry=entry(2, state_changes=(at(3),)), score=1.0, terms=tuple(QUERY.title), cosine=0.98),
    ]
    ranked = rank_candidates(near, {}, QUERY, shipped(), has_vectors=True)
    assert {c.entry.id for c in ranked.candidates} == {1, 2}
    assert judge_candidates(question, ranked, memory, None) == []


def test_a_hit_mostly_by_vectors_has_a_reason_in_plain_words(remember: Remember) -> None:
    memory = remember(closed(1, "Walrus", "A marmot, a quokka and many other words."))
    question = thread(500, *SCARCE)
    shared = find_candidates(question, memory, None, ()).candidates[0].hit.terms
    near = IndexHit(entry(1, state_changes=(at(2),)), 0.1, shared, cosine=0.99)
    rare = query_for(question, dict.fromkeys(shared, 5.0), 5.0)
    ranked = rank_candidates([near], {}, rare, shipped(), has_vectors=True)
    (judged,) = judge_candidates(question, ranked, memory, None)
    assert set(judged.why[0].removeprefix("words in common: ").lower().split(", ")) == {"quokka", "marmot", "walrus"}


def test_only_the_first_few_threads_of_each_unknown_author_are_let_in() -> None:
    strangers = [entry(key, author=name, unvouched_until=FOREVER) for key, name in enumerate(("Mona", "mona", "mona"))]
    other = entry(3, author="hubot", unvouched_until=FOREVER)
    vouched = [entry(4 + key, author="mona", unvouched_until=until) for key, until in enumerate((None, at(4), at(5)))]
    is_let_in = limit_unknown_authors(at(5), 2)
    assert [each.id for each in (*strangers, other, *vouched) if is_let_in(each)] == [0, 1, 3, 4, 5, 6]
