"""One input, watched: a limit for the time of the processor, and which steps from line to line it takes."""

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
"""Seconds of the processor's time for one input; a machine that is busy otherwise does not count."""

AGAIN = 3
"""Times that a slow input is run again before it counts."""


Step = tuple[str, int, int]
"""A file, the line that ran before, whichever file it is in, and the line."""


class Hang(BaseException):
    """The time is up. No `except Exception` may take it for its own."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with one input. ``key`` is equal for faults of one cause, ``what`` is for people."""

    key: str
    what: str


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raises Hang in the body when it has used so much time of the processor."""

    def stop(*_: object) -> None:
        raise Hang

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def wrong_with(target: Target, given: Input) -> tuple[Fault | None, float]:
    """What is wrong with an input, None for nothing, and the seconds that the slowest step took."""
    slowest = 0.0
    for step in target.steps:
        fault, seconds = fault_of(partial(step, given), target.allowed)
        slowest = max(slowest, seconds)
        if fault:
            return fault, slowest
    return None, slowest


def fault_of(
    action: Callable[[], object], allowed: tuple[type[Exception], ...], limit: float = LIMIT
) -> tuple[Fault | None, float]:
    """What is wrong with it, None for nothing, and the seconds it took. A hang is more than ``limit`` seconds."""
    fault, seconds = _once(action, allowed, limit)
    if fault and fault.key == "hang":
        runs = [_once(action, allowed, limit) for _ in range(AGAIN)]
        seconds = min(seconds, *(taken for _, taken in runs))
        fault = next((one for one, _ in runs if one is None or one.key != "hang"), fault)
    return fault, seconds


def _once(
    action: Callable[[], object], allowed: tuple[type[Exception], ...], limit: float
) -> tuple[Fault | None, float]:
    """What is wrong with this run of it. It is stopped later than it is too late: the timer counts coarsely."""
    started = time.process_time()
    fault = None
    try:
        with limited(3 * limit):
            action()
    except allowed:
        pass
    except Hang as error:
        fault = Fault("hang", f"more than {3 * limit:g} s, last seen at {_where(error)}")
    except RecursionError as error:
        fault = Fault(f"RecursionError in {_first_own(error)}", f"RecursionError from {_first_own(error)}")
    except Exception as error:  # noqa: BLE001 - whatever it is, no contract names it
        key = f"{type(error).__name__} at {_where(error)}"
        fault = Fault(key, f"{key}: {error!s:.300}")
    taken = time.process_time() - started
    if fault is None and taken > limit:
        fault = Fault("hang", f"{taken:.1f} s instead of {limit:g} s")
    return fault, taken


def steps_of(action: Callable[[], object]) -> set[Step]:
    """The steps from line to line of the product that it takes; however it ends."""
    seen: set[Step] = set()
    last = 0

    def watch_lines(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal last
        if event == "line":
            seen.add((frame.f_code.co_filename, last, frame.f_lineno))
            last = frame.f_lineno
        return watch_lines

    def watch_calls(frame: FrameType, _: str, __: Any) -> Any:
        return watch_lines if frame.f_code.co_filename.startswith(BOT) else None

    sys.settrace(watch_calls)
    try:
        with limited(30 * LIMIT):
            action()
    except (Exception, Hang):  # noqa: BLE001 - what went wrong was told before
        pass
    finally:
        sys.settrace(None)
    return seen


def _frames(error: BaseException) -> list[str]:
    found, trace = [], error.__traceback__
    while trace:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(BOT):
            found.append(f"{Path(code.co_filename).relative_to(Path(BOT).parent)}:{trace.tb_lineno}")
        trace = trace.tb_next
    return found


def _where(error: BaseException) -> str:
    """The innermost line of the product."""
    return (_frames(error) or ["the target itself"])[-1]


def _first_own(error: BaseException) -> str:
    return (_frames(error) or ["the target itself"])[0]
