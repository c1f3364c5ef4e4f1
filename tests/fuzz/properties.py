"""Makes a property test of what reads strangers' input: any input, few errors, and little processor time."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from time import process_time
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from bot.reading.markdown import read
from tests.examples import THOROUGH

LIMIT = 1.0
"""Seconds of processor time for one input; other work on the machine does not count."""

TRIES = 3
"""Times that an input may take longer before it is a hang."""

Test = Callable[..., None]


class Hang(BaseException):
    """The time is up. Not an Exception, so that no `except Exception` catches it."""


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


def within_limit(test: Test, allowed: tuple[type[Exception], ...] = (), limit: float = LIMIT) -> Test:
    """The test of one input, which fails as well if the input takes more than ``limit`` seconds, however often it is
    tried. By contract, an input may be refused with one of the ``allowed`` exceptions."""

    @wraps(test)
    def timed(*args: Any, **kwargs: Any) -> None:
        hang = None
        for _ in range(TRIES):
            read.cache_clear()  # an input that is read again is measured again
            started = process_time()
            try:
                with cpu_limit(3 * limit):
                    test(*args, **kwargs)
            except allowed:
                pass
            except Hang as error:
                hang = error
                continue
            if process_time() - started < limit:
                return
        raise AssertionError(f"more than {limit:g} s of processor time, {TRIES} times") from hang

    return timed


def fuzz(inputs: st.SearchStrategy[Any], *allowed: type[Exception]) -> Callable[[Test], Test]:
    """Tries the test with many ``inputs`` as its last argument: twice as many as other tests have examples, and five
    times as many in a thorough run."""
    own_settings = settings(
        max_examples=(5 if THOROUGH else 2) * settings.default.max_examples,
        deadline=None,
        phases=set(Phase) - {Phase.explain},
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    return lambda test: pytest.mark.slow(own_settings(given(inputs)(within_limit(test, allowed))))


def assert_storable(value: object) -> None:
    """Every text in ``value`` can be written as UTF-8."""
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, Mapping):
        assert_storable([*value, *value.values()])
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            assert_storable(item)
    elif hasattr(value, "__dataclass_fields__"):
        assert_storable([getattr(value, name) for name in value.__dataclass_fields__])
