"""Handles the waiting deliveries of one repository, whose key the worker has leased. Read this first.

lease → what is due → `RepositoryRun` → results, and the end of the lease
"""

from __future__ import annotations

import logging
import time

from bot.errors import WorldError
from bot.server.dependencies import RunDependencies
from bot.server.log import log_fields, run_guarded
from bot.server.model import Lease, PendingWork, Result, RunReport, delivery_fields
from bot.server.organisation.indexer import index_changes
from bot.server.storage.outbox import installation_of
from bot.server.work.installation_events import apply_installation_events
from bot.server.work.policy import judge_all
from bot.server.work.run import RepositoryRun

RETRY_SECONDS = 15.0
"""Seconds until the next try for a repository whose run could not be started or stored."""

STORE_PAUSES = (0.2, 1.0, *(5.0,) * 120)
"""Seconds between tries to store a run's results, so that it is not repeated: ten minutes in all."""

DRAIN_PAUSE = 1.0
"""Seconds between two tries while the process drains."""

log = logging.getLogger(__name__)


def work_on(lease: Lease, run: RunDependencies) -> None:
    """Do the work of a leased key: a run of a repository, or the changes for an organisation's index. Never raises."""
    if installation := installation_of(lease.key):
        index_changes(installation, lease, run)
    else:
        reconcile(lease, run)


def reconcile(lease: Lease, run: RunDependencies) -> None:
    """Run a leased repository. Never raises: nobody handles a run that failed."""
    began = time.monotonic()
    line = run_guarded(lambda: _reconcile(lease, run))
    if line:
        details = {"repository": lease.key, "run": lease.id, "seconds": round(time.monotonic() - began, 2)}
        log.error("a run could not be started, or its results could not be stored: %s", line, extra=details)
        if line := run_guarded(lambda: run.inbox.give_back(lease, RETRY_SECONDS)):
            log.error("its lease could not be released; it will expire: %s", line, extra=details)


def _reconcile(lease: Lease, run: RunDependencies) -> None:
    since = time.monotonic()
    work = run.inbox.begin(lease, run.pace.earliest)
    if work is None:  # nothing is due
        return
    with log_fields(repository=lease.key, run=work.id, **delivery_fields(work.deliveries)):
        log.info("a run begins", extra={"worker": run.inbox.worker, "deliveries": len(work.deliveries)})
        results, report = run_repository(work, run)
        if _store_results(work, results, report, run):
            _log_results(work, results, time.monotonic() - since)
        else:
            log.warning("the results of a run were not stored, as it lost its lease")


def run_repository(work: PendingWork, run: RunDependencies) -> tuple[list[Result], RunReport]:
    """Carry out a run. Returns the result of each delivery and the report; expected errors and bugs become results."""
    if work.repository.number:
        return RepositoryRun(work, run).make()
    try:
        scope = run.options.scope
        return apply_installation_events(work, run.inbox, run.tokens, run.clones.forget, scope), RunReport()
    except WorldError as error:
        results = judge_all(error, work.deliveries, run.inbox.now(), run.options.attempts)
        return results, RunReport(notes=(str(error),))


def _store_results(work: PendingWork, results: list[Result], report: RunReport, run: RunDependencies) -> bool:
    """Store the results, with retries, as the run cannot be undone. Returns False if the lease was lost."""
    for pause in STORE_PAUSES:
        try:
            return run.inbox.end(work, results, report)
        except WorldError as error:
            log.warning("the results of a run could not be stored yet: %s", error)
            if run.pace.wait(run.stop, pause):
                time.sleep(DRAIN_PAUSE)
    return run.inbox.end(work, results, report)


def _log_results(work: PendingWork, results: list[Result], seconds: float) -> None:
    deliveries = {each.seq: each for each in work.deliveries}
    for each in results:
        level = logging.WARNING if each.state == "dead" else logging.INFO
        details = {"number": each.seq, "said": each.said, "reason": each.reason, "seconds": round(seconds, 2)}
        with log_fields(**delivery_fields([deliveries[each.seq]])):
            log.log(level, "%s", each.state, extra=details)
