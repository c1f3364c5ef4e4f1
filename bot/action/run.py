"""One run of the Action: builds the parts, handles the event or a run by hand, and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from functools import partial

from bot.action.environment import RunnerEnvironment, write_file
from bot.action.report import ActionReport, replayed_comments, write_report
from bot.action.task import RunTask
from bot.domain.thread import Thread, ThreadId
from bot.errors import PrecedentError
from bot.pipeline.discussions import read_discussions
from bot.pipeline.forgetting import forget_by_hand, remember_by_hand
from bot.pipeline.handle import handle_event
from bot.pipeline.learn import backtest_memory
from bot.pipeline.rebuild import continue_rebuild, rebuild
from bot.pipeline.setup import branch_store, build_tools, embedder, read_settings
from bot.pipeline.site import SettingsFiles
from bot.pipeline.tools import Tools
from bot.questions.context import RecentConversations, recent_conversations
from bot.settings.schema import with_inputs

UPLOAD_HINT = "which is lost when the job ends unless a step uploads it: docs/getting-started.md#what-it-learns."
"""Follows the path of the report that a rebuild leaves."""


def run_task(task: Callable[[], RunTask], environment: RunnerEnvironment, now: datetime) -> int:
    """Wait for the task, do it, and report. Returns the exit code. Raises PrecedentError if it cannot report."""
    report = ActionReport()
    try:
        _run(task(), environment, now, report)
    except PrecedentError as error:
        report.report_fault(error)
    write_report(environment, report)
    return report.code


def _run(task: RunTask, environment: RunnerEnvironment, now: datetime, report: ActionReport) -> None:
    event, inputs = task.event, task.inputs
    if not task.fetched:
        report.note(f"Precedent does not handle the event {event.name}: nothing was done.")
        return
    with _open_run(task, task.fetched, now, report) as run:
        by_hand = event.input("run") if event.name == "workflow_dispatch" else ""
        if by_hand in ("forget", "remember") and event.number:
            (forget_by_hand if by_hand == "forget" else remember_by_hand)(event.number, run)
            return
        if by_hand == "digest" or (event.name == "schedule" and inputs.run == "digest"):
            from bot.action.digest import write_digest

            report.findings += write_digest(run, environment, inputs.since)
            return
        if by_hand in ("rebuild", "backtest"):
            backtest = rebuild(run) if by_hand == "rebuild" else backtest_memory(run)
            if by_hand == "rebuild":
                read_discussions(event, run)
            if backtest and backtest.replayed:
                from bot.evaluation.report import render_report

                report.page = write_file(environment, "backtest.html", render_report(backtest))
                report.findings += replayed_comments(backtest, f"{run.address.server}/{run.address.repo}")
                report.note(f"What it would have said is in {report.page}, {UPLOAD_HINT}")
            return
        handled = handle_event(event, run)
        results = handled.results
        report.add_results(results)
        handled.raise_error()
        if not (results or report.failures or report.notices):
            report.note(
                "There was nothing to answer."
                if inputs.dry_run
                else "There was nothing to answer; what changed is remembered."
            )
        own = next((result.id for result in results if not result.renews), event.number)
        report.past = _recent_on(own, run)
        continue_rebuild(run, unattended=event.is_maintenance)
        read_discussions(event, run)


def _recent_on(key: ThreadId | None, run: Tools) -> RecentConversations | None:
    """The recent conversations on the issue in the outputs."""
    if key is None:
        return None
    record = run.memory.records([key]).get(key)
    return recent_conversations([record], [run.own.login], run.now) if isinstance(record, Thread) else None


@contextmanager
def _open_run(task: RunTask, fetched: SettingsFiles, now: datetime, report: ActionReport) -> Iterator[Tools]:
    site = task.site
    report.is_dry = task.inputs.dry_run
    if report.is_dry:
        report.note("Dry run: nothing is written.")
    loaded = read_settings(site, fetched, report, partial(with_inputs, inputs=task.given))
    loaded = replace(loaded, embedder=embedder(loaded.settings, site, report), is_dry=report.is_dry)
    with build_tools(site, loaded, branch_store(site, loaded), now, report) as run:
        yield run
