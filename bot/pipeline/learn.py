"""Decides when a memory learns from its own history, and runs the learning."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from bot.comment.render import Renderer
from bot.domain.answer import Context
from bot.domain.thread import RepositoryAddress, Thread
from bot.evaluation.results import LEARNING_SECONDS, REPLAY_LIMIT, Backtest, Replayed
from bot.memory.memory import Memory
from bot.pipeline.eligibility import reason_to_pass
from bot.pipeline.room import Room
from bot.pipeline.tools import Tools
from bot.settings.schema import Settings

if TYPE_CHECKING:
    from bot.evaluation.learn import Learner


MIN_LEARN_THREADS = 50
"""With fewer threads a backtest says little, and there is nothing to learn but from a few votes."""

MAX_LEARN_THREADS = 20_000
"""The newest threads that it learns from; they are all held in RAM meanwhile."""

MODEL_SECONDS, REBUILD_MODEL_SECONDS = 120.0, 600.0
"""How long a text model reads what it has not read: in a scheduled run (about 2,500 threads), and in a rebuild."""

LEARN_SECONDS = 20.0
"""How long an event's run or an import learns."""

UNATTENDED_GROWTH_FACTOR, GROWTH_FACTOR = 1.3, 2.0
"""How much a memory grows until it learns again: in a run that nobody waits for, and in any run."""


class Learning(Room):
    """Has the text model read what it has not read, and learns from the history once it has grown."""

    def look(self) -> None:
        is_unattended = self.facts.event.is_maintenance
        if is_unattended:
            read_with_model(self.run)
        if is_due(self.run.memory, unattended=is_unattended):
            learn_from_memory(self.run, LEARN_SECONDS)


def is_due(memory: Memory, *, unattended: bool) -> bool:
    """Whether the memory has grown so much that it should learn again. ``unattended``: nobody waits for this run."""
    growth, manifest = UNATTENDED_GROWTH_FACTOR if unattended else GROWTH_FACTOR, memory.state.manifest
    return manifest.threads >= MIN_LEARN_THREADS and manifest.threads >= growth * manifest.learned_from


def learn(
    memory: Memory,
    settings: Settings,
    renderer: Renderer,
    place: RepositoryAddress,
    *,
    seconds: float = LEARNING_SECONDS,
    tick: Callable[[int], None] = lambda _: None,
) -> Backtest:
    """Learn from everything in memory; `Memory.commit` writes the result.

    ``seconds`` limits the learning; ``tick`` is called for at most `bot.cli.commands.learn.PROGRESS_STEPS` steps.
    Returns a backtest: how the newest issues would have been answered.
    """
    update, backtest = learner(memory, settings, renderer, place, seconds).model_update(tick)
    memory.install_model(replace(update, threads=memory.state.manifest.threads))  # pages count as growth
    return backtest


def read_with_model(run: Tools) -> None:
    """Have the text model, if there is one, read what it has not read, for MODEL_SECONDS."""
    read, left = run.memory.read_with_model(run.clock.seconds() + MODEL_SECONDS)
    if read:
        rest = f"; {left:,} are left for the next scheduled runs" if left else ""
        run.note(f"The text model read {read:,} issues, pull requests and pages{rest}.")


def learner(
    memory: Memory,
    settings: Settings,
    renderer: Renderer,
    place: RepositoryAddress,
    seconds: float = LEARNING_SECONDS,
) -> Learner:
    """The newest MAX_LEARN_THREADS of memory as a history to learn from."""
    from bot.evaluation.backtest import ReplayOptions  # few runs learn
    from bot.evaluation.labels import feedback_of
    from bot.evaluation.learn import read_history

    def render(thread: Thread, context: Context) -> str:
        return (
            renderer.for_thread(thread)
            .render(context, thread_id=thread.id, now=thread.created_at, searched=context.searched)
            .text
        )

    read_again = (record for record in memory.state.every_record() if isinstance(record, Thread))
    threads = deque((thread for thread in read_again if thread.kind.traits.is_conversation), maxlen=MAX_LEARN_THREADS)
    feedback = feedback_of(memory.state.every_comment(), memory.state.every_request(), threads)
    ignore = replace(settings.ignore, people=memory.hidden_people.logins)
    settings = replace(settings, ignore=ignore)
    watch = ReplayOptions(memory.ranking, settings, place, render)
    return read_history(threads, watch, seconds, memory.index.stored_vectors(), feedback)


def backtest_memory(run: Tools) -> Backtest:
    """How the newest issues would have been answered with the current model; nothing is written."""
    memory = run.memory.open()
    replay = learner(memory, run.settings, run.renderer, run.address)
    return _note_backtest(replay.backtest(memory.ranking, REPLAY_LIMIT, LEARNING_SECONDS), run)


def learn_from_memory(run: Tools, seconds: float) -> Backtest:
    """Learn from everything in memory and stage the result; ``seconds`` as in `learn`."""
    run.clock.tell(f"Learning from {run.memory.state.manifest.threads:,} issues, pull requests and pages")
    backtest = learn(run.memory, run.settings, run.renderer, run.address, seconds=seconds)
    run.note(f"Learned from the {backtest.threads:,} issues and pull requests of this repository.")
    return _note_backtest(backtest, run)


def _note_backtest(backtest: Backtest, run: Tools) -> Backtest:
    from bot.evaluation.report import summary_text

    backtest = without_ignored(backtest, run.memory, run.settings)
    run.note(summary_text(backtest))
    return backtest


def without_ignored(backtest: Backtest, memory: Memory, settings: Settings) -> Backtest:
    """The backtest without issues that GitHub hides or these settings leave alone; ``mode`` does not count."""
    may_speak, threads = replace(settings, mode="comment"), memory.whole_records(one.id for one in backtest.replayed)

    def is_answered(replayed: Replayed) -> bool:
        thread = threads.get(replayed.id)
        return isinstance(thread, Thread) and not reason_to_pass(
            replace(thread.as_of(thread.created_at), locked=False), may_speak
        )

    answered = tuple(filter(is_answered, backtest.replayed))
    return replace(backtest, replayed=answered, wanted=backtest.wanted - len(backtest.replayed) + len(answered))
