"""From hits to candidates: an order with a written rule, and a similarity that means the same everywhere."""

from dataclasses import replace
from math import isclose, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.domain.digest import FOREVER, Hit, IndexEntry
from bot.domain.thread import Kind, ThreadId
from bot.ranking.features import LEAST_SHARE, RankingQuery, SharedText, order_features, query_for
from bot.ranking.order import (
    CIRCUMSTANCES,
    LEAST_TERMS,
    Candidate,
    RankedCandidates,
    limit_unknown_authors,
    rank_candidates,
    similarity_key,
    sort_candidates,
)
from bot.ranking.weights import CONFIDENCE, SHOWN_FROM, RankingWeights, shipped
from bot.recall.similar import Limits, find_candidates, judge_candidates
from tests.recall.conftest import Remember
from tests.recall.samples import at, closed, similar, thread

TITLE = "Cookie lost"
ASKED: RankingQuery = query_for(thread(500, TITLE, "behind the proxy"), {}, 5.0)
BY_WORDS = shipped().by_words
PLAIN = RankingWeights({"text": 4.0, "age": -1.0, "open": 2.0}, {"titles": 1.0}, -2.0, 0.25)
NO_TEXT = SharedText()


def entry(key: ThreadId, days: float = 1, **rest: Any) -> IndexEntry:
    values: dict[str, Any] = {"title": TITLE, "author": "octocat", "state": "open", "updated_at": at(days), **rest}
    return IndexEntry(key, Kind.ISSUE, created_at=at(days), **values)


def hit(key: ThreadId, score: float = 10.0, days: float = 1, **rest: Any) -> Hit:
    return Hit(entry(key, days), score, ("one", "two", "three"), **rest)


def candidate(key: ThreadId, score: float = 1.0, found: float = 10.0, days: float = 1, sure: float = 0.0) -> Candidate:
    return Candidate(entry(key, days), hit(key, found), score, score, {}, (key,), sure)


def rank(
    *hits: Hit, model: RankingWeights = PLAIN, canonical: dict[ThreadId, IndexEntry] | None = None
) -> RankedCandidates:
    return rank_candidates(hits, canonical or {}, ASKED, model)


def ids(found: RankedCandidates) -> list[ThreadId]:
    return [c.entry.id for c in found.candidates]


# Order.


def test_ties_go_to_the_higher_score_for_terms_then_to_the_older_then_by_id() -> None:
    wanted = [
        candidate("Z-9", 2.0),
        candidate(8, found=20.0, days=3),
        candidate(7, days=1),
        candidate(100, days=2),
        candidate("B-1", days=2),
        candidate("B-2", days=2),
    ]
    assert sort_candidates(reversed(wanted)) == wanted
    assert sort_candidates(wanted) == wanted


def test_numbers_of_equal_age_are_ordered_as_numbers() -> None:
    assert [c.entry.id for c in sort_candidates([candidate(n) for n in (10, 9, 100)])] == [9, 10, 100]


def test_the_surest_is_first_whatever_the_order_was_and_ties_are_as_in_order() -> None:
    wanted = [candidate(1, 0.0, sure=0.9), candidate(2, 5.0, sure=0.5), candidate(3, 4.0, sure=0.5)]
    assert sorted((wanted[2], wanted[0], wanted[1]), key=similarity_key) == wanted


def test_candidates_are_in_the_order_of_their_scores() -> None:
    found = rank(hit(1, 5.0), hit(2, 10.0), hit(3, 10.0, days=400))
    assert ids(found) == [3, 2, 1]
    assert found.candidates == tuple(sort_candidates(found.candidates))


@given(st.permutations([hit(key, score) for key, score in ((1, 9.0), (2, 9.0), (3, 8.0), (4, 1.0), (5, 0.0))]))
def test_the_order_does_not_depend_on_that_of_the_hits(hits: list[Hit]) -> None:
    assert ids(rank(*hits, model=BY_WORDS)) == ids(rank(*sorted(hits, key=lambda one: str(one.entry.id))))


def test_no_hits_are_no_candidates() -> None:
    assert rank() == RankedCandidates((), ASKED, PLAIN)


def test_a_score_is_the_weighed_sum_of_the_features() -> None:
    (found,) = rank(hit(1, near={"trained": 0.5}), model=shipped().with_vectors).candidates
    order = shipped().with_vectors.order
    assert found.features == order_features(found.hit, ASKED, 10.0)
    weighed = {name: weight * found.features[name] for name, weight in order.items() if name in found.features}
    assert "trained" in weighed
    assert isclose(found.score, sum(weighed.values()))
    assert isclose(found.likeness, sum(value for name, value in weighed.items() if name not in CIRCUMSTANCES))


TIMES = st.tuples(st.integers(-3000, 499), st.lists(st.integers(-3000, 499), max_size=4).map(sorted))


@given(TIMES, TIMES, st.sampled_from([shipped().by_words, shipped().with_vectors, PLAIN]))
def test_when_a_candidate_was_opened_and_closed_has_no_part_in_its_likeness(
    one: tuple[int, list[int]], other: tuple[int, list[int]], model: RankingWeights
) -> None:
    first, second = (
        rank(replace(hit(1), entry=entry(1, days, flips=tuple(map(at, flips)))), model=model).candidates[0]
        for days, flips in (one, other)
    )
    assert first.likeness == second.likeness
    changed = [name for name in CIRCUMSTANCES if first.features[name] != second.features[name]]
    if not changed:
        assert first.score == second.score


def test_when_a_candidate_was_opened_and_closed_changes_its_place() -> None:
    def score(days: float, *flips: float) -> float:
        found = replace(hit(1), entry=entry(1, days, flips=tuple(map(at, flips))))
        return rank(found, model=PLAIN).candidates[0].score

    assert score(400) > score(100)
    assert score(100) > score(100, 150)


# Duplicates.


def test_a_duplicate_counts_for_its_canonical_thread() -> None:
    canonical = replace(entry(1), title="Renamed")
    (found,) = rank(hit(2), canonical={2: canonical}).candidates
    assert found.entry is canonical
    assert (found.found_as, found.folded) == (2, (2,))


def test_the_most_alike_stands_for_all_with_the_best_score_among_them() -> None:
    alike, fresh = hit(2, 10.0), hit(1, 8.0, days=499)
    alone = {c.entry.id: c for c in rank(alike, fresh).candidates}
    assert alone[2].likeness > alone[1].likeness
    assert alone[2].score < alone[1].score
    for hits in ((alike, fresh), (fresh, alike)):
        (found,) = rank(*hits, canonical={2: entry(1, 499)}).candidates
        assert (found.entry.id, found.found_as, set(found.folded)) == (1, 2, {1, 2})
        assert (found.likeness, found.score) == (alone[2].likeness, alone[1].score)
        assert found.features == alone[2].features


def test_of_equally_alike_ones_that_which_ranks_higher_stands_for_all() -> None:
    (found,) = rank(
        hit(3, days=1), hit(2, days=400), hit(4, days=1), canonical=dict.fromkeys((2, 4), entry(3))
    ).candidates
    assert found.found_as == 2
    assert set(found.folded) == {2, 3, 4}


def test_folding_takes_the_group_to_the_place_of_its_best() -> None:
    hits = (hit(1, 1.0), hit(2, 10.0), hit(3, 7.0))
    assert ids(rank(*hits)) == [2, 3, 1]
    assert ids(rank(*hits, canonical={2: entry(1)})) == [1, 3]


# Confidence.


def test_the_evidence_is_what_it_is_said_to_be() -> None:
    hits = [hit(key, 20.0 - key, share=0.3, near={"trained": 0.4, "semantic": 0.6}) for key in range(1, 5)]
    found = rank(*hits, model=shipped().with_text_model)
    text = SharedText(frozenset(), errors=3, same_error=True)
    evidence = {c.entry.id: found.judge(c, text).evidence for c in found.candidates}
    signals = {"titles": 0.0, "errors": log(4), "same_error": 1.0, "same_failure": 0.0}
    assert evidence[1] == {"share": log(0.3), "place": 1.0, "semantic": 0.6, **signals}
    assert set(evidence[1]) == set(CONFIDENCE)
    assert [evidence[key]["place"] for key in (2, 3, 4)] == [1 / 2, 1 / 3, 1 / 4]
    assert "semantic" not in rank(hit(1)).judge(rank(hit(1)).candidates[0], text).evidence


def test_hits_of_one_score_have_one_place_and_what_was_found_by_nearness_alone_has_a_share() -> None:
    found = rank(hit(1, 9.0), hit(2, 9.0), hit(3, 0.0))
    evidence = {c.entry.id: found.judge(c, NO_TEXT).evidence for c in found.candidates}
    assert [evidence[key]["place"] for key in (1, 2, 3)] == [1.0, 1.0, 1 / 3]
    assert evidence[3]["share"] == log(LEAST_SHARE)


def test_however_many_say_the_same_again_they_take_no_place() -> None:
    asked = query_for(thread(500, TITLE, "behind the proxy"), {}, 5.0)
    again = [replace(hit(key, 10.0), entry=entry(key, length=asked.length)) for key in range(2, 9)]
    other = replace(hit(1, 8.0), entry=entry(1, title="Cookies get lost"))
    found = rank_candidates([*again, other], {}, asked, PLAIN)
    evidence = {c.entry.id: found.judge(c, NO_TEXT).evidence for c in found.candidates}
    assert found.scores == (8.0,)
    assert {key: one["place"] for key, one in evidence.items()} == dict.fromkeys(range(1, 9), 1.0)


def test_how_long_ago_something_was_opened_or_closed_is_no_evidence() -> None:
    fresh, old, still_open = (
        replace(hit(1), entry=entry(1, days, flips=flips))
        for days, flips in ((490, (at(491),)), (-900, (at(-899),)), (-900, ()))
    )
    of_all = [rank(one).judge(rank(one).candidates[0], NO_TEXT).evidence for one in (fresh, old, still_open)]
    assert of_all[0] == of_all[1] == of_all[2]


def test_judging_changes_nothing_but_what_it_finds() -> None:
    found = rank(hit(1))
    one = found.judge(found.candidates[0], NO_TEXT)
    assert one.confidence == PLAIN.probability(one.evidence)
    assert one.similarity == PLAIN.similarity(one.confidence)
    assert replace(one, confidence=0.0, similarity=0.0, evidence={}) == found.candidates[0]


@given(st.lists(st.integers(0, 10**9), min_size=2, max_size=2).map(sorted), st.floats(-60, 60), st.floats(0.001, 0.999))
def test_the_surer_the_more_similar(errors: list[int], intercept: float, cut: float) -> None:
    model = replace(PLAIN, confidence={"errors": 1.0}, intercept=intercept).with_cut(cut)
    found = rank(hit(1), model=model)
    less, more = (found.judge(found.candidates[0], SharedText(errors=each)) for each in errors)
    assert 0 <= less.confidence <= more.confidence <= 1
    assert 0 <= less.similarity <= more.similarity <= 1
    for one in (less, more):
        if abs(one.confidence - cut) > 1e-9:
            assert (one.similarity >= SHOWN_FROM) == (one.confidence >= cut)


# What is shown of it.

SCARCE = ("Zephyr gadget", "Quokka marmot on the walrus.")
EVERYTHING = Limits(floor=0.0, closed=9, open=9, budget=9_000)


@pytest.mark.parametrize(("body", "is_shown"), [("marmot", True), ("", False)])
def test_what_shares_fewer_than_three_terms_is_never_shown(remember: Remember, body: str, is_shown: bool) -> None:
    other = [thread(n, f"Table {n}", f"Sorting row {n} is slow") for n in range(2, 9)]
    memory = remember(closed(1, SCARCE[0], body), thread(9, SCARCE[0], body), *other)
    asked = thread(500, *SCARCE)
    found = {c.entry.id: c for c in find_candidates(asked, memory, None, ()).candidates}
    assert {1, 9} <= set(found), "they are found"
    assert (len(found[1].hit.terms) >= LEAST_TERMS) is is_shown
    shown = [match.id for part in similar(asked, memory, None, (), EVERYTHING) for match in part]
    assert shown == ([1, 9] if is_shown else [])


def test_what_was_found_by_nearness_alone_has_no_reason_and_is_left_out(remember: Remember) -> None:
    """Nor is there one of a text that shares nothing but words which no reader would see in both."""
    memory = remember(closed(1, "Sessions expire", "Nobody can log in."), closed(2, *SCARCE))
    asked = thread(500, *SCARCE)
    near = [
        replace(hit(1), entry=entry(1, flips=(at(2),)), score=0.0, terms=(), near={"trained": 0.99}),
        replace(hit(2), entry=entry(2, flips=(at(3),)), score=1.0, terms=tuple(ASKED.title), near={"trained": 0.98}),
    ]
    found = rank_candidates(near, {}, ASKED, shipped().with_vectors)
    assert {c.entry.id for c in found.candidates} == {1, 2}
    assert judge_candidates(asked, found, memory, None) == []


def test_what_was_found_mostly_by_nearness_has_a_reason_in_plain_words(remember: Remember) -> None:
    memory = remember(closed(1, "Walrus", "A marmot, a quokka and many other words."))
    asked = thread(500, *SCARCE)
    shared = find_candidates(asked, memory, None, ()).candidates[0].hit.terms
    near = Hit(entry(1, flips=(at(2),)), 0.1, shared, near={"trained": 0.99})
    rare = query_for(asked, dict.fromkeys(shared, 5.0), 5.0)
    (found,) = judge_candidates(asked, rank_candidates([near], {}, rare, shipped().with_vectors), memory, None)
    assert set(found.why[0].removeprefix("both speak of ").lower().split(", ")) == {"quokka", "marmot", "walrus"}


def test_of_each_unknown_author_the_first_few_are_let_in_and_of_all_others_everything() -> None:
    strangers = [entry(key, author=name, unvouched_until=FOREVER) for key, name in enumerate(("Mona", "mona", "mona"))]
    other = entry(3, author="hubot", unvouched_until=FOREVER)
    vouched = [entry(4 + key, author="mona", unvouched_until=until) for key, until in enumerate((None, at(4), at(5)))]
    is_let_in = limit_unknown_authors(at(5), 2)
    assert [one.id for one in (*strangers, other, *vouched) if is_let_in(one)] == [0, 1, 3, 4, 5, 6]
