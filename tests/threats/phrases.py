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

from bot.reading import requests as intent
from bot.reading import versions as asked
from bot.reading.endings import answer_phrases as answers
from bot.reading.endings import answer_phrases as duplicates
from bot.reading.endings import decisions as deciding
from bot.reading.endings import decisions as hedging
from bot.reading.endings import doubts, phrases
from bot.reading.endings import engine as verdict
from bot.reading.endings import phrases as remedies
from bot.reading.endings import refusal_phrases as refusals
from bot.reading.endings.phrases import PhraseSet

TABLES: tuple[ModuleType, ...] = (
    answers, asked, deciding, doubts, duplicates, hedging, intent, phrases, refusals, remedies, verdict,
)  # fmt: skip

RUNS = [*"-.,;:!?()[]{}<>#@/\\'\"`*_~|&^%$+=0a \u2013\u2014\u3002", "a ", "not ", "1.", "- ", ". ", "#1 ", "a/", "n't "]
"""What follows a phrase's beginning, over and over."""

_WHOLE = {"BARE_CLOSING", "ASSENT", "COURTESY"}
_AT_START = {"COMMAND", "TEMPLATE_SENTENCE", "_TYPED", "_LINE"}
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
        """How the expression is asked: for the whole of a text, for its start, or for any place in it."""
        if self.name.rpartition(".")[2] in _WHOLE:
            return self.pattern.fullmatch
        return self.pattern.match if self.name.rpartition(".")[2] in _AT_START else self._everywhere

    def _everywhere(self, text: str) -> object:
        return sum(1 for _ in self.pattern.finditer(text))


def all_phrases() -> list[Phrase]:
    """One for each expression of the tables; the alternatives of one rule are told apart."""
    return [phrase for table in TABLES for phrase in _of(table)]


def _of(table: ModuleType) -> Iterator[Phrase]:
    for name, value in vars(table).items():
        place = f"{table.__name__.rpartition('.')[2]}.{name}"
        if isinstance(value, re.Pattern):
            yield Phrase(place, value)
        elif isinstance(value, PhraseSet):
            for at, way in enumerate(value.phrases):
                yield Phrase(f"{place}[{at}]", re.compile(way, re.IGNORECASE))


@cache
def beginning(phrase: Phrase) -> str:
    """A short text that the phrase fits, the same in every run."""
    return find(st.from_regex(phrase.pattern), lambda _: True, settings=_FIRST_FOUND, random=random.Random(1))
