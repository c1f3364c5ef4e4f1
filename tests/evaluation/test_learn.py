"""What a whole history teaches, within its time, and the proof of it."""

import json
from dataclasses import replace
from random import Random
from time import monotonic, sleep

import pytest

from bot.domain.answer import Context
from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.backtest import ReplayedHits, ReplayOptions
from bot.evaluation.calibrate import LEAST_THREADS, USUAL_SHARE, Calibration, refit_confidence, rescore
from bot.evaluation.evaluate import LEAST_EXAMPLES
from bot.evaluation.learn import Learner, read_history, usual_cut
from bot.evaluation.metrics import summary
from bot.memory.model_store import BACKTEST, RANKING, WORDS, read_ranking, read_words
from bot.ranking.weights import SHOWN_FROM, RankingModels, parse, ranking_fields, shipped
from bot.settings.schema import Settings
from tests.evaluation.test_calibrate import MODEL, seen
from tests.evaluation.timelines import generated
from tests.recall.samples import duplicate, said, thread

RANKING_OF_SAMPLES = RankingModels(replace(MODEL, cut=0.4), MODEL, MODEL)
"""By words the cut is at 0.3."""


def rendered(one: Thread, context: Context) -> str:
    return f"{len(context.seen_before)} like {one.id}"


def learner(count: int, seconds: float = 600, trains: bool = False) -> Learner:
    threads = [life.thread() for life in generated(count, Random(3))]
    return read_history(
        threads, ReplayOptions(shipped(), Settings(), RepositoryAddress("octocat/linkbarn"), rendered, trains), seconds
    )


# The cut.


def replays(*likeness: float, near: float | None = None) -> list[ReplayedHits]:
    return [seen((each, False), near=near) for each in likeness]


def commented(cases: list[ReplayedHits], found: Calibration) -> int:
    again = [rescore(one, found.model, SHOWN_FROM).replayed for one in cases]
    return sum(bool(one.shown) for one in again)


def test_where_much_repeats_itself_the_usual_share_gets_a_comment() -> None:
    cases = replays(*(key / 50 for key in range(200)))
    found = usual_cut(cases, RANKING_OF_SAMPLES)
    assert found.is_own
    assert found.model.cut > MODEL.cut
    assert commented(cases, found) == USUAL_SHARE * 200


def test_where_little_repeats_itself_comments_are_fewer_and_not_worse() -> None:
    cases = replays(*(-key / 50 for key in range(50, 250)), 2.0)
    found = usual_cut(cases, RANKING_OF_SAMPLES)
    assert (found.model, found.is_own) == (MODEL, False)
    assert commented(cases, found) == 1
    assert "fewer than 12.5% of 201" in found.reason


@pytest.mark.parametrize("middle", [-6.0, -2.0, -0.5, 0.0, 1.0, 4.0])
def test_the_cut_is_never_below_the_shipped_one_also_where_confidences_are_refitted(middle: float) -> None:
    chance = Random(5)
    cases = [seen((chance.gauss(middle, 1), False)) for _ in range(300)]
    feedback = {(one.replayed.id, 1): key % 3 > 0 for key, one in enumerate(cases[:30])}
    assert refit_confidence(cases, MODEL, feedback) != MODEL
    found = usual_cut(cases, RANKING_OF_SAMPLES, feedback)
    assert found.model.confidence != MODEL.confidence
    assert found.model.cut >= MODEL.cut


def test_of_too_few_the_shipped_cut_is_kept() -> None:
    found = usual_cut(replays(*[1.0] * (LEAST_THREADS - 1)), RANKING_OF_SAMPLES)
    assert (found.model, found.is_own) == (MODEL, False)


def test_what_was_found_with_vectors_sets_the_cut_with_vectors() -> None:
    assert usual_cut(replays(1.0, near=0.5), RANKING_OF_SAMPLES).model == RANKING_OF_SAMPLES.with_vectors
    assert usual_cut(replays(1.0), RANKING_OF_SAMPLES).model == RANKING_OF_SAMPLES.by_words


def test_a_cut_is_put_where_it_was_measured_with_what_it_comes_from() -> None:
    def calibrated(cases: list[ReplayedHits], ranking: RankingModels) -> Calibration:
        assert ranking is shipped()
        return Calibration(ranking.by_words.with_cut(0.77), f"{len(cases)} seen", True)

    found, calibration = learner(30).own_cut(shipped(), calibrated, 10, 600)
    assert found.by_words == calibration.model
    assert found.with_vectors == shipped().with_vectors
    assert found.provenance == {**shipped().provenance, "cut": "10 seen", "replayed": 10}


@pytest.mark.slow
def test_opinions_are_learned_from_and_told() -> None:
    threads = [life.thread() for life in generated(30, Random(3))]
    watch = ReplayOptions(shipped(), Settings(), RepositoryAddress("octocat/linkbarn"), rendered, False)
    plain = read_history(threads, watch, 600).backtest(shipped(), 25, None)
    hits = [(one.id, hit.id, hit.related) for one in plain.replayed for hit in one.hits]
    linked = next((key, match) for key, match, related in hits if related)
    unlinked = next((key, match) for key, match, related in hits if not related)
    feedback = {linked: False, unlinked: True}
    taught = read_history(threads, watch, 600, feedback=feedback)
    found = taught.backtest(shipped(), 25, None)
    labels = {(one.id, hit.id): hit.related for one in found.replayed for hit in one.hits}
    assert (labels[linked], labels[unlinked]) == (False, True)
    ranking, _ = taught.own_cut(shipped(), usual_cut, 10, 600)
    assert ranking.provenance["opinions"] == 2


# The order.


def marked(count: int) -> list[Thread]:
    """Each second thread is a duplicate of the one before it, which a maintainer has confirmed."""
    found = []
    for key in range(1, 2 * count, 2):
        name = "".join(chr(97 + int(digit)) for digit in f"{key:03}")
        title, body = f"Odd{name} breaks wall{name}", f"The odd{name} thing and the wall{name}"
        confirmed = said("I see it too.", key + 0.1, "hubot", "MEMBER")
        found += [thread(key, title, body, comments=(confirmed,)), duplicate(key + 1, key, title, body)]
    return found


@pytest.mark.slow
def test_an_order_of_its_own_needs_so_many_marked_duplicates() -> None:
    watch = ReplayOptions(shipped(), Settings(), trains=False)
    assert read_history(marked(LEAST_EXAMPLES - 1), watch).own_order(600) is shipped()
    own = read_history(marked(LEAST_EXAMPLES), watch).own_order(600)
    assert own.by_words.order != shipped().by_words.order
    assert own.by_words.confidence == shipped().by_words.confidence
    assert own.provenance["order"] == f"{LEAST_EXAMPLES} marked duplicates of this repository"


def test_without_time_the_order_is_the_shipped_one() -> None:
    assert (
        read_history(marked(LEAST_EXAMPLES), ReplayOptions(shipped(), Settings(), trains=False)).own_order(-1)
        is shipped()
    )


# The proof.


def test_a_backtest_is_in_the_order_of_time_and_says_what_it_is_of() -> None:
    ticks: list[int] = []
    one = learner(40)
    found = one.backtest(shipped(), 12, None, ticks.append)
    assert [each.id for each in found.replayed] == list(range(29, 41))
    assert (found.threads, found.wanted, found.repo) == (40, 12, "octocat/linkbarn")
    assert found.threshold == Settings().troubleshooting.similarity_threshold
    assert found.evidence == shipped().provenance
    assert ticks == [1] * 12


@pytest.mark.slow
def test_a_backtest_goes_by_the_ranking_that_it_is_given() -> None:
    one = learner(40)
    never, always = (shipped().with_model((), shipped().by_words.with_cut(cut)) for cut in (0.999, 0.001))
    quiet, loud = (one.backtest(ranking, 20, None) for ranking in (never, always))
    assert not any(each.shown for each in quiet.replayed)
    assert sum(bool(each.shown) for each in loud.replayed) > 10
    assert all(bool(each.markdown) == bool(each.shown) for each in (*quiet.replayed, *loud.replayed))


def test_when_time_is_short_the_newest_are_replayed() -> None:
    started = monotonic()
    found = learner(30).backtest(shipped(), 25, 0.4, lambda _: sleep(0.15))
    assert monotonic() - started < 5
    assert 0 < len(found.replayed) <= 3
    assert [each.id for each in found.replayed] == list(range(31 - len(found.replayed), 31))
    assert found.wanted == 25


def test_without_time_nothing_is_replayed_and_it_says_so() -> None:
    found = learner(30).backtest(shipped(), 25, -1)
    assert (found.replayed, found.wanted) == ((), 25)
    assert summary(found)["n"] == 0


# All of it.


@pytest.mark.slow
def test_a_lesson_has_words_a_ranking_with_its_provenance_and_a_proof() -> None:
    rounds: list[int] = []
    lesson, backtest = learner(70, trains=True).model_update(rounds.append)
    assert lesson.threads == 70
    assert lesson.words
    words = read_words(lesson.words)
    assert words.trained_on == 70
    assert words.text(["import"], ["crash"])
    assert sum(rounds) > 1, "who waits sees that it goes on"
    assert set(lesson.ranking.provenance) >= {*shipped().provenance, "cut", "replayed"}
    assert lesson.ranking.provenance["replayed"] == 70
    assert parse(json.loads(json.dumps(ranking_fields(lesson.ranking)))).provenance == lesson.ranking.provenance
    assert lesson.backtest == summary(backtest)
    assert (lesson.backtest["n"], lesson.backtest["threads"]) == (70, 70)
    assert lesson.backtest["evidence"] == lesson.ranking.provenance
    files = lesson.files()
    assert set(files) == {WORDS, RANKING, BACKTEST}
    assert read_ranking(files[RANKING]).provenance == lesson.ranking.provenance


def test_a_small_history_teaches_no_words_and_keeps_what_is_shipped() -> None:
    lesson, backtest = learner(20).model_update()
    assert lesson.words == b""
    assert replace(lesson.ranking, provenance={}) == replace(shipped(), provenance={})
    assert len(backtest.replayed) == 20


def test_no_history_teaches_nothing() -> None:
    lesson, backtest = read_history([], ReplayOptions(shipped(), Settings())).model_update()
    assert (lesson.words, lesson.threads, backtest.replayed) == (b"", 0, ())
    assert "only 0 issues" in str(lesson.ranking.provenance["cut"])


def test_a_lesson_without_time_still_has_the_words() -> None:
    lesson, backtest = learner(60, seconds=-1, trains=True).model_update()
    assert lesson.words
    assert backtest.replayed == ()
    assert lesson.ranking.with_vectors == shipped().with_vectors
