"""The Action: reads the runner's environment, handles one event, writes outputs and job summary."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bot.action.environment import RunnerEnvironment, leave, prepare_process, read_environment
from bot.action.report import ActionReport, say, write_report
from bot.comment.clean_text import log_line
from bot.domain.thread import Thread, ThreadId
from bot.errors import PrecedentError, UserError, bug
from bot.github.client import WRITE_GAP
from bot.github.events import CALM, KNOWN, Event, parse_event
from bot.memory.store import ReadOnlyStore, Store
from bot.pipeline.discussions import read_discussions
from bot.pipeline.forget import forget_by_hand
from bot.pipeline.handle import handle_event
from bot.pipeline.learn import prove_on_memory
from bot.pipeline.rebuild import go_on, rebuild
from bot.pipeline.run_context import RunContext
from bot.pipeline.setup import RepositorySite, branch_store, build_run_context, embedder, read_settings
from bot.questions.context import RecentConversations, recent_conversations
from bot.recall.library import WithoutWords
from bot.settings.schema import Inputs, Settings, given_inputs, read_inputs, with_inputs

OF_ONE = ("answer", "forget")
"""Runs by hand that need an issue number."""

KEPT = "which goes with the job unless a step uploads it: docs/getting-started.md#what-it-learns has the step."
"""Follows the path of the report that a rebuild leaves."""


def run(environ: Mapping[str, str], now: datetime | None = None, write_gap: float = WRITE_GAP) -> int:
    """Run once. Returns the exit code: 0 success (silence included), 1 a fault outside, 2 a mistake of the user.

    ``now`` is the time of the run, for replays; None reads the clock. ``write_gap``: seconds between two writes.
    """
    try:
        around = replace(read_environment(environ), write_gap=write_gap)
        report = ActionReport()
        try:
            _run(around, given_inputs(environ), now or datetime.now(UTC), report)
        except PrecedentError as error:
            report.report_fault(error)
        write_report(around, report)
    except PrecedentError as error:
        say(f"::error::{log_line(str(error))}")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - a bug ends in one line that can be pasted into a report
        say(f"::error::{log_line(bug(error))}")
        return 1
    return report.code


def _run(around: RunnerEnvironment, given: Mapping[str, str], now: datetime, report: ActionReport) -> None:
    inputs = read_inputs(given)
    if not inputs.token:
        raise UserError('input "token" is empty: leave it out, or give ${{ github.token }}')
    event = _event(around, inputs)
    if event.name not in KNOWN:
        report.note(f"Precedent does not handle the event {event.name}: nothing was done.")
        return
    with _bot(around, inputs, given, now, report) as bot:
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


def _event(around: RunnerEnvironment, inputs: Inputs) -> Event:
    try:
        payload = Path(around.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"GITHUB_EVENT_PATH cannot be read: {error.strerror}") from error
    event = parse_event(around.event_name, payload)
    if event.name != "workflow_dispatch":
        return event
    asked = {"run": event.input("run") or event.input("mode"), "issue": event.input("issue").strip()}
    by_hand = read_inputs(asked)
    mode, number = inputs.run or by_hand.run or "catch-up", inputs.issue or by_hand.issue
    if mode in OF_ONE and not number:
        raise UserError(f'run: {mode} needs the input "issue", the number of the issue to {mode}')
    return replace(event, number=number if mode in OF_ONE else None, inputs=(("run", mode),))


@contextmanager
def _bot(
    around: RunnerEnvironment, inputs: Inputs, given: Mapping[str, str], now: datetime, report: ActionReport
) -> Iterator[RunContext]:
    if inputs.dry_run:
        report.is_dry = True
        report.note("Dry run: nothing is written.")
    site = _site(around, inputs)

    def change(settings: Settings) -> Settings:
        changed = with_inputs(settings, given)
        return replace(changed, mode="summary") if inputs.dry_run and changed.mode == "comment" else changed

    chosen = read_settings(site, inputs.config, report, change)
    store: Store = branch_store(site, chosen.settings)
    if inputs.dry_run:
        store = ReadOnlyStore(store)
    chosen = replace(chosen, embedder=embedder(chosen.settings, site, report), is_dry=inputs.dry_run)
    with build_run_context(site, chosen, store, now, report) as bot:
        yield bot


def _site(around: RunnerEnvironment, inputs: Inputs) -> RepositorySite:
    return RepositorySite(
        repository=around.repository,
        token=inputs.token,
        api_url=around.api_url,
        server_url=around.server_url,
        workspace=Path(around.workspace or "."),
        write_gap=around.write_gap,
    )


def run_action() -> int:
    prepare_process()
    return run(os.environ)
