"""A repository's own cut, computed from a replay: by share, by precision, and when the shipped one is kept."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from math import log
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.post import Vote
from bot.domain.thread import Kind
from bot.evaluation.backtest import ReplayedHits, ReplayOptions, newest_issues, replay
from bot.evaluation.calibrate import (
    MIN_COMMENTS,
    MIN_THREADS,
    cut_by_precision,
    cut_by_share,
    has_vectors,
    refit_confidence,
    rescore,
)
from bot.evaluation.labels import Feedback, LinkLabels
from bot.evaluation.replay import ReplayHistory
from bot.evaluation.results import Replayed, ShownThread
from bot.ranking.order import Candidate
from bot.ranking.weights import CUT_SIMILARITY, RankingModels, RankingWeights, shipped
from bot.settings.schema import Settings
from tests.evaluation.samples import replayed, shown
from tests.evaluation.timelines import generated
from tests.recall.samples import at

MODEL = RankingWeights({}, {"likeness": 1.0, "lead": 0.0}, 0.0, 0.3)
CONFIDENCES = st.floats(0.002, 0.998).map(lambda value: round(value, 9))
"""Confidences; two of them differ by more than a cut's rounding error through its logarithm and back."""


def make_hit(key: int, confidence: float, related: bool = False) -> ShownThread:
    return shown(key, confidence, related)


def count_shown(replays: Sequence[Replayed], model: RankingWeights) -> int:
    """How many threads have a hit to show under this model."""
    return sum(any(model.similarity(hit.confidence) >= CUT_SIMILARITY for hit in each.hits) for each in replays)


def replayed_hits(*hits: tuple[float, bool], cosine: float | None = None) -> ReplayedHits:
    """A replayed thread with hits of the given likeness, related or not."""
    shown_hits, candidates = [], []
    for key, (likeness, related) in enumerate(hits, 1):
        entry = IndexEntry(key, Kind.ISSUE, "Cookie lost", "octocat", "open", at(key), at(key))
        evidence = {"likeness": likeness, "lead": 0.0} | ({} if cosine is None else {"semantic": cosine})
        candidates.append(
            Candidate(entry, IndexHit(entry, 1.0, cosine=cosine), 0, likeness, {}, (key,), evidence=evidence)
        )
        shown_hits.append(make_hit(key, MODEL.probability(evidence), related))
    return ReplayedHits(replayed(500, *shown_hits), tuple(candidates))


# By share.


@pytest.mark.slow
@settings(max_examples=30)
@given(
    st.lists(
        st.none() | CONFIDENCES,
        min_size=MIN_THREADS,
        max_size=130,
        unique_by=lambda confidence: confidence or Random(),
    ),
    CONFIDENCES,
)
def test_the_cut_lets_the_wanted_share_through_within_one_thread(best: list[float | None], share: float) -> None:
    replays = [
        replayed(500 + key, *([make_hit(1, confidence / 2), make_hit(2, confidence)] if confidence else []))
        for key, confidence in enumerate(best)
    ]
    result = cut_by_share(replays, MODEL, share)
    expected = share * len(replays)
    if result.is_own:
        assert abs(count_shown(replays, result.model) - expected) <= 1
    else:
        assert sum(confidence is not None for confidence in best) < expected + 1
        assert result.model == MODEL


def test_cut_by_share_reaches_every_share_from_none_to_all() -> None:
    for share, count in [(0.0, 1), (0.125, 25), (0.5, 100), (1.0, 200)]:
        replays = [replayed(500 + key, make_hit(1, (key + 1) / 250)) for key in range(200)]
        result = cut_by_share(replays, MODEL, share)
        assert result.is_own, share
        assert count_shown(replays, result.model) == count, share
        assert replace(result.model, cut=MODEL.cut) == MODEL, share
        assert result.reason == f"{share:.1%} of 200 replayed issues have a hit", share


def test_too_few_issues_give_no_cut_by_share() -> None:
    replays = [replayed(500 + key, make_hit(1, 0.5)) for key in range(MIN_THREADS)]
    assert cut_by_share(replays, MODEL, 0.1).is_own
    for few in (replays[1:], []):
        result = cut_by_share(few, MODEL, 0.1)
        assert (result.model, result.is_own) == (MODEL, False)
        assert f"only {len(few)} issues" in result.reason


def test_the_shipped_cut_is_kept_when_most_issues_have_no_hit() -> None:
    replays = [replayed(500 + key, *([make_hit(1, 0.5)] if key < 9 else [])) for key in range(MIN_THREADS)]
    result = cut_by_share(replays, MODEL, 0.1)
    assert (result.model, result.is_own) == (MODEL, False)
    assert "fewer than 10%" in result.reason


# By precision.


def commented(good: int, bad: int) -> list[Replayed]:
    """Threads with a related hit (`good`) and without (`bad`); the related ones are the surest."""
    right = [replayed(500 + key, make_hit(1, 0.9 - key / 1000, True)) for key in range(good)]
    return right + [replayed(900 + key, make_hit(1, 0.5 - key / 1000)) for key in range(bad)]


def test_the_cut_is_the_lowest_with_the_wanted_precision() -> None:
    replays = commented(30, 300)
    result = cut_by_precision(replays, MODEL, 0.5)
    assert (count_shown(replays, result.model), result.is_own) == (60, True)
    assert result.reason == "60 comments of 330 issues at 50%"
    assert replace(result.model, cut=MODEL.cut) == MODEL


def test_a_lower_cut_can_add_a_related_hit_to_a_comment() -> None:
    """The related hit may be the comment's second one."""
    replays = [
        replayed(500 + key, make_hit(1, 0.9 - key / 1000), make_hit(2, 0.4, True)) for key in range(MIN_COMMENTS)
    ]
    result = cut_by_precision(replays, MODEL, 1.0)
    assert result.is_own
    assert result.model.cut == 0.4


def test_the_shipped_cut_is_kept_when_there_are_too_few_comments() -> None:
    assert cut_by_precision(commented(MIN_COMMENTS, 0), MODEL, 1.0).is_own
    for replays in (commented(MIN_COMMENTS - 1, 0), commented(5, 300), []):
        result = cut_by_precision(replays, MODEL, 0.5)
        assert (result.model, result.is_own) == (MODEL, False)
        assert result.reason.startswith(f"the cut is kept as it is: no {MIN_COMMENTS} comments")


HITS = st.lists(st.tuples(st.sampled_from([0.1, 0.2, 0.4, 0.6, 0.8]), st.booleans()), max_size=3)


@pytest.mark.slow
@settings(max_examples=60)
@given(st.lists(HITS, min_size=15, max_size=50), st.sampled_from([0.1, 0.3, 0.5, 0.9]))
def test_a_cut_by_precision_is_the_lowest_that_reaches_it(
    rows: list[list[tuple[float, bool]]], precision: float
) -> None:
    replays = [replayed(500 + n, *(make_hit(k, *hit) for k, hit in enumerate(row))) for n, row in enumerate(rows)]

    def comments(cut: float) -> tuple[int, int]:
        written = [hits for each in replays if (hits := [hit for hit in each.hits if hit.confidence >= cut])]
        return len(written), sum(any(hit.related for hit in hits) for hits in written)

    by_cut = [comments(cut) for cut in (0.1, 0.2, 0.4, 0.6, 0.8)]
    precise_enough = [(count, good) for count, good in by_cut if count >= MIN_COMMENTS and good / count >= precision]
    result = cut_by_precision(replays, MODEL, precision)
    assert result.is_own is bool(precise_enough)
    if precise_enough:
        assert comments(result.model.cut) == precise_enough[0]


# Rescoring with another model.


@cache
def history() -> tuple[tuple[ReplayedHits, ...], ReplayHistory, LinkLabels]:
    read = ReplayHistory.read([life.thread() for life in generated(90, Random(3))])
    links = LinkLabels.read(read.threads)
    return tuple(replay_newest(read, links, shipped().by_words)), read, links


def replay_newest(past: ReplayHistory, links: LinkLabels, model: RankingWeights) -> list[ReplayedHits]:
    options = ReplayOptions(RankingModels(model, model), Settings())
    return list(replay(past, links, newest_issues(past, 40), options))


@pytest.mark.slow
def test_rescoring_with_another_cut_equals_a_replay_with_it() -> None:
    for cut, more in [(0.03, 0.0), (0.6, 0.0), (0.2, 1.5)]:
        first, past, links = history()
        base = shipped().by_words
        model = replace(base.with_cut(cut), intercept=base.intercept + more)
        for original, other in zip(first, replay_newest(past, links, model), strict=True):
            changed = rescore(original, RankingModels(model, model), CUT_SIMILARITY)
            assert changed.replayed.hits == other.replayed.hits, cut
            assert changed.replayed.rank == other.replayed.rank, cut


@pytest.mark.slow
def test_rescored_confidences_equal_those_of_a_replay() -> None:
    """Only for hits that both have: each keeps the surest, and these may differ."""
    first, past, links = history()
    base = shipped().by_words
    model = replace(base, confidence={**base.confidence, "place": 0.0, "errors": 1.0})
    compared = 0
    for original, other in zip(first, replay_newest(past, links, model), strict=True):
        expected = {hit.id: hit for hit in other.replayed.hits}
        for hit in rescore(original, RankingModels(model, model), CUT_SIMILARITY).replayed.hits:
            if hit.id in expected:
                compared += 1
                assert hit == expected[hit.id]
    assert compared > 30


def test_rescoring_with_the_same_model_changes_nothing() -> None:
    first, _, _ = history()
    assert [rescore(case, shipped(), CUT_SIMILARITY) for case in first] == list(first)


def test_no_hit_is_shown_below_the_threshold() -> None:
    case = replayed_hits((2.0, True), (0.0, False), (-3.0, False))
    flags = [
        [hit.is_shown for hit in rescore(case, RankingModels(MODEL, MODEL), threshold).replayed.hits]
        for threshold in (0.0, 0.65, 1.0)
    ]
    assert flags == [[True] * 3, [True, True, False], [False] * 3]


def test_a_replay_has_vectors_if_most_hits_were_judged_by_them() -> None:
    by_words, by_model = replayed_hits((1.0, True)), replayed_hits((1.0, True), cosine=0.7)
    assert [has_vectors(seen) for seen in ([], [by_words], [by_words, by_model])] == [False] * 3
    assert has_vectors([by_words, by_model, by_model])


# Opinions.


def linked_or_not(count: int) -> list[ReplayedHits]:
    """As many threads with a related hit as without, the related ones more alike; each has one hit, with the id 1."""
    rng = Random(7)
    cases = [replayed_hits((rng.gauss(1.0 if key % 2 else -1.0, 1), bool(key % 2))) for key in range(count)]
    return [replace(case, replayed=replace(case.replayed, id=1_000 + key)) for key, case in enumerate(cases)]


def logit(probability: float) -> float:
    return log(probability / (1 - probability))


def voted(cases: Sequence[ReplayedHits], *votes: Vote) -> Feedback:
    """The same votes on the only hit of each case."""
    return Feedback(votes={(case.replayed.id, 1): votes for case in cases})


def by_maintainers(helps: bool) -> Vote:
    return Vote("hubot", helps, True)


def moves(cases: Sequence[ReplayedHits], feedback: Feedback) -> list[float]:
    """How far the feedback moves the similarity of each hit."""
    refitted = refit_confidence(cases, MODEL, feedback)
    evidence = [candidate.evidence for case in cases for candidate in case.candidates]
    after, before = ([model.similarity(model.probability(each)) for each in evidence] for model in (refitted, MODEL))
    return [new - old for new, old in zip(after, before, strict=True)]


def likenesses(values: Sequence[float]) -> list[ReplayedHits]:
    """A thread for each of these values, with one hit, with the id 1."""
    cases = [replayed_hits((value, False)) for value in values]
    return [replace(case, replayed=replace(case.replayed, id=1_000 + key)) for key, case in enumerate(cases)]


def test_links_do_not_change_the_confidence() -> None:
    cases = linked_or_not(600)
    assert refit_confidence(cases, MODEL) is MODEL
    nobody_saw = Feedback(votes={(5, 1): (by_maintainers(True),), (1_000, 2): (by_maintainers(False),)})
    assert refit_confidence(cases, MODEL, nobody_saw) is MODEL


def test_opinions_against_hits_make_similar_ones_less_sure_and_opinions_for_them_surer() -> None:
    cases = linked_or_not(200)
    surest = sorted(cases, key=lambda case: case.candidates[0].evidence["likeness"])[-20:]
    alike = surest[0].candidates[0].evidence
    against, in_favour = (
        refit_confidence(cases, MODEL, voted(surest, by_maintainers(helps))) for helps in (False, True)
    )
    assert against.probability(alike) < MODEL.probability(alike) - 0.05
    assert in_favour.probability(alike) > MODEL.probability(alike)
    assert (against.order, against.cut, against.confidence) == (MODEL.order, MODEL.cut, MODEL.confidence)


def test_enough_opinions_of_maintainers_make_the_confidences_true() -> None:
    cases = likenesses([0.0] * 1_000)
    helpful = {(case.replayed.id, 1): (by_maintainers(key % 5 == 0),) for key, case in enumerate(cases)}
    refitted = refit_confidence(cases, MODEL, Feedback(votes=helpful))
    assert refitted.probability(cases[0].candidates[0].evidence) == pytest.approx(0.2, abs=0.02)


LIKENESSES = st.lists(st.floats(-50, 50), min_size=1, max_size=40)


@given(LIKENESSES, st.floats(-50, 50), st.booleans(), st.booleans())
def test_two_votes_move_no_hit_far(rated: list[float], other: float, helps: bool, may_write: bool) -> None:
    cases = likenesses([*rated[:2], other, logit(MODEL.cut)])
    moved = moves(cases, voted(cases[:-2], Vote("octocat", helps, may_write)))
    assert max(map(abs, moved)) <= 0.026
    assert all(move >= 0 if helps else move <= 0 for move in moved)


@given(LIKENESSES, st.floats(-50, 50), st.integers(1, 30), st.booleans())
def test_strangers_move_similarities_by_at_most_a_fifth(
    rated: list[float], other: float, voters: int, helps: bool
) -> None:
    cases = likenesses([*rated, other, logit(MODEL.cut)])
    moved = moves(cases, voted(cases[:-2], *(Vote(f"stranger{turn}", helps) for turn in range(voters))))
    assert MODEL.similarity(MODEL.probability(cases[-1].candidates[0].evidence)) == pytest.approx(0.65)
    assert abs(moved[-1]) <= 0.65 / 5
    assert max(map(abs, moved)) <= 0.13


@given(LIKENESSES, st.booleans())
def test_an_account_without_write_access_counts_once_however_often_it_votes(rated: list[float], helps: bool) -> None:
    cases = likenesses([*rated, logit(MODEL.cut)])
    assert max(map(abs, moves(cases, voted(cases[:-1], Vote("octocat", helps))))) <= 0.013


@given(st.lists(st.tuples(st.floats(-5, 5), st.booleans()), min_size=1, max_size=40), st.integers(1, 40))
def test_strangers_move_little_whatever_maintainers_say(opinions: list[tuple[float, bool]], voters: int) -> None:
    cases = likenesses([likeness for likeness, _ in opinions])
    said = {(case.replayed.id, 1): (by_maintainers(opinions[key][1]),) for key, case in enumerate(cases)}
    against = tuple(Vote(f"stranger{turn}", False) for turn in range(voters))
    flooded = {pair: (*votes, *against) for pair, votes in said.items()}
    before, after = (moves(cases, Feedback(votes=votes)) for votes in (said, flooded))
    assert max(abs(a - b) for a, b in zip(after, before, strict=True)) <= 0.13


def test_a_single_opinion_changes_little() -> None:
    cases = linked_or_not(2)
    refitted = refit_confidence(cases, MODEL, voted(cases[:1], by_maintainers(False)))
    for case in cases:
        evidence = case.candidates[0].evidence
        assert refitted.probability(evidence) == pytest.approx(MODEL.probability(evidence), abs=0.013)
