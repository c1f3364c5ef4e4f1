"""precedent calibrate: chooses from which confidence on a store's hits are shown."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from bot.cli.commands.learn import learner_of_store
from bot.evaluation.backtest import ReplayedHits
from bot.evaluation.calibrate import Calibration, by_precision, by_share, vector_fields_of
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import RankingModels


def run_calibrate(given: argparse.Namespace) -> object:
    """Set the cut of a store from its own history."""
    memory, learner = learner_of_store(given)

    def calibrated(seen: Sequence[ReplayedHits], ranking: RankingModels) -> Calibration:
        model = ranking.model(vector_fields_of(seen))
        replayed = [one.replayed for one in seen]
        if given.precision is not None:
            return by_precision(replayed, model, given.precision)
        return by_share(replayed, model, given.share)

    ranking, found = learner.own_cut(memory.ranking, calibrated, given.last, given.seconds)
    if found.is_own:
        memory.install_model(ModelUpdate(None, ranking, memory.state.manifest.learned_from))
        memory.commit("Calibrate")
    memory.close()
    result = {"is_own": found.is_own, "reason": found.reason, "confidence_at_0.65": None}
    if not found.is_own:
        told = "so this history does not tell what a similarity of 0.65 means here"
        return result if given.json else f"{found.reason}; {told}\n"
    result["confidence_at_0.65"] = round(found.model.cut, 4)
    return result if given.json else f"{found.reason}; similarity 0.65 is a confidence of {found.model.cut:.3f}\n"
