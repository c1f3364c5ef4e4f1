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
from bot.reading.lookalikes import plain

PHRASES_FILE = Path(__file__).with_name("phrases.toml")

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_LINE_START = re.compile(r"(?:\A|\n) *")
_WORD_START, _WORD_END = re.compile(r"\A(?=[A-Za-z0-9])"), re.compile(r"(?<=[A-Za-z0-9])(?<!\\.)\Z")
_NON_CONDITION_KEYS = frozenset({"takes_back", "ignoring", "earlier", "undone_in", "other_product"})
_DIGIT = re.compile(r"\d")
FOREIGN = "foreign"
"""The name of the doubts in other languages, which hold for every rule."""


def fold_for_stems(text: str) -> str:
    """The text in the form that is searched for stems."""
    return text.lower() + DIGIT if _DIGIT.search(text) else text.lower()


@dataclass(frozen=True)
class PhraseSet:
    """Different phrases for one thing, as regular expressions for ``re.IGNORECASE``."""

    patterns: tuple[str, ...]

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Compiled on first use: compiling all sets would take longer than a run takes until its first request."""
        # An empty alternation would match everywhere. Words may be glued to Chinese characters.
        pattern = "|".join(self.patterns) or r"(?!)"
        return re.compile(pattern, re.IGNORECASE | re.ASCII if pattern.isascii() else re.IGNORECASE)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Texts of which at least one is in the `fold_for_stems` form of any match."""
        return stems(self.patterns)

    def may_be_in(self, plain_text: str) -> bool:
        """Whether the patterns are worth trying: a quick test that most texts fail."""
        for stem in self.stems:  # noqa: SIM110 - twice as fast as any()
            if stem in plain_text:
                return True
        return False

    def is_in(self, text: str) -> bool:
        return bool(self.regex.search(text))


@dataclass(frozen=True)
class DoubtCondition:
    """A part around a phrase, by its name in ``PhraseMatch``, and the phrases that must, or must not, be in it."""

    place: str
    phrases: PhraseSet
    must_be_there: bool


@dataclass(frozen=True)
class Doubt:
    """One row of ``[[doubt.NAME]]``: it takes a phrase back when all its conditions hold."""

    looks: tuple[DoubtCondition, ...]
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
    doubted_by: tuple[Doubt, ...] = ()
    by_program: bool = False


@dataclass(frozen=True)
class PhraseBook:
    """All of ``phrases.toml``. The rules are in the order in which they are tried, surest first."""

    sets: Mapping[str, PhraseSet]
    rules: Mapping[str, Rule]

    @cached_property
    def endings(self) -> tuple[Rule, ...]:
        """The rules that state an ending in the words of people."""
        return tuple(rule for rule in self.rules.values() if rule.kind and not rule.by_program)

    def without(self, left_out: frozenset[str]) -> PhraseBook:
        """A copy without some patterns of the rules, for measurements."""

        def without_patterns(rule: Rule) -> Rule:
            return replace(rule, phrases=PhraseSet(tuple(p for p in rule.phrases.patterns if p not in left_out)))

        return replace(self, rules={name: without_patterns(rule) for name, rule in self.rules.items()})


@lru_cache(maxsize=1)
def phrase_book() -> PhraseBook:
    """The phrases shipped with the program, loaded on first use."""
    return read_book(tomllib.loads(PHRASES_FILE.read_text(encoding="utf-8")))


def has_phrase(name: str, text: str) -> bool:
    """Whether a phrase of the set with this name is in the text."""
    return phrase_book().sets[name].is_in(plain(text))


def read_book(toml: Mapping[str, Any]) -> PhraseBook:
    """Builds a book from the parsed file. Raises KeyError, TypeError or ValueError if the file is invalid."""
    words = toml["words"]
    sets = {
        name: PhraseSet(tuple(_parse_phrase(row, words) for row in rows))
        for name, rows in toml.items()
        if type(rows) is list
    }
    doubts = {name: tuple(_parse_doubt(row, words) for row in rows) for name, rows in toml["doubt"].items()}

    def rule(name: str, kind: str = "", names: str = "", phrases: Sequence[str] = (), **fields: Any) -> Rule:
        patterns = tuple(pattern for each in phrases or (name,) for pattern in sets[each].patterns)
        for key in ("unless", "denied_by", "doubted_by"):
            fields[key] = tuple(doubt for each in fields.get(key, ()) for doubt in doubts[each])
        fields["unless"] += doubts[FOREIGN]
        named = PhraseSet((_expand(words[names], words),)) if names else None
        return Rule(PhraseSet(patterns), OutcomeKind(kind) if kind else None, names=names, named=named, **fields)

    return PhraseBook(sets, {name: rule(name, **table) for name, table in toml["rule"].items()})


def _parse_phrase(row: Mapping[str, Any], words: Mapping[str, str]) -> str:
    if "phrase" not in row:
        return (
            rf"\A(?:{_expand(row['whole'], words)})\Z" if "whole" in row else rf"\A(?:{_expand(row['start'], words)})"
        )
    text = _LINE_START.sub("", row["phrase"])
    return _expand(_WORD_END.sub(r"\\b", _WORD_START.sub(r"\\b", text)), words)


def _expand(text: str, words: Mapping[str, str]) -> str:
    """The pattern with its ``{words}`` filled in."""
    return _PLACEHOLDER.sub(lambda match: f"(?:{_expand(words[match[1]], words)})", _LINE_START.sub("", text))


def _parse_doubt(row: Mapping[str, Any], words: Mapping[str, str]) -> Doubt:
    def phrases(value: str | list[str]) -> PhraseSet:
        return PhraseSet(tuple(_expand(text, words) for text in ([value] if isinstance(value, str) else value)))

    def optional(key: str) -> PhraseSet | None:
        return phrases(row[key]) if key in row else None

    looks = tuple(
        DoubtCondition(key.removeprefix("no_"), phrases(row[key]), not key.startswith("no_"))
        for key in row
        if key not in _NON_CONDITION_KEYS
    )
    return Doubt(
        looks, optional("ignoring"), row.get("earlier", False), row.get("undone_in", ""), optional("other_product")
    )
