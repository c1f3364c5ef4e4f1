"""Learns from a whole history: the repository's own order and cut, and a backtest of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import monotonic

from bot.domain.thread import Thread, ThreadId
from bot.evaluation.backtest import ReplayedHits, ReplayOptions, newest_issues, replay
from bot.evaluation.calibrate import (
    MAX_HIT_SHARE,
    Calibration,
    cut_by_share,
    has_vectors,
    refit_confidence,
    rescore,
)
from bot.evaluation.evaluate import MAX_EXAMPLES, MIN_EXAMPLES, Example, duplicate_examples, fit_ranking
from bot.evaluation.labels import NO_FEEDBACK, Feedback, LinkLabels
from bot.evaluation.metrics import summary
from bot.evaluation.replay import ReplayHistory
from bot.evaluation.results import LEARNING_SECONDS, REPLAY_LIMIT, Backtest, Progress
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import RankingModels, shipped

Calibrate = Callable[[Sequence[ReplayedHits], RankingModels], Calibration]


@dataclass(frozen=True)
class Learner:
    """A history to learn from, within ``seconds``. ``watch`` replays threads with the shipped ranking."""

    history: ReplayHistory
    links: LinkLabels
    watch: ReplayOptions
    seconds: float = LEARNING_SECONDS

    def model_update(self, tick: Progress = lambda _: None) -> tuple[ModelUpdate, Backtest]:
        """Learn the ranking, and replay the newest issues with the comments that would have been written."""
        ranking = self.own_ranking(tick)
        backtest = self.backtest(ranking, REPLAY_LIMIT, self.seconds / 3, tick)
        return ModelUpdate(ranking, len(self.history.threads), summary(backtest)), backtest

    def own_ranking(self, tick: Progress = lambda _: None) -> RankingModels:
        """Learn the order and the cut, in two thirds of the time."""
        usual = partial(usual_cut, feedback=self.links.feedback)
        order = self.own_order(self.seconds / 3)
        return self.own_cut(order, usual, REPLAY_LIMIT, self.seconds / 3, tick)[0]

    def own_order(self, seconds: float) -> RankingModels:
        """The ranking fitted to the newest marked duplicates; the shipped one if there are too few."""
        until, examples = monotonic() + seconds, list[Example]()
        for example in duplicate_examples(self.history, self.links, shipped(), until):
            examples.append(example)
            if len(examples) == MAX_EXAMPLES:
                break
        return fit_ranking(examples, shipped()) if len(examples) >= MIN_EXAMPLES else shipped()

    def own_cut(
        self,
        ranking: RankingModels,
        calibrate: Calibrate,
        count: int,
        seconds: float | None,
        tick: Progress = lambda _: None,
    ) -> tuple[RankingModels, Calibration]:
        """The ranking with its confidences and cut calibrated on a replay."""
        seen = list(self._replay(replace(self.watch, ranking=ranking, render=None), count, seconds, tick))
        calibration = calibrate(seen, ranking)
        evidence: dict[str, object] = {"cut": calibration.reason, "replayed": len(seen)}
        evidence |= {"opinions": len(self.links.feedback.votes)} if self.links.feedback.votes else {}
        own = ranking.with_model(calibration.model, has_vectors=has_vectors(seen))
        return replace(own, provenance={**ranking.provenance, **evidence}), calibration

    def backtest(
        self, ranking: RankingModels, count: int, seconds: float | None, tick: Progress = lambda _: None
    ) -> Backtest:
        """Replay the newest issues with this ranking, newest first, until the time is up."""
        started = monotonic()
        watch = replace(self.watch, ranking=ranking)
        seen = [one.replayed for one in self._replay(watch, count, seconds, tick)]
        return Backtest(
            replayed=tuple(sorted(seen, key=lambda one: (one.created_at, str(one.id)))),
            threads=len(self.history.threads),
            threshold=watch.settings.similar.threshold,
            wanted=len(newest_issues(self.history, count)),
            seconds=monotonic() - started,
            repo=watch.place.repo or "",
            evidence=ranking.provenance,
            by_meaning=bool(self.history.vectors),
            server=watch.place.server,
        )

    def _replay(
        self, watch: ReplayOptions, count: int, seconds: float | None, tick: Progress = lambda _: None
    ) -> Iterator[ReplayedHits]:
        until = None if seconds is None else monotonic() + seconds
        return replay(self.history, self.links, newest_issues(self.history, count), watch, tick, until)


def usual_cut(seen: Sequence[ReplayedHits], ranking: RankingModels, feedback: Feedback = NO_FEEDBACK) -> Calibration:
    """The cut at which the usual share of issues has a hit, but never below the shipped cut: if little repeats, there
    are fewer comments, not worse ones."""
    model = ranking.model(has_vectors=has_vectors(seen))
    own = refit_confidence(seen, model, feedback)
    refitted = ranking.with_model(own, has_vectors=has_vectors(seen))
    replayed = [rescore(hits, refitted, 0.0).replayed for hits in seen]
    calibration = cut_by_share(replayed, own, MAX_HIT_SHARE)
    if calibration.model.cut < model.cut:
        return replace(
            calibration,
            model=calibration.model.with_cut(model.cut),
            reason=f"the shipped one; at it fewer than {MAX_HIT_SHARE:.1%} of {len(seen)} replayed issues have a hit",
            is_own=False,
        )
    return calibration


def read_history(
    threads: Sequence[Thread],
    watch: ReplayOptions,
    seconds: float = LEARNING_SECONDS,
    vectors: Mapping[ThreadId, bytes] | None = None,
    feedback: Feedback = NO_FEEDBACK,
) -> Learner:
    """A learner for these threads, with the ``vectors`` that a memory has of them and the feedback on our matches."""
    history = replace(ReplayHistory.read(threads), vectors=vectors or {})
    return Learner(history, LinkLabels.read(history.threads, watch.place.repo, feedback), watch, seconds)
