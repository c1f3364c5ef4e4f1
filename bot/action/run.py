"""One run of the Action: the parts, the event or what is done by hand, and the report."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from bot.action.environment import RunnerEnvironment, leave
from bot.action.report import ActionReport, write_report
from bot.action.task import RunTask
from bot.domain.thread import Thread, ThreadId
from bot.errors import PrecedentError
from bot.github.events import CALM
from bot.memory.store import ReadOnlyStore, Store
from bot.pipeline.discussions import read_discussions
from bot.pipeline.forget import forget_by_hand
from bot.pipeline.handle import handle_event
from bot.pipeline.learn import prove_on_memory
from bot.pipeline.rebuild import go_on, rebuild
from bot.pipeline.run_context import RunContext
from bot.pipeline.setup import branch_store, build_run_context, embedder, read_settings
from bot.pipeline.site import SettingsFiles
from bot.questions.context import RecentConversations, recent_conversations
from bot.recall.library import WithoutWords
from bot.settings.schema import Settings, with_inputs

KEPT = "which goes with the job unless a step uploads it: docs/getting-started.md#what-it-learns has the step."
"""Follows the path of the report that a rebuild leaves."""


def run_task(task: Callable[[], RunTask], around: RunnerEnvironment, now: datetime) -> int:
    """Wait for the task, do it, and report. Returns the exit code; PrecedentError where no report can be made."""
    report = ActionReport()
    try:
        _run(task(), around, now, report)
    except PrecedentError as error:
        report.report_fault(error)
    write_report(around, report)
    return report.code


def _run(task: RunTask, around: RunnerEnvironment, now: datetime, report: ActionReport) -> None:
    event, inputs = task.event, task.inputs
    if not task.fetched:
        report.note(f"Precedent does not handle the event {event.name}: nothing was done.")
        return
    with _bot(task, task.fetched, now, report) as bot:
        by_hand = event.input("run") if event.name == "workflow_dispatch" else ""
        if by_hand == "forget" and event.number:
            forget_by_hand(event.number, bot)
            return
        if by_hand == "digest" or (event.name == "schedule" and inputs.run == "digest"):
            from bot.action.digest import write_digest

            report.digest += write_digest(bot, around, inputs.since)
            return
        if by_hand in ("rebuild", "backtest"):
            backtest = rebuild(bot) if by_hand == "rebuild" else prove_on_memory(bot)
            if by_hand == "rebuild":
                read_discussions(event, bot)
            if backtest and backtest.replayed:
                from bot.evaluation.report import render_report

                path = leave(around, "backtest.html", render_report(backtest))
                report.note(f"What it would have said is in {path}, {KEPT}")
            return
        results = handle_event(event, bot)
        report.add_results(results)
        if not (results or report.failures or report.notices):
            report.note("No answer was due." if inputs.dry_run else "No answer was due; what is new is remembered.")
        own = next((result.id for result in results if not result.renews), event.number)
        report.past = _past(own, bot)
        go_on(bot, calm=event.name in CALM)
        read_discussions(event, bot)


def _past(key: ThreadId | None, bot: RunContext) -> RecentConversations | None:
    """The recent conversations on the issue in the outputs, without people who are never quoted."""
    if key is None:
        return None
    found = WithoutWords(bot.memory, bot.settings.ignore.people).records([key]).get(key)
    return recent_conversations([found], [bot.own.login], bot.now) if isinstance(found, Thread) else None


@contextmanager
def _bot(task: RunTask, fetched: SettingsFiles, now: datetime, report: ActionReport) -> Iterator[RunContext]:
    site, is_dry = task.site, task.inputs.dry_run
    if is_dry:
        report.is_dry = True
        report.note("Dry run: nothing is written.")

    def change(settings: Settings) -> Settings:
        changed = with_inputs(settings, task.given)
        return replace(changed, mode="summary") if is_dry and changed.mode == "comment" else changed

    chosen = read_settings(fetched, report, change)
    store: Store = branch_store(site, chosen.settings)
    if is_dry:
        store = ReadOnlyStore(store)
    chosen = replace(chosen, embedder=embedder(chosen.settings, site, report), is_dry=is_dry)
    with build_run_context(site, chosen, store, now, report) as bot:
        yield bot
