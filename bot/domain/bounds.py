"""Bounds of stored values, written next to the fields that they limit: ``Annotated[str, MaxChars(200)]``.

`bot.memory.codec` applies them to what it reads, as anybody who may push to a memory branch may have written it.
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


class OneWord(NamedTuple):
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


MAX_NAME, MAX_TITLE = 200, 1_024

Name = Annotated[str, MaxChars(MAX_NAME)]
"""The name of an account, or a fingerprint."""

Title = Annotated[str, MaxChars(MAX_TITLE)]
Word = Annotated[str, OneWord()]
Path = Annotated[str, MaxChars(1_024)]
