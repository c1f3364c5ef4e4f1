"""From a replay to a cut of a repository's own: by share, by precision, and when the shipped one is kept."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import Kind
from bot.evaluation.backtest import ReplayedHits, ReplayOptions, newest_issues, replay
from bot.evaluation.calibrate import (
    LEAST_SPOKEN,
    LEAST_THREADS,
    cut_by_precision,
    cut_by_share,
    refit_confidence,
    rescore,
    vector_fields_of,
)
from bot.evaluation.labels import LinkLabels
from bot.evaluation.replay import ReplayHistory
from bot.evaluation.results import Replayed, ShownThread
from bot.ranking.order import Candidate
from bot.ranking.weights import SHOWN_FROM, RankingModels, RankingWeights, shipped
from bot.settings.schema import Settings
from tests.evaluation.samples import replayed, shown
from tests.evaluation.timelines import generated
from tests.recall.samples import at

MODEL = RankingWeights({}, {"likeness": 1.0, "lead": 0.0}, 0.0, 0.3)
SURE = st.floats(0.002, 0.998).map(lambda one: round(one, 9))
"""Confidences; two of them differ by more than what a cut is off through its logarithm and back."""


def sure(key: int, confidence: float, related: bool = False) -> ShownThread:
    return shown(key, confidence, related)


def told(replays: Sequence[Replayed], model: RankingWeights) -> int:
    """How many threads have a hit to show under that model."""
    return sum(any(model.similarity(hit.confidence) >= SHOWN_FROM for hit in one.hits) for one in replays)


def seen(*hits: tuple[float, bool], near: float | None = None) -> ReplayedHits:
    """A replayed thread with hits of such a likeness, related or not."""
    found, candidates = [], []
    for key, (likeness, related) in enumerate(hits, 1):
        entry = IndexEntry(key, Kind.ISSUE, "Cookie lost", "octocat", "open", at(key), at(key))
        arms = {} if near is None else {"trained": near}
        evidence = {"likeness": likeness, "lead": 0.0}
        candidates.append(Candidate(entry, Hit(entry, 1.0, near=arms), 0, likeness, {}, (key,), evidence=evidence))
        found.append(sure(key, MODEL.probability(evidence), related))
    return ReplayedHits(replayed(500, *found), tuple(candidates))


# By share.


@pytest.mark.slow
@settings(max_examples=30)
@given(st.lists(st.none() | SURE, min_size=LEAST_THREADS, max_size=130, unique_by=lambda one: one or Random()), SURE)
def test_the_cut_lets_the_wanted_share_through_within_one_thread(best: list[float | None], share: float) -> None:
    replays = [replayed(500 + key, *([sure(1, one / 2), sure(2, one)] if one else [])) for key, one in enumerate(best)]
    found = cut_by_share(replays, MODEL, share)
    wanted = share * len(replays)
    if found.is_own:
        assert abs(told(replays, found.model) - wanted) <= 1
    else:
        assert sum(one is not None for one in best) < wanted + 1
        assert found.model == MODEL


@pytest.mark.parametrize(("share", "count"), [(0.0, 1), (0.125, 25), (0.5, 100), (1.0, 200)])
def test_shares_from_none_to_all(share: float, count: int) -> None:
    replays = [replayed(500 + key, sure(1, (key + 1) / 250)) for key in range(200)]
    found = cut_by_share(replays, MODEL, share)
    assert found.is_own
    assert told(replays, found.model) == count
    assert replace(found.model, cut=MODEL.cut) == MODEL
    assert found.reason == f"{share:.1%} of 200 replayed issues have a hit"


def test_of_too_few_issues_a_share_says_nothing() -> None:
    replays = [replayed(500 + key, sure(1, 0.5)) for key in range(LEAST_THREADS)]
    assert cut_by_share(replays, MODEL, 0.1).is_own
    for few in (replays[1:], []):
        found = cut_by_share(few, MODEL, 0.1)
        assert (found.model, found.is_own) == (MODEL, False)
        assert f"only {len(few)} issues" in found.reason


def test_where_most_find_nothing_the_shipped_cut_is_kept() -> None:
    replays = [replayed(500 + key, *([sure(1, 0.5)] if key < 9 else [])) for key in range(LEAST_THREADS)]
    found = cut_by_share(replays, MODEL, 0.1)
    assert (found.model, found.is_own) == (MODEL, False)
    assert "fewer than 10%" in found.reason


# By precision.


def commented(good: int, bad: int) -> list[Replayed]:
    """The related ones are the surest."""
    right = [replayed(500 + key, sure(1, 0.9 - key / 1000, True)) for key in range(good)]
    return right + [replayed(900 + key, sure(1, 0.5 - key / 1000)) for key in range(bad)]


def test_the_cut_is_the_lowest_of_the_wanted_precision() -> None:
    replays = commented(30, 300)
    found = cut_by_precision(replays, MODEL, 0.5)
    assert (told(replays, found.model), found.is_own) == (60, True)
    assert found.reason == "60 comments of 330 issues at 50%"
    assert replace(found.model, cut=MODEL.cut) == MODEL


def test_a_lower_cut_shows_more_of_a_comment_that_was_there_already() -> None:
    """What is related may be its second hit."""
    replays = [replayed(500 + key, sure(1, 0.9 - key / 1000), sure(2, 0.4, True)) for key in range(LEAST_SPOKEN)]
    found = cut_by_precision(replays, MODEL, 1.0)
    assert found.is_own
    assert found.model.cut == 0.4


def test_with_too_few_comments_the_shipped_cut_is_kept() -> None:
    assert cut_by_precision(commented(LEAST_SPOKEN, 0), MODEL, 1.0).is_own
    for replays in (commented(LEAST_SPOKEN - 1, 0), commented(5, 300), []):
        found = cut_by_precision(replays, MODEL, 0.5)
        assert (found.model, found.is_own) == (MODEL, False)
        assert found.reason.startswith(f"the cut is kept as it is: no {LEAST_SPOKEN} comments")


HITS = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.4, 0.6, 0.8]), st.booleans()), max_size=3)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(HITS, min_size=15, max_size=50), st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_a_cut_by_precision_is_the_lowest_that_keeps_it(rows: list[list[tuple[float, bool]]], wanted: float) -> None:
    replays = [replayed(500 + n, *(sure(k, *hit) for k, hit in enumerate(row))) for n, row in enumerate(rows)]

    def comments(cut: float) -> tuple[int, int]:
        written = [hits for one in replays if (hits := [hit for hit in one.hits if hit.confidence >= cut])]
        return len(written), sum(any(hit.related for hit in hits) for hits in written)

    by_cut = [comments(cut) for cut in (0.1, 0.2, 0.4, 0.6, 0.8)]
    fit = [(count, good) for count, good in by_cut if count >= LEAST_SPOKEN and good / count >= wanted]
    found = cut_by_precision(replays, MODEL, wanted)
    assert found.is_own is bool(fit)
    if fit:
        assert comments(found.model.cut) == fit[0]


# Another model.


@cache
def history() -> tuple[tuple[ReplayedHits, ...], ReplayHistory, LinkLabels]:
    read = ReplayHistory.read([life.thread() for life in generated(90, Random(3))])
    links = LinkLabels.read(read.threads)
    return tuple(again(read, links, shipped().by_words)), read, links


def again(read: ReplayHistory, links: LinkLabels, model: RankingWeights) -> list[ReplayedHits]:
    watch = ReplayOptions(RankingModels(model, model, model), Settings(), trains=False)
    return list(replay(read, links, newest_issues(read, 40), watch))


@pytest.mark.slow
@pytest.mark.parametrize(("cut", "more"), [(0.03, 0.0), (0.6, 0.0), (0.2, 1.5)])
def test_another_cut_gives_what_a_replay_with_it_gives(cut: float, more: float) -> None:
    first, read, links = history()
    base = shipped().by_words
    model = replace(base.with_cut(cut), intercept=base.intercept + more)
    for one, other in zip(first, again(read, links, model), strict=True):
        changed = rescore(one, model, SHOWN_FROM)
        assert changed.replayed.hits == other.replayed.hits
        assert changed.replayed.rank == other.replayed.rank


def test_other_confidences_are_those_that_a_replay_gives() -> None:
    """Of what both saw: which are the surest may be others, and only these are kept."""
    first, read, links = history()
    base = shipped().by_words
    model = replace(base, confidence={**base.confidence, "place": 0.0, "errors": 1.0})
    agreed = 0
    for one, other in zip(first, again(read, links, model), strict=True):
        expected = {hit.id: hit for hit in other.replayed.hits}
        for hit in rescore(one, model, SHOWN_FROM).replayed.hits:
            if hit.id in expected:
                agreed += 1
                assert hit == expected[hit.id]
    assert agreed > 30


def test_the_same_model_changes_nothing() -> None:
    first, _, _ = history()
    assert [rescore(one, shipped().by_words, SHOWN_FROM) for one in first] == list(first)


def test_nobody_is_shown_below_the_threshold() -> None:
    one = seen((2.0, True), (0.0, False), (-3.0, False))
    flags = [[hit.is_shown for hit in rescore(one, MODEL, threshold).replayed.hits] for threshold in (0.0, 0.65, 1.0)]
    assert flags == [[True] * 3, [True, True, False], [False] * 3]


@pytest.mark.parametrize(("near", "expected"), [(None, set()), (0.0, {"trained"}), (0.7, {"trained"})])
def test_whichever_vectors_were_asked_are_arms(near: float | None, expected: set[str]) -> None:
    assert vector_fields_of([seen(), seen((1.0, True), near=near)]) == expected
    assert vector_fields_of([]) == set()


# Opinions.


def linked_or_not(count: int) -> list[ReplayedHits]:
    """As many threads with a related hit as without, the related ones more alike; each has one hit, with the id 1."""
    chance = Random(7)
    made = [seen((chance.gauss(1.0 if key % 2 else -1.0, 1), bool(key % 2))) for key in range(count)]
    return [replace(one, replayed=replace(one.replayed, id=1_000 + key)) for key, one in enumerate(made)]


def test_what_people_link_teaches_no_confidence() -> None:
    cases = linked_or_not(600)
    assert refit_confidence(cases, MODEL) is MODEL
    assert refit_confidence(cases, MODEL, {(5, 1): True, (1_000, 2): False}) is MODEL, "nobody saw these hits"


def test_a_word_against_hits_makes_their_like_less_sure_and_a_word_for_them_surer() -> None:
    cases = linked_or_not(200)
    sure_ones = sorted(cases, key=lambda one: one.candidates[0].evidence["likeness"])[-20:]
    keys = [(one.replayed.id, 1) for one in sure_ones]
    alike = sure_ones[0].candidates[0].evidence
    against, in_favour = (refit_confidence(cases, MODEL, dict.fromkeys(keys, word)) for word in (False, True))
    assert against.probability(alike) < MODEL.probability(alike) - 0.05
    assert in_favour.probability(alike) > MODEL.probability(alike)
    assert (against.order, against.cut, set(against.confidence)) == (MODEL.order, MODEL.cut, set(MODEL.confidence))


def test_one_word_moves_little() -> None:
    cases = linked_or_not(2)
    told = refit_confidence(cases, MODEL, {(cases[0].replayed.id, 1): False})
    for one in cases:
        evidence = one.candidates[0].evidence
        assert told.probability(evidence) == pytest.approx(MODEL.probability(evidence), abs=0.05)
