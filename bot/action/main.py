"""The Action: one run, from the runner's environment to an exit code."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from threading import Thread

from bot.action.environment import prepare_process, print_line, read_environment
from bot.action.task import RunTask, read_task
from bot.comment.clean_text import log_line
from bot.errors import PrecedentError, bug_report
from bot.github.budget import WRITE_GAP
from bot.settings.schema import given_inputs


def run(environ: Mapping[str, str], now: datetime | None = None, write_gap: float = WRITE_GAP) -> int:
    """Run once. Returns the exit code: 0 success (also without a comment), 1 an outside fault, 2 a user error.

    ``now`` is the time of the run, for replays; None reads the clock. ``write_gap``: seconds between two writes.
    """
    try:
        environment = replace(read_environment(environ), write_gap=write_gap)
        task = _in_background(partial(read_task, environment, given_inputs(environ)))
        from bot.action.run import run_task  # imported while GitHub answers, which takes about as long

        return run_task(task, environment, now or datetime.now(UTC))
    except PrecedentError as error:
        print_line(f"::error::{log_line(str(error))}")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - a bug ends in one line that can be pasted into a report
        print_line(f"::error::{log_line(bug_report(error))}")
        return 1


def _in_background(read: Callable[[], RunTask]) -> Callable[[], RunTask]:
    """Start reading. The returned function waits for the task, or raises the error of reading it.

    A run that is stopped does not wait for git: the thread ends with the process.
    """
    outcome: Future[RunTask] = Future()

    def work() -> None:
        try:
            outcome.set_result(read())
        except BaseException as error:  # noqa: BLE001 - raised by whoever waits
            outcome.set_exception(error)

    Thread(target=work, name="settings", daemon=True).start()
    return outcome.result


def run_action() -> int:
    prepare_process()
    return run(os.environ)
