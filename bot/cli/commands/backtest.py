"""precedent backtest: what would have been said on the newest issues of a store."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bot.cli.commands.learn import learner_of_store
from bot.cli.output import progress, rank_table
from bot.errors import WorldError
from bot.evaluation.metrics import summary
from bot.evaluation.report import in_words, render_report


def run_backtest(given: argparse.Namespace) -> object:
    memory, learner = learner_of_store(given)
    with progress("Replaying", given.last) as tick:
        backtest = learner.backtest(memory.ranking, given.last, given.seconds, tick)
    memory.close()
    if given.html:
        _write(given.html, render_report(backtest))
    figures = summary(backtest)
    return figures if given.json else _replay_table(in_words(backtest), figures)


def _replay_table(words: str, figures: Mapping[str, Any]) -> str:
    names = ("precision", "hit_precision", "auc", "ece", "ms_p50", "ms_p95", "seconds")
    lines = [words.replace("\u00a0", " "), *rank_table(figures)]
    lines += [f"{name:18}{figures[name]:.3f}" for name in names if figures[name] is not None]
    return "\n".join(lines) + "\n"


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="replace")
    except OSError as error:
        raise WorldError(f"{path} cannot be written: {error.strerror}") from error
