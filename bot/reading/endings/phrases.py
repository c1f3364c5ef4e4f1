"""Loads what people write when a thread ends or something is decided: ``rules.toml``, and ``languages/`` for the words.

The rules hold for all languages, and the phrases of every language count in every sentence: people mix languages.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from bot.domain.thread import OutcomeKind
from bot.reading.endings.stems import DIGIT, stems
from bot.reading.lookalikes import plain

RULES_FILE = Path(__file__).with_name("rules.toml")
LANGUAGES_FOLDER = Path(__file__).with_name("languages")
ENGLISH = "en"

_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")
_LINE_START = re.compile(r"(?:\A|\n) *")
_WORD_EDGES = {
    re.ASCII: (re.compile(r"\A(?=[A-Za-z0-9])"), re.compile(r"(?<=[A-Za-z0-9])(?<!\\.)\Z")),
    re.UNICODE: (re.compile(r"\A(?=[^\W_])"), re.compile(r"(?<=[^\W_])(?<!\\.)\Z")),
}
_WORD_LETTERS = {"ascii": re.ASCII, "all": re.UNICODE}
_NON_CONDITION_KEYS = frozenset({"takes_back", "ignoring", "earlier", "undone_in", "other_product"})
_DIGIT = re.compile(r"\d")
REMEMBERED_SENTENCES = 256
"""More than most comments have: each rule is tried on all sentences of a comment before the next rule."""

ANY = "any"
"""The name of the doubts that hold for every rule."""


def fold_for_stems(text: str) -> str:
    """The text in the form that is searched for stems."""
    return text.lower() + DIGIT if _DIGIT.search(text) else text.lower()


@dataclass(frozen=True)
class Patterns:
    """Phrases for one thing in one language, as regular expressions for ``re.IGNORECASE``."""

    texts: tuple[str, ...]
    letters: re.RegexFlag = re.ASCII

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Compiled on first use: compiling all would take longer than a run takes until its first request."""
        # An empty alternation would match everywhere.
        return re.compile("|".join(self.texts) or r"(?!)", re.IGNORECASE | self.letters)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Texts of which at least one is in the `fold_for_stems` form of any match."""
        return stems(self.texts)

    def may_be_in(self, folded: str) -> bool:
        """Whether the expressions are worth trying: a quick test that most texts fail."""
        for stem in self.stems:  # noqa: SIM110 - twice as fast as any()
            if stem in folded:
                return True
        return False

    def is_in(self, text: str) -> bool:
        return bool(self.regex.search(text))


class Vocabulary:
    """Tells which languages have phrases in a text, by plain words of which each phrase needs one.

    English is not asked. In most texts no other language has any, so their phrases cost next to nothing there.
    """

    def __init__(self, languages: Mapping[str, Iterable[str]]) -> None:
        self._patterns = {code: Patterns(tuple(texts)) for code, texts in languages.items() if code != ENGLISH}
        self.languages_in = lru_cache(maxsize=REMEMBERED_SENTENCES)(self._find_languages)

    @cached_property
    def _words(self) -> tuple[tuple[str, str], ...]:
        return tuple((word, code) for code, patterns in self._patterns.items() for word in patterns.stems)

    @cached_property
    def _ascii_words(self) -> tuple[tuple[str, str], ...]:
        """Those that a text without other characters may contain."""
        return tuple((word, code) for word, code in self._words if word.isascii())

    def _find_languages(self, folded: str) -> tuple[str, ...]:
        """The languages, English first. Remembered, since each of many sets asks."""
        words = self._ascii_words if folded.isascii() else self._words
        return (ENGLISH, *dict.fromkeys([code for word, code in words if word in folded]))


@dataclass(frozen=True)
class PhraseSet:
    """Different phrases for one thing in all languages."""

    by_language: Mapping[str, Patterns]
    vocabulary: Vocabulary

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(text for patterns in self.by_language.values() for text in patterns.texts)

    def find_in(self, folded: str) -> list[Patterns]:
        """Those worth trying on a text, which is given in its `fold_for_stems` form."""
        languages = self.vocabulary.languages_in(folded)
        found = [self.by_language[language] for language in languages if language in self.by_language]
        return [patterns for patterns in found if patterns.may_be_in(folded)]

    def may_be_in(self, folded: str) -> bool:
        """Whether the expressions are worth trying: a quick test that most texts fail."""
        return bool(self.find_in(folded))

    def search(self, text: str) -> re.Match[str] | None:
        """The first match in a plain text."""
        found = [match for each in self.find_in(fold_for_stems(text)) if (match := each.regex.search(text))]
        return min(found, key=re.Match.start) if found else None

    def is_in(self, text: str) -> bool:
        """Whether a plain text has one of the phrases."""
        return self.search(text) is not None

    def split(self, text: str) -> list[str]:
        """The parts of a plain text between the phrases."""
        parts = [text]
        for patterns in self.find_in(fold_for_stems(text)):
            parts = [piece for part in parts for piece in patterns.regex.split(part)]
        return parts

    def without(self, left_out: frozenset[str]) -> PhraseSet:
        kept = {
            language: replace(patterns, texts=tuple(text for text in patterns.texts if text not in left_out))
            for language, patterns in self.by_language.items()
        }
        return replace(self, by_language=kept)


@dataclass(frozen=True)
class DoubtCondition:
    """A part around a phrase, by its name in ``PhraseMatch``, and the phrases that must, or must not, be in it."""

    place: str
    phrases: Patterns
    must_be_there: bool


@dataclass(frozen=True)
class Doubt:
    """One row of ``[[doubt.NAME]]``: it takes a phrase back when all its conditions hold."""

    looks: tuple[DoubtCondition, ...]
    ignoring: Patterns | None
    earlier: bool
    undone_in: str
    other_product: Patterns | None


@dataclass(frozen=True)
class Rule:
    """One table ``[rule.NAME]``. A rule without a ``kind`` states no ending."""

    phrases: PhraseSet
    kind: OutcomeKind | None = None
    evidence: str = ""
    confidence: float = 0.0
    names: str = ""
    named: Patterns | None = None
    explicit: bool = False
    only: tuple[str, ...] = ()
    unless: tuple[Doubt, ...] = ()
    denied_by: tuple[Doubt, ...] = ()
    doubted_by: tuple[Doubt, ...] = ()
    by_program: bool = False


@dataclass(frozen=True)
class PhraseBook:
    """The rules with the phrases of all languages. The rules are in the order in which they are tried, surest first."""

    sets: Mapping[str, PhraseSet]
    rules: Mapping[str, Rule]

    @cached_property
    def endings(self) -> tuple[Rule, ...]:
        """The rules that state an ending in the words of people."""
        return tuple(rule for rule in self.rules.values() if rule.kind and not rule.by_program)

    def without(self, left_out: frozenset[str]) -> PhraseBook:
        """A copy without some patterns of the rules, for measurements."""
        rules = {name: replace(rule, phrases=rule.phrases.without(left_out)) for name, rule in self.rules.items()}
        return replace(self, rules=rules)


@lru_cache(maxsize=1)
def phrase_book() -> PhraseBook:
    """The phrases shipped with the program, loaded on first use."""
    return read_book(_read_toml(RULES_FILE), read_languages())


def read_languages() -> dict[str, dict[str, Any]]:
    """The parsed files of phrases by language, English first."""
    paths = sorted(LANGUAGES_FOLDER.glob("*.toml"), key=lambda path: (path.stem != ENGLISH, path.stem))
    return {path.stem: _read_toml(path) for path in paths}


def _read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def has_phrase(name: str, text: str) -> bool:
    """Whether a phrase of the set with this name is in the text."""
    return phrase_book().sets[name].is_in(plain(text))


def read_book(rules: Mapping[str, Any], languages: Mapping[str, Mapping[str, Any]]) -> PhraseBook:
    """Builds a book from the parsed files. Raises KeyError, TypeError or ValueError if one is invalid."""
    files = {code: _Language(toml, rules["words"]) for code, toml in languages.items()}
    vocabulary = Vocabulary({code: file.all_texts for code, file in files.items()})
    names = dict.fromkeys(name for file in files.values() for name in file.sets)

    def phrase_set(*parts: str) -> PhraseSet:
        by_language = {code: file.patterns(parts) for code, file in files.items()}
        return PhraseSet({code: patterns for code, patterns in by_language.items() if patterns.texts}, vocabulary)

    def doubts(*parts: str) -> tuple[Doubt, ...]:
        return tuple(doubt for part in parts for file in files.values() for doubt in file.doubts.get(part, ()))

    def rule(name: str, kind: str = "", names: str = "", phrases: Sequence[str] = (), **fields: Any) -> Rule:
        named = Patterns((_expand(rules["words"][names], rules["words"]),)) if names else None
        for key in ("unless", "denied_by", "doubted_by"):
            fields[key] = doubts(*fields.get(key, ()))
        fields["unless"] += doubts(ANY)
        kind_of_ending = OutcomeKind(kind) if kind else None
        return Rule(phrase_set(*(phrases or (name,))), kind_of_ending, names=names, named=named, **fields)

    return PhraseBook(
        {name: phrase_set(name) for name in names}, {name: rule(name, **table) for name, table in rules["rule"].items()}
    )


class _Language:
    """The parsed file of one language, with its expressions filled in."""

    def __init__(self, toml: Mapping[str, Any], words: Mapping[str, str]) -> None:
        self._letters = _WORD_LETTERS[toml["word_letters"]]
        self._words = {**words, **toml.get("words", {})}
        self.sets = {
            name: tuple(map(self._parse_phrase, rows)) for name, rows in toml.items() if isinstance(rows, list)
        }
        self.doubts = {name: tuple(map(self._parse_doubt, rows)) for name, rows in toml.get("doubt", {}).items()}

    @property
    def all_texts(self) -> Iterator[str]:
        return (text for texts in self.sets.values() for text in texts)

    def patterns(self, names: Iterable[str]) -> Patterns:
        """The phrases of some sets together."""
        return Patterns(tuple(text for name in names for text in self.sets.get(name, ())), self._letters)

    def _parse_phrase(self, row: Mapping[str, Any]) -> str:
        if "whole" in row:
            return rf"\A(?:{self._expand(row['whole'])})\Z"
        if "start" in row:
            return rf"\A(?:{self._expand(row['start'])})"
        start, end = _WORD_EDGES[self._letters]
        return self._expand(end.sub(r"\\b", start.sub(r"\\b", _LINE_START.sub("", row["phrase"]))))

    def _parse_doubt(self, row: Mapping[str, Any]) -> Doubt:
        def patterns(value: str | list[str]) -> Patterns:
            return Patterns(tuple(map(self._expand, [value] if isinstance(value, str) else value)), self._letters)

        def optional(key: str) -> Patterns | None:
            return patterns(row[key]) if key in row else None

        looks = tuple(
            DoubtCondition(key.removeprefix("no_"), patterns(row[key]), not key.startswith("no_"))
            for key in row
            if key not in _NON_CONDITION_KEYS
        )
        return Doubt(
            looks, optional("ignoring"), row.get("earlier", False), row.get("undone_in", ""), optional("other_product")
        )

    def _expand(self, text: str) -> str:
        return _expand(text, self._words)


def _expand(text: str, words: Mapping[str, str]) -> str:
    """The pattern with its ``{words}`` filled in."""
    return _PLACEHOLDER.sub(lambda match: f"(?:{_expand(words[match[1]], words)})", _LINE_START.sub("", text))
