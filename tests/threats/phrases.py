"""Every phrase that reading goes by, with a text that it fits: what a stranger writes to make it work hardest."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from types import ModuleType

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

from bot.reading import requests, versions
from bot.reading.endings import engine, phrases, quote, stated_release, supersession
from bot.reading.endings.phrases import Doubt, PhraseSet, phrase_book

TABLES: tuple[ModuleType, ...] = (engine, phrases, quote, requests, stated_release, supersession, versions)
"""Modules with expressions of their own."""

RUNS = [*"-.,;:!?()[]{}<>#@/\\'\"`*_~|&^%$+=0a \u2013\u2014\u3002", "a ", "not ", "1.", "- ", ". ", "#1 ", "a/", "n't "]
"""What follows a phrase's beginning, over and over."""

_AT_START = {"_TYPED", "_LINE", "_ANSWERED"}
_FIRST_FOUND = settings(
    max_examples=20, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Phrase:
    """An expression of a phrase table, as it is used there."""

    name: str
    pattern: re.Pattern[str]

    @property
    def fits(self) -> Callable[[str], object]:
        """How the expression is asked: for the start of a text, or for any place in it."""
        return self.pattern.match if self.name.rpartition(".")[2] in _AT_START else self._everywhere

    def _everywhere(self, text: str) -> object:
        return sum(1 for _ in self.pattern.finditer(text))


def all_phrases() -> list[Phrase]:
    """One for each expression of the modules, and for each alternative of the phrases and the doubts."""
    return [phrase for table in TABLES for phrase in _of(table)] + list(_in_the_book())


def _of(table: ModuleType) -> Iterator[Phrase]:
    for name, value in vars(table).items():
        if isinstance(value, re.Pattern):
            yield Phrase(f"{table.__name__.rpartition('.')[2]}.{name}", value)


def _in_the_book() -> Iterator[Phrase]:
    book = phrase_book()
    for name, ways in book.sets.items():
        yield from _alternatives(name, ways)
    doubts = {id(doubt): doubt for rule in book.rules.values() for doubt in rule.unless + rule.denied_by}
    for number, doubt in enumerate(doubts.values()):
        for ways in _looked_for(doubt):
            yield from _alternatives(f"doubt {number}", ways)


def _looked_for(doubt: Doubt) -> list[PhraseSet]:
    optional = (doubt.ignoring, doubt.other_product)
    return [look.phrases for look in doubt.looks] + [ways for ways in optional if ways]


def _alternatives(name: str, ways: PhraseSet) -> Iterator[Phrase]:
    for at, pattern in enumerate(ways.patterns):
        yield Phrase(f"{name}[{at}]", re.compile(pattern, re.IGNORECASE))


@cache
def beginning(phrase: Phrase) -> str:
    """A short text that the phrase fits, the same in every run."""
    return find(st.from_regex(phrase.pattern), lambda _: True, settings=_FIRST_FOUND, random=random.Random(1))
