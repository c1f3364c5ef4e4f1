"""What is learned from a whole history within a time limit, and its backtest."""

import json
from dataclasses import replace
from random import Random
from time import sleep

import pytest

from bot.domain.answer import Context
from bot.domain.post import Vote
from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.backtest import ReplayedHits, ReplayOptions
from bot.evaluation.calibrate import MAX_HIT_SHARE, MIN_THREADS, Calibration, refit_confidence, rescore
from bot.evaluation.evaluate import MIN_EXAMPLES
from bot.evaluation.labels import Feedback
from bot.evaluation.learn import Learner, read_history, usual_cut
from bot.evaluation.metrics import summary
from bot.memory.model_store import BACKTEST_PATH, RANKING_PATH, read_ranking
from bot.ranking.weights import CUT_SIMILARITY, RankingModels, parse, ranking_fields, shipped
from bot.settings.schema import Settings
from tests.evaluation.test_calibrate import MODEL, replayed_hits
from tests.evaluation.timelines import generated
from tests.recall.samples import duplicate, message, thread

RANKING_OF_SAMPLES = RankingModels(MODEL, replace(MODEL, cut=0.4))
"""By words the cut is at 0.3."""


def render_count(issue: Thread, context: Context) -> str:
    return f"{len(context.seen_before)} like {issue.id}"


def make_learner(count: int, seconds: float = 600) -> Learner:
    threads = [life.thread() for life in generated(count, Random(3))]
    return read_history(
        threads,
        ReplayOptions(shipped(), Settings(), RepositoryAddress("octocat/linkbarn"), render_count),
        seconds,
    )


# The cut.


def replays(*likeness: float, cosine: float | None = None) -> list[ReplayedHits]:
    return [replayed_hits((each, False), cosine=cosine) for each in likeness]


def commented(cases: list[ReplayedHits], calibration: Calibration) -> int:
    rescored = [
        rescore(replayed, RankingModels(calibration.model, calibration.model), CUT_SIMILARITY).replayed
        for replayed in cases
    ]
    return sum(bool(replayed.shown) for replayed in rescored)


def test_the_usual_share_gets_a_comment_when_many_issues_repeat() -> None:
    cases = replays(*(key / 50 for key in range(200)))
    calibration = usual_cut(cases, RANKING_OF_SAMPLES)
    assert calibration.is_own
    assert calibration.model.cut > MODEL.cut
    assert commented(cases, calibration) == MAX_HIT_SHARE * 200


def test_comments_are_fewer_but_no_worse_when_few_issues_repeat() -> None:
    cases = replays(*(-key / 50 for key in range(50, 250)), 2.0)
    calibration = usual_cut(cases, RANKING_OF_SAMPLES)
    assert (calibration.model, calibration.is_own) == (MODEL, False)
    assert commented(cases, calibration) == 1
    assert "fewer than 12.5% of 201" in calibration.reason


def test_the_cut_is_never_below_the_shipped_one_even_with_refitted_confidences() -> None:
    for middle in [-6.0, -2.0, -0.5, 0.0, 1.0, 4.0]:
        rng = Random(5)
        cases = [replayed_hits((rng.gauss(middle, 1), False)) for _ in range(300)]
        votes = {(case.replayed.id, 1): (Vote("hubot", key % 3 > 0, True),) for key, case in enumerate(cases[:30])}
        feedback = Feedback(votes=votes)
        assert refit_confidence(cases, MODEL, feedback) != MODEL, middle
        calibration = usual_cut(cases, RANKING_OF_SAMPLES, feedback)
        assert calibration.model.intercept != MODEL.intercept, middle
        assert calibration.model.cut >= MODEL.cut, middle


def test_the_shipped_cut_is_kept_for_too_few_issues() -> None:
    calibration = usual_cut(replays(*[1.0] * (MIN_THREADS - 1)), RANKING_OF_SAMPLES)
    assert (calibration.model, calibration.is_own) == (MODEL, False)


def test_replays_with_vectors_set_the_cut_with_vectors() -> None:
    assert usual_cut(replays(1.0, cosine=0.5), RANKING_OF_SAMPLES).model == RANKING_OF_SAMPLES.with_text_model
    assert usual_cut(replays(1.0), RANKING_OF_SAMPLES).model == RANKING_OF_SAMPLES.by_words


def test_a_cut_replaces_that_of_the_measured_model_and_records_its_origin() -> None:
    def calibrated(cases: list[ReplayedHits], ranking: RankingModels) -> Calibration:
        assert ranking is shipped()
        return Calibration(ranking.by_words.with_cut(0.77), f"{len(cases)} seen", True)

    models, calibration = make_learner(30).own_cut(shipped(), calibrated, 10, 600)
    assert models.by_words == calibration.model
    assert models.with_text_model == shipped().with_text_model
    assert models.provenance == {**shipped().provenance, "cut": "10 seen", "replayed": 10}


@pytest.mark.slow
def test_opinions_are_learned_and_counted_in_the_provenance() -> None:
    threads = [life.thread() for life in generated(30, Random(3))]
    options = ReplayOptions(shipped(), Settings(), RepositoryAddress("octocat/linkbarn"), render_count)
    plain = read_history(threads, options, 600).backtest(shipped(), 25, None)
    hits = [(issue.id, hit.id, hit.related) for issue in plain.replayed for hit in issue.hits]
    linked = next((key, match) for key, match, related in hits if related)
    unlinked = next((key, match) for key, match, related in hits if not related)
    votes = {linked: (Vote("hubot", False, True),), unlinked: (Vote("hubot", True, True),)}
    feedback = Feedback({linked: False, unlinked: True}, votes)
    with_feedback = read_history(threads, options, 600, feedback=feedback)
    result = with_feedback.backtest(shipped(), 25, None)
    labels = {(issue.id, hit.id): hit.related for issue in result.replayed for hit in issue.hits}
    assert (labels[linked], labels[unlinked]) == (False, True)
    ranking, _ = with_feedback.own_cut(shipped(), usual_cut, 10, 600)
    assert ranking.provenance["opinions"] == 2


# The order.


def marked(count: int) -> list[Thread]:
    """Every second thread is a duplicate of the one before it, which a maintainer has confirmed."""
    threads = []
    for key in range(1, 2 * count, 2):
        name = "".join(chr(97 + int(digit)) for digit in f"{key:03}")
        title, body = f"Odd{name} breaks wall{name}", f"The odd{name} thing and the wall{name}"
        confirmed = message("I see it too.", key + 0.1, "hubot", "MEMBER")
        threads += [thread(key, title, body, comments=(confirmed,)), duplicate(key + 1, key, title, body)]
    return threads


@pytest.mark.slow
def test_a_repositorys_own_order_needs_enough_marked_duplicates() -> None:
    options = ReplayOptions(shipped(), Settings())
    assert read_history(marked(MIN_EXAMPLES - 1), options).own_order(600) is shipped()
    ranking = read_history(marked(MIN_EXAMPLES), options).own_order(600)
    assert ranking.by_words.order != shipped().by_words.order
    assert ranking.by_words.confidence == shipped().by_words.confidence
    assert ranking.provenance["order"] == f"{MIN_EXAMPLES} marked duplicates of this repository"


def test_the_shipped_order_is_kept_when_there_is_no_time() -> None:
    assert read_history(marked(MIN_EXAMPLES), ReplayOptions(shipped(), Settings())).own_order(-1) is shipped()


# The backtest.


def test_a_backtest_is_chronological_and_names_its_source() -> None:
    ticks: list[int] = []
    learner = make_learner(40)
    result = learner.backtest(shipped(), 12, None, ticks.append)
    assert [each.id for each in result.replayed] == list(range(29, 41))
    assert (result.threads, result.wanted, result.repo) == (40, 12, "octocat/linkbarn")
    assert result.threshold == Settings().similar.threshold
    assert result.evidence == shipped().provenance
    assert ticks == [1] * 12


@pytest.mark.slow
def test_a_backtest_uses_the_given_ranking() -> None:
    learner = make_learner(40)
    never, always = (replace(shipped(), by_words=shipped().by_words.with_cut(cut)) for cut in (0.999, 0.001))
    quiet, loud = (learner.backtest(ranking, 20, None) for ranking in (never, always))
    assert not any(each.shown for each in quiet.replayed)
    assert sum(bool(each.shown) for each in loud.replayed) > 10
    assert all(bool(each.markdown) == bool(each.shown) for each in (*quiet.replayed, *loud.replayed))


def test_the_newest_issues_are_replayed_when_time_is_short() -> None:
    result = make_learner(30).backtest(shipped(), 25, 0.4, lambda _: sleep(0.15))
    assert len(result.replayed) <= 3
    assert [each.id for each in result.replayed] == list(range(31 - len(result.replayed), 31))
    assert result.wanted == 25


def test_nothing_is_replayed_without_time_and_the_summary_says_so() -> None:
    result = make_learner(30).backtest(shipped(), 25, -1)
    assert (result.replayed, result.wanted) == ((), 25)
    assert summary(result)["n"] == 0


# The whole update.


@pytest.mark.slow
def test_a_model_update_has_a_ranking_with_provenance_and_a_backtest() -> None:
    steps: list[int] = []
    update, backtest = make_learner(70).model_update(steps.append)
    assert update.threads == 70
    assert sum(steps) == 2 * 70, "who waits sees that it goes on"
    assert set(update.ranking.provenance) >= {*shipped().provenance, "cut", "replayed"}
    assert update.ranking.provenance["replayed"] == 70
    assert parse(json.loads(json.dumps(ranking_fields(update.ranking)))).provenance == update.ranking.provenance
    assert update.backtest == summary(backtest)
    assert (update.backtest["n"], update.backtest["threads"]) == (70, 70)
    assert update.backtest["evidence"] == update.ranking.provenance
    files = update.files()
    assert set(files) == {RANKING_PATH, BACKTEST_PATH}
    assert read_ranking(files[RANKING_PATH]).provenance == update.ranking.provenance


def test_a_small_history_keeps_the_shipped_ranking() -> None:
    update, backtest = make_learner(20).model_update()
    assert replace(update.ranking, provenance={}) == replace(shipped(), provenance={})
    assert len(backtest.replayed) == 20


def test_an_empty_history_changes_nothing() -> None:
    update, backtest = read_history([], ReplayOptions(shipped(), Settings())).model_update()
    assert (update.threads, backtest.replayed) == (0, ())
    assert "only 0 issues" in str(update.ranking.provenance["cut"])


def test_a_model_update_without_time_keeps_the_shipped_ranking() -> None:
    update, backtest = make_learner(60, seconds=-1).model_update()
    assert backtest.replayed == ()
    assert replace(update.ranking, provenance={}) == replace(shipped(), provenance={})
