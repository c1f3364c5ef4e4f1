"""What the fuzzer needs to know about a target: its inputs, what to do with one, and which errors are allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Input = Any
"""A text, bytes, or JSON (lists, objects, texts, numbers); texts may hold lone surrogates."""

MAX_CHARS = 65_536
"""Characters (or bytes) of one text: GitHub's limit for a comment."""


class Violated(Exception):
    """A property does not hold for a result; the message says which."""


@dataclass(frozen=True)
class Target:
    """``run`` uses an input; each of ``more`` does so too and is timed separately. By contract, they refuse an input
    with one of the ``allowed`` exceptions.

    ``kind`` says how inputs are mutated: ``text``, ``bytes``, ``json`` (any part of the structure, wrong types
    included), ``texts`` (a list of texts), or ``json bytes`` (bytes that mostly stay JSON).
    """

    name: str
    kind: str
    seeds: Callable[[], Sequence[Input]]
    run: Callable[[Input], object]
    allowed: tuple[type[Exception], ...] = ()
    tokens: Sequence[str] = ()
    more: tuple[Callable[[Input], object], ...] = ()

    @property
    def steps(self) -> tuple[Callable[[Input], object], ...]:
        return (self.run, *self.more)

    def all(self, value: Input) -> None:
        """Run all steps with this input; the first error ends it."""
        for step in self.steps:
            step(value)


def require(holds: object, what: str) -> None:
    """Raises Violated unless it holds."""
    if not holds:
        raise Violated(what)


def require_storable(value: object) -> None:
    """Every text in ``value`` can be written as UTF-8."""
    try:
        repr(value).encode("utf-8")
        _walk(value)
    except UnicodeEncodeError as error:
        raise Violated(f"a text that cannot be stored: {error.reason}") from None


def _walk(value: object) -> None:
    if isinstance(value, str):
        value.encode("utf-8")
    elif isinstance(value, Mapping):
        for pair in value.items():
            _walk(pair)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            _walk(item)
    elif hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            _walk(getattr(value, name))
