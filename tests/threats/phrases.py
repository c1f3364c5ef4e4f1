"""Every phrase that the reader looks for, with a text that it matches: what a stranger writes to slow it down."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType

from hypothesis import HealthCheck, Phase, find, settings
from hypothesis import strategies as st

from bot.reading import requests, versions
from bot.reading.endings import engine, phrases, quote, stated_release, supersession
from bot.reading.endings.phrases import phrase_book

TABLES: tuple[ModuleType, ...] = (engine, phrases, quote, requests, stated_release, supersession, versions)
"""Modules with expressions of their own."""

RUNS = [*"-.,;:!?()[]{}<>#@/\\'\"`*_~|&^%$+=0a \u2013\u2014\u3002", "a ", "not ", "1.", "- ", ". ", "#1 ", "a/", "n't "]
"""What is repeated after the beginning of a phrase."""

_AT_START = {"_TYPED_COMMAND", "_COMMAND_LINE", "_ANSWERED"}
_FIRST_MATCH = settings(
    max_examples=20, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck)
)


@dataclass(frozen=True)
class Phrase:
    """An expression of a phrase table, as it is used there."""

    name: str
    pattern: re.Pattern[str]

    @property
    def table(self) -> str:
        return re.split(r"[.\[]", self.name)[0]

    def apply(self, text: str) -> object:
        """How the expression is used: at the start of a text, or anywhere in it."""
        if self.name.rpartition(".")[2] in _AT_START:
            return self.pattern.match(text)
        return sum(1 for _ in self.pattern.finditer(text))


@cache
def all_phrases() -> tuple[Phrase, ...]:
    """One for each expression of the modules, and for each alternative of the phrases and the doubts."""
    return (*_patterns(), *_alternatives())


def _patterns() -> Iterator[Phrase]:
    for table in TABLES:
        for name, value in vars(table).items():
            if isinstance(value, re.Pattern):
                yield Phrase(f"{table.__name__.rpartition('.')[2]}.{name}", value)


def _alternatives() -> Iterator[Phrase]:
    book = phrase_book()
    parts = [(name, patterns) for name, each in book.sets.items() for patterns in each.by_language.values()]
    doubts = {id(doubt): doubt for rule in book.rules.values() for doubt in rule.unless + rule.denied_by}
    for number, doubt in enumerate(doubts.values()):
        looks = (*(check.phrases for check in doubt.looks), doubt.ignoring, doubt.other_product)
        parts += [(f"doubt {number}", patterns) for patterns in looks if patterns]
    for name, patterns in parts:
        for index, text in enumerate(patterns.texts):
            yield Phrase(f"{name}[{index}]", replace(patterns, texts=(text,)).regex)


@cache
def matching_text(phrase: Phrase) -> str:
    """A short text that the phrase matches, the same in every run."""
    return find(st.from_regex(phrase.pattern), lambda _: True, settings=_FIRST_MATCH, random=random.Random(1))
