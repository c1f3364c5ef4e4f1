"""precedent backtest and calibrate: replay the newest issues of a store, and choose the cut of its hits from that."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.cli.commands.learn import learner_of_store
from bot.cli.output import progress, rank_table
from bot.errors import WorldError
from bot.evaluation.backtest import ReplayedHits
from bot.evaluation.calibrate import Calibration, by_precision, by_share, vector_fields_of
from bot.evaluation.metrics import summary
from bot.evaluation.report import in_words, render_report
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import RankingModels


def run_backtest(given: argparse.Namespace) -> object:
    memory, learner = learner_of_store(given)
    with progress("Replaying", given.last) as tick:
        backtest = learner.backtest(memory.ranking, given.last, given.seconds, tick)
    memory.close()
    if given.html:
        write_page(given.html, render_report(backtest))
    figures = summary(backtest)
    return figures if given.json else _replay_table(in_words(backtest), figures)


def _replay_table(words: str, figures: Mapping[str, Any]) -> str:
    names = ("precision", "hit_precision", "auc", "ece", "ms_p50", "ms_p95", "seconds")
    lines = [words.replace("\u00a0", " "), *rank_table(figures)]
    lines += [f"{name:18}{figures[name]:.3f}" for name in names if figures[name] is not None]
    return "\n".join(lines) + "\n"


def write_page(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise WorldError(f"{path} cannot be written: {error.strerror}") from error


def run_calibrate(given: argparse.Namespace) -> object:
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
