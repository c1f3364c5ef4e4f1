"""What a fuzzer needs to know of a part: what inputs are like, what is done with one, which errors it may raise."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Input = Any
"""A text, bytes, or JSON: lists, objects, texts, numbers, of which texts may hold lone surrogates."""

MAX_CHARS = 65_536
"""Characters (or bytes) of one text: what GitHub takes for a comment."""


class Violated(Exception):
    """A property does not hold of what came out; the message says which."""


@dataclass(frozen=True)
class Target:
    """``run`` does something with an input, and each of ``more`` something else that is timed by itself; what is in
    ``allowed`` is their contract's way to refuse one.

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

    def all(self, given: Input) -> None:
        """Everything with this input; the first error ends it."""
        for step in self.steps:
            step(given)


def require(holds: object, what: str) -> None:
    """Raises Violated unless it holds."""
    if not holds:
        raise Violated(what)


def storable(value: object) -> None:
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
