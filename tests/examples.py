"""How many cases a test tries: few in a quick run, all if PRECEDENT_THOROUGH is set, as in CI and every night."""

import os
from collections.abc import Iterable
from itertools import islice
from typing import Any, TypeVar

import pytest

QUICK_SHARE = 5
THOROUGH = bool(os.environ.get("PRECEDENT_THOROUGH"))

T = TypeVar("T")


def examples(count: int) -> int:
    """``count`` in a thorough run, a fifth of it in a quick one, but never fewer than five (or than ``count``)."""
    return count if THOROUGH else max(min(5, count), count // QUICK_SHARE)


def share(cases: Iterable[T], one_in: int = QUICK_SHARE, first: int = 0) -> list[T]:
    """All cases in a thorough run, otherwise one in ``one_in``, starting at index ``first``."""
    return list(cases if THOROUGH else islice(cases, first % one_in, None, one_in))


def mostly_slow(cases: Iterable[Any], one_in: int = QUICK_SHARE) -> list[Any]:
    """All cases for ``pytest.mark.parametrize``; only one in ``one_in`` runs with the quick tests."""
    return [case if number % one_in == 0 else _marked_slow(case) for number, case in enumerate(cases)]


def _marked_slow(case: Any) -> Any:
    return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)
