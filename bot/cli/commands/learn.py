"""precedent learn: learns from the history of a store, as the Action does; `import` ends with the same step."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.arguments import number
from bot.cli.options import Arguments, ReplayArguments, json_option, option, repo_option, semantic_option, store_option
from bot.cli.output import progress
from bot.comment.links import CommentLinks
from bot.comment.render import Renderer
from bot.domain.thread import RepositoryAddress
from bot.evaluation.learn import Learner
from bot.evaluation.results import REPLAY_LIMIT, Backtest
from bot.local_cache.sync import open_store
from bot.memory.memory import Memory
from bot.pipeline.clusters import link_threads
from bot.pipeline.learn import MIN_LEARN_THREADS, learn, learner
from bot.settings.schema import Settings

PROGRESS_STEPS = 2 * REPLAY_LIMIT
"""The most steps of learning: two replays of the issues."""


class LearnArguments(Arguments):
    store: Path = store_option()
    seconds: int = option(
        "time limit; clusters get as much again (default 60)", type=number(1, 86_400), default=60, metavar="N"
    )
    repo: str | None = repo_option()
    semantic: Path | None = semantic_option()
    json: bool = json_option("the figures")


def run_learn(args: LearnArguments) -> object:
    memory = open_store(args.store, semantic=args.semantic, repo=args.repo)
    if memory.state.manifest.threads < MIN_LEARN_THREADS:
        _compare(memory, args.seconds)
        memory.commit("Compare threads")
        memory.close()
        reason = (
            f"nothing was learned: {memory.state.manifest.threads:,} threads are too few, "
            f"{MIN_LEARN_THREADS} are needed"
        )
        return {"learned": False, "reason": reason} if args.json else f"{reason}\n"
    backtest = learn_and_commit(memory, args.repo or memory.state.repo, args.seconds)
    memory.close()
    from bot.evaluation.metrics import summary
    from bot.evaluation.report import summary_text

    if args.json:
        return {"learned": True, "reason": "", **summary(backtest)}
    return f"learned from {backtest.threads:,} threads. {summary_text(backtest)}\n".replace("\u00a0", " ")


def learn_and_commit(memory: Memory, repo: str | None, seconds: float) -> Backtest:
    """Learn, find clusters, and commit the result. ``seconds`` limits each of the first two."""
    renderer = Renderer(links=CommentLinks(repo=repo or ""), commands=False)
    with progress("Learning", PROGRESS_STEPS) as tick:
        backtest = learn(memory, Settings(), renderer, RepositoryAddress(repo), seconds=seconds, tick=tick)
    _compare(memory, seconds)
    memory.commit("Learn")
    return backtest


def _compare(memory: Memory, seconds: float) -> None:
    with progress("Comparing threads", len(memory.uncompared())) as tick:
        link_threads(memory, datetime.now(UTC), time.monotonic, seconds, tick)


def learner_of_store(args: ReplayArguments) -> tuple[Memory, Learner]:
    """The memory of a store, and a learner that replays it."""
    memory = open_store(args.store, semantic=args.semantic)
    repo = args.repo or memory.state.repo
    renderer = Renderer(links=CommentLinks(repo=repo or ""), commands=False)
    return memory, learner(memory, Settings(), renderer, RepositoryAddress(repo))
