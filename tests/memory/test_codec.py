"""Stored values: written and read by their annotations, with the bounds beside each field."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Annotated, NamedTuple

import pytest

from bot.domain.bounds import MaxChars, MaxItems, OneOf, OneWord, Pattern
from bot.domain.thread import ThreadId
from bot.memory.codec import DAMAGE, decode, decode_each, encode

AT = datetime(2026, 1, 5, 12, tzinfo=UTC)


class Pair(NamedTuple):
    left: int
    right: ThreadId


@dataclass(frozen=True)
class Inner:
    at: datetime
    name: Annotated[str, MaxChars(3)] = ""


@dataclass(frozen=True)
class Sample:
    id: ThreadId
    state: Annotated[str, OneOf(("on", "off"))]
    title: str
    code: Annotated[str, Pattern(re.compile("[a-z]+"))] = "x"
    word: Annotated[str, OneWord()] = ""
    sha: Annotated[str, OneWord()] | None = None
    number: int | None = None
    seen: datetime | None = None
    is_new: bool = False
    pairs: Annotated[tuple[Pair, ...], MaxItems(2)] = ()
    scores: tuple[tuple[ThreadId, float], ...] = ()
    inner: tuple[Inner, ...] = ()


BARE = Sample(1, "on", "")
FULL = Sample(
    "ABC-1", "off", "Crash", "abc", "v1.2", "0a1b", 7, AT, True, (Pair(1, 2), Pair(3, "D-4")), ((5, 0.5),),
    (Inner(AT, "abc"),),
)  # fmt: skip


@pytest.mark.parametrize("value", [BARE, FULL])
def test_what_is_written_is_read_again(value: Sample) -> None:
    assert decode(Sample, encode(value)) == value


def test_only_what_has_no_default_is_written_of_an_empty_value() -> None:
    assert encode(BARE) == {"id": 1, "state": "on", "title": "", "code": "x"}
    assert encode(FULL)["pairs"] == [[1, 2], [3, "D-4"]]


@pytest.mark.parametrize(
    ("stored", "read"),
    [
        ({"word": "two words"}, {}),
        ({"sha": "two words"}, {}),
        ({"sha": ""}, {}),
        ({"number": "7"}, {}),
        ({"number": -1}, {}),
        ({"seen": ""}, {}),
        ({"is_new": 1}, {}),
        ({"pairs": [[1, 2], [3, 4], [5, 6]]}, {"pairs": (Pair(1, 2), Pair(3, 4))}),
        ({"inner": [{"at": "2026-01-05T12:00:00Z", "name": "abcdef"}]}, {"inner": (Inner(AT, "abc"),)}),
        ({"title": 7}, {"title": "7"}),
        ({"later": "a field of another version"}, {}),
    ],
)
def test_what_is_out_of_bounds_is_cut_or_counts_as_missing(stored: dict, read: dict) -> None:
    assert decode(Sample, encode(BARE) | stored) == replace(BARE, **read)


@pytest.mark.parametrize(
    "stored",
    [
        {"id": 0},
        {"id": None},
        {"state": "maybe"},
        {"state": ["on"]},
        {"code": "X"},
        {"code": 5},
        {"seen": "yesterday"},
        {"pairs": [[1]]},
        {"pairs": [[1, 2, 3]]},
        {"pairs": [["1", 2]]},
        {"pairs": "ab"},
        {"scores": [[5, "x"]]},
        {"inner": [{}]},
        {"inner": [5]},
    ],
)
def test_anything_else_is_damage(stored: dict) -> None:
    with pytest.raises(DAMAGE):
        decode(Sample, encode(BARE) | stored)


def test_a_missing_field_without_a_default_is_damage_unless_it_is_given() -> None:
    stored = {name: item for name, item in encode(FULL).items() if name != "id"}
    with pytest.raises(DAMAGE):
        decode(Sample, stored)
    assert decode(Sample, stored, id=9) == replace(FULL, id=9)


def test_of_a_list_the_readable_values_are_read() -> None:
    stored = [encode(BARE), 5, {}, encode(FULL)]
    assert decode_each(Sample, stored) == ([BARE, FULL], False)
    assert decode_each(Sample, stored[:1]) == ([BARE], True)
