"""precedent backtest and calibrate: replay the newest issues of a store, and fit the confidence cut of its hits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.cli.arguments import fraction
from bot.cli.commands.learn import learner_of_store
from bot.cli.options import Alternatives, ReplayArguments, file_option, option
from bot.cli.output import progress, rank_table
from bot.errors import WorldError
from bot.evaluation.backtest import ReplayedHits
from bot.evaluation.calibrate import Calibration, cut_by_precision, cut_by_share, has_vectors
from bot.evaluation.metrics import summary
from bot.evaluation.report import render_report, summary_text
from bot.memory.model_store import ModelUpdate
from bot.ranking.weights import RankingModels


class BacktestArguments(ReplayArguments):
    html: Path | None = file_option("write a report with plots and the comments")


_GOAL = Alternatives()


class CalibrateArguments(ReplayArguments):
    share: float = option(
        "the share of issues that get a hit (default 0.125)", among=_GOAL, type=fraction, default=0.125, metavar="X"
    )
    precision: float | None = option(
        "the share of comments whose hit people linked later", among=_GOAL, type=fraction, metavar="X"
    )


def run_backtest(args: BacktestArguments) -> object:
    memory, learner = learner_of_store(args)
    with progress("Replaying", args.last) as tick:
        backtest = learner.backtest(memory.ranking, args.last, args.seconds, tick)
    memory.close()
    if args.html:
        write_page(args.html, render_report(backtest))
    figures = summary(backtest)
    return figures if args.json else _replay_table(summary_text(backtest), figures)


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


def run_calibrate(args: CalibrateArguments) -> object:
    memory, learner = learner_of_store(args)

    def calibrate(replays: Sequence[ReplayedHits], ranking: RankingModels) -> Calibration:
        model = ranking.model(has_vectors=has_vectors(replays))
        replayed = [replay.replayed for replay in replays]
        if args.precision is not None:
            return cut_by_precision(replayed, model, args.precision)
        return cut_by_share(replayed, model, args.share)

    ranking, calibration = learner.own_cut(memory.ranking, calibrate, args.last, args.seconds)
    if calibration.is_own:
        memory.install_model(ModelUpdate(ranking, memory.state.manifest.learned_from))
        memory.commit("Calibrate")
    memory.close()
    result = {"is_own": calibration.is_own, "reason": calibration.reason, "confidence_at_0.65": None}
    if not calibration.is_own:
        explanation = "so this history does not tell what a similarity of 0.65 means here"
        return result if args.json else f"{calibration.reason}; {explanation}\n"
    result["confidence_at_0.65"] = round(calibration.model.cut, 4)
    return (
        result
        if args.json
        else f"{calibration.reason}; similarity 0.65 is a confidence of {calibration.model.cut:.3f}\n"
    )
