"""Runs one input with a limit on processor time, and records which steps from line to line it takes."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

from tests.fuzz.target import Input, Target

BOT = str(Path(__file__).resolve().parents[2] / "bot")
LIMIT = 1.0
"""Seconds of processor time for one input; other work on the machine does not count."""

RERUNS = 3
"""Times that a slow input is run again before it counts."""


Step = tuple[str, int, int]
"""A file, the line that ran before (in any file), and the line."""


class Hang(BaseException):
    """The time is up. Not an Exception, so that no `except Exception` catches it."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one input. ``key`` is equal for faults of one cause, ``what`` is for people."""

    key: str
    what: str


@contextmanager
def cpu_limit(seconds: float) -> Iterator[None]:
    """Raises Hang in the body after this much processor time."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def check_input(target: Target, value: Input) -> tuple[Fault | None, float]:
    """The fault that an input causes, if any, and the seconds that the slowest step took."""
    slowest = 0.0
    for step in target.steps:
        fault, seconds = fault_of(partial(step, value), target.allowed)
        slowest = max(slowest, seconds)
        if fault:
            return fault, slowest
    return None, slowest


def fault_of(
    action: Callable[[], object], allowed: tuple[type[Exception], ...], limit: float = LIMIT
) -> tuple[Fault | None, float]:
    """The fault that ``action`` causes, if any, and the seconds it took. A hang is more than ``limit`` seconds."""
    fault, seconds = _run_once(action, allowed, limit)
    if fault and fault.key == "hang":
        runs = [_run_once(action, allowed, limit) for _ in range(RERUNS)]
        seconds = min(seconds, *(taken for _, taken in runs))
        fault = next(
            (rerun_fault for rerun_fault, _ in runs if rerun_fault is None or rerun_fault.key != "hang"), fault
        )
    return fault, seconds


def _run_once(
    action: Callable[[], object], allowed: tuple[type[Exception], ...], limit: float
) -> tuple[Fault | None, float]:
    """The same for one run. It is stopped well after the limit, as the timer is coarse."""
    started = time.process_time()
    fault = None
    try:
        with cpu_limit(3 * limit):
            action()
    except allowed:
        pass
    except Hang as error:
        fault = Fault("hang", f"more than {3 * limit:g} s, last seen at {_innermost_line(error)}")
    except RecursionError as error:
        fault = Fault(f"RecursionError in {_outermost_line(error)}", f"RecursionError from {_outermost_line(error)}")
    except Exception as error:  # noqa: BLE001 - whatever it is, no contract names it
        key = f"{type(error).__name__} at {_innermost_line(error)}"
        fault = Fault(key, f"{key}: {error!s:.300}")
    taken = time.process_time() - started
    if fault is None and taken > limit:
        fault = Fault("hang", f"{taken:.1f} s instead of {limit:g} s")
    return fault, taken


def steps_of(action: Callable[[], object]) -> set[Step]:
    """The steps from line to line that ``action`` takes in the product, however it ends."""
    steps_taken: set[Step] = set()
    last = 0

    def watch_lines(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal last
        if event == "line":
            steps_taken.add((frame.f_code.co_filename, last, frame.f_lineno))
            last = frame.f_lineno
        return watch_lines

    def watch_calls(frame: FrameType, _: str, __: Any) -> Any:
        return watch_lines if frame.f_code.co_filename.startswith(BOT) else None

    sys.settrace(watch_calls)
    try:
        with cpu_limit(30 * LIMIT):
            action()
    except (Exception, Hang):  # noqa: BLE001 - the fault was reported before
        pass
    finally:
        sys.settrace(None)
    return steps_taken


def _frames(error: BaseException) -> list[str]:
    frames, trace = [], error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(BOT):
            frames.append(f"{Path(code.co_filename).relative_to(Path(BOT).parent)}:{trace.tb_lineno}")
        trace = trace.tb_next
    return frames


def _innermost_line(error: BaseException) -> str:
    """The innermost line of the product."""
    return (_frames(error) or ["the target itself"])[-1]


def _outermost_line(error: BaseException) -> str:
    return (_frames(error) or ["the target itself"])[0]
