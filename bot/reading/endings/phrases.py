"""Loads ``phrases.toml``: what people write when a thread ends or something is decided, and what takes it back."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from bot.domain.thread import OutcomeKind
from bot.reading.endings.stems import DIGIT, stems

FILE = Path(__file__).with_name("phrases.toml")
MERGE_BOT = re.compile(r"(?:bors|homu|mergify|merge-?queue|github-merge-queue)(?:\[bot\]|-?bot)?\Z", re.IGNORECASE)
"""The login of a program that closes threads by merging what fixes them."""

_WORD = re.compile(r"\{([a-z_]+)\}")
_LINE_START = re.compile(r"(?:\A|\n) *")
_WORD_BEGINS, _WORD_ENDS = re.compile(r"\A(?=[A-Za-z0-9])"), re.compile(r"(?<=[A-Za-z0-9])(?<!\\.)\Z")
_OTHER_KEYS = frozenset({"takes_back", "ignoring", "earlier", "undone_in", "other_product"})
_DIGIT = re.compile(r"\d")


def plain(text: str) -> str:
    """The text in which stems are looked for."""
    return text.lower() + DIGIT if _DIGIT.search(text) else text.lower()


@dataclass(frozen=True)
class PhraseSet:
    """Ways of saying one thing, as regular expressions for ``re.IGNORECASE``."""

    patterns: tuple[str, ...]

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Compiled at its first use: all sets together take longer than a run has until it asks GitHub."""
        # Without any alternative the pattern would match everywhere.
        return re.compile("|".join(self.patterns) or r"(?!)", re.IGNORECASE)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Texts one of which is in the `plain` form of whatever a pattern matches."""
        return stems(self.patterns)

    def may_be_in(self, plain_text: str) -> bool:
        """Whether it is worth trying the patterns: a quick test that most texts fail."""
        for stem in self.stems:  # noqa: SIM110 - twice as fast as any()
            if stem in plain_text:
                return True
        return False

    def is_in(self, text: str) -> bool:
        return bool(self.regex.search(text))


@dataclass(frozen=True)
class Look:
    """A place around a phrase, by the name that ``PhraseMatch`` gives it, and what must be in it or not."""

    place: str
    phrases: PhraseSet
    must_be_there: bool


@dataclass(frozen=True)
class Doubt:
    """One row of ``[[doubt.NAME]]``: it takes a phrase back when all its conditions hold."""

    looks: tuple[Look, ...]
    ignoring: PhraseSet | None
    earlier: bool
    undone_in: str
    other_product: PhraseSet | None


@dataclass(frozen=True)
class Rule:
    """One table ``[rule.NAME]``. A rule without a ``kind`` states no ending."""

    phrases: PhraseSet
    kind: OutcomeKind | None = None
    evidence: str = ""
    confidence: float = 0.0
    names: str = ""
    named: PhraseSet | None = None
    explicit: bool = False
    only: tuple[str, ...] = ()
    unless: tuple[Doubt, ...] = ()
    denied_by: tuple[Doubt, ...] = ()


@dataclass(frozen=True)
class PhraseBook:
    """All of ``phrases.toml``. The rules stand in the order in which they are tried, the surest first."""

    sets: Mapping[str, PhraseSet]
    rules: Mapping[str, Rule]

    @cached_property
    def endings(self) -> tuple[Rule, ...]:
        """The rules that state an ending."""
        return tuple(rule for rule in self.rules.values() if rule.kind)

    def without(self, left_out: frozenset[str]) -> PhraseBook:
        """The book without some patterns of its rules, for measurements."""

        def rest(rule: Rule) -> Rule:
            return replace(rule, phrases=PhraseSet(tuple(p for p in rule.phrases.patterns if p not in left_out)))

        return replace(self, rules={name: rest(rule) for name, rule in self.rules.items()})


@lru_cache(maxsize=1)
def phrase_book() -> PhraseBook:
    """The phrases that come with the program, loaded when they are first needed."""
    return read_book(tomllib.loads(FILE.read_text(encoding="utf-8")))


def is_said(name: str, text: str) -> bool:
    """Whether a phrase of the set with this name is in the text."""
    return phrase_book().sets[name].is_in(text)


def read_book(toml: Mapping[str, Any]) -> PhraseBook:
    """The parsed file as a book. Raises KeyError, TypeError or ValueError when the file is wrong."""
    words = toml["words"]
    sets = {
        name: PhraseSet(tuple(_phrase(row, words) for row in rows)) for name, rows in toml.items() if type(rows) is list
    }
    doubts = {name: tuple(_doubt(row, words) for row in rows) for name, rows in toml["doubt"].items()}

    def rule(name: str, kind: str = "", names: str = "", phrases: Sequence[str] = (), **given: Any) -> Rule:
        patterns = tuple(pattern for each in phrases or (name,) for pattern in sets[each].patterns)
        for key in ("unless", "denied_by"):
            given[key] = tuple(doubt for each in given.get(key, ()) for doubt in doubts[each])
        named = PhraseSet((_full(words[names], words),)) if names else None
        return Rule(PhraseSet(patterns), OutcomeKind(kind) if kind else None, names=names, named=named, **given)

    return PhraseBook(sets, {name: rule(name, **table) for name, table in toml["rule"].items()})


def _phrase(row: Mapping[str, Any], words: Mapping[str, str]) -> str:
    if "phrase" not in row:
        return rf"\A(?:{_full(row['whole'], words)})\Z" if "whole" in row else rf"\A(?:{_full(row['start'], words)})"
    text = _LINE_START.sub("", row["phrase"])
    return _full(_WORD_ENDS.sub(r"\\b", _WORD_BEGINS.sub(r"\\b", text)), words)


def _full(text: str, words: Mapping[str, str]) -> str:
    """The pattern with its ``{words}`` filled in."""
    return _WORD.sub(lambda found: f"(?:{_full(words[found[1]], words)})", _LINE_START.sub("", text))


def _doubt(row: Mapping[str, Any], words: Mapping[str, str]) -> Doubt:
    def phrases(given: str | list[str]) -> PhraseSet:
        return PhraseSet(tuple(_full(text, words) for text in ([given] if isinstance(given, str) else given)))

    def optional(key: str) -> PhraseSet | None:
        return phrases(row[key]) if key in row else None

    looks = tuple(
        Look(key.removeprefix("no_"), phrases(row[key]), not key.startswith("no_"))
        for key in row
        if key not in _OTHER_KEYS
    )
    return Doubt(
        looks, optional("ignoring"), row.get("earlier", False), row.get("undone_in", ""), optional("other_product")
    )
