"""Bounds of stored values, written next to the fields that they limit: ``Annotated[str, MaxChars(200)]``.

`bot.memory.codec` applies them to what it reads, as anybody who may push to a memory branch may have written it. Those
without a value are no tuples: two empty tuples are equal, and ``Annotated`` would take one for the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, NamedTuple


class MaxChars(NamedTuple):
    """A text is cut after so many characters."""

    chars: int


class MaxItems(NamedTuple):
    """Of a list, only the first so many items count."""

    items: int


class OneOf(NamedTuple):
    """Any other value is damaged."""

    values: Collection[str]


class Pattern(NamedTuple):
    """A text that does not match as a whole is damaged."""

    regex: re.Pattern[str]


@dataclass(frozen=True)
class OneWord:
    """A text that is not one word counts as empty (`bot.domain.shape.one_word`)."""


@dataclass(frozen=True)
class Lenient:
    """A value that cannot be read is its field's default, without damage; of a list, only the readable items count."""


@dataclass(frozen=True)
class Past:
    """A time that has not come yet counts as none."""


@dataclass(frozen=True)
class Count:
    """A whole number from 0 on."""


@dataclass(frozen=True)
class Position:
    """A place in a list, from 0; any other value counts as None."""


@dataclass(frozen=True)
class Fraction:
    """A number is cut to 0..1."""


MAX_NAME, MAX_TITLE, MAX_QUOTE = 200, 1_024, 4_000

Name = Annotated[str, MaxChars(MAX_NAME)]
"""The name of an account, or a fingerprint."""

Quote = Annotated[str, MaxChars(MAX_QUOTE)]
Signals = Annotated[tuple[Quote, ...], MaxItems(200)]
"""Texts that were found in another one."""

Title = Annotated[str, MaxChars(MAX_TITLE)]
Word = Annotated[str, OneWord()]
Path = Annotated[str, MaxChars(1_024)]
