"""Loads what people write when a thread ends or something is decided: ``rules.toml``, and ``languages/`` for the words.

The rules hold for all languages, and the phrases of every language count in every sentence: people mix languages.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from bot.domain.thread import OutcomeKind
from bot.reading.endings.stems import DIGIT, StemFinder
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
_REMEMBERED_SENTENCES = 256
"""More than most comments have: each rule is tried on all sentences of a comment before the next rule."""

ANY = "any"
"""The name of the doubts that hold for every rule."""


def fold_for_stems(text: str) -> str:
    """The text in the form that is searched for stems."""
    return text.lower() + DIGIT if _DIGIT.search(text) else text.lower()


@lru_cache(maxsize=_REMEMBERED_SENTENCES)
def forms(sentence: str) -> tuple[str, str]:
    """The plain form of a sentence, which is read, and its `fold_for_stems` form."""
    words = plain(sentence)
    return words, fold_for_stems(words)


@dataclass(frozen=True, eq=False)
class Patterns:
    """Phrases for one thing in one language, as regular expressions for ``re.IGNORECASE``.

    ``{name}`` in a text stands for one of the ``words``. ``script`` is an expression for the characters of which
    each match has at least one.
    """

    texts: tuple[str, ...]
    words: StemFinder
    letters: re.RegexFlag = re.ASCII
    script: str = ""

    @cached_property
    def regex(self) -> re.Pattern[str]:
        """Compiled on first use: compiling all would take longer than a run takes until its first request."""
        # An empty alternation would match everywhere.
        pattern = "|".join(_expand(text, self.words.words) for text in self.texts) or r"(?!)"
        return re.compile(pattern, re.IGNORECASE | self.letters)

    @cached_property
    def stems(self) -> tuple[str, ...]:
        """Texts of which at least one is in the `fold_for_stems` form of any match."""
        return self.words.stems(self.texts)

    def may_be_in(self, folded: str) -> bool:
        """Whether the expressions are worth trying: a quick test that most texts fail."""
        for stem in self.stems:  # noqa: SIM110 - twice as fast as any()
            if stem in folded:
                return True
        return False

    def is_in(self, text: str) -> bool:
        return bool(self.regex.search(text))


Foreign = frozenset[Patterns]
"""The phrases and doubts of other languages than English that are worth trying on a sentence."""


class PhraseIndex:
    """Tells which phrases of languages other than English are worth trying on a text.

    There are many, and few texts have any of their stems: a text is cut into pieces, each of which is looked up among
    the pieces of all stems. The stems of a language in another script are not even computed before the script is seen.
    """

    def __init__(self) -> None:
        self._scripts: dict[str, _StemIndex] = {}
        self.find = lru_cache(maxsize=_REMEMBERED_SENTENCES)(self._find)

    def add(self, patterns: Patterns) -> None:
        self._scripts.setdefault(patterns.script, _StemIndex()).patterns.append(patterns)

    def _find(self, folded: str) -> Foreign:
        """Those with a stem in the text, or a piece of one. Remembered, since each of many sets asks."""
        pieces = _pieces(folded)
        is_ascii = folded.isascii()
        seen = [
            index
            for script, index in self._scripts.items()
            if not script or (not is_ascii and re.search(script, folded))
        ]
        return frozenset([patterns for index in seen for patterns in index.find(folded, pieces)])


class _StemIndex:
    """Finds expressions by pieces of their stems."""

    def __init__(self) -> None:
        self.patterns: list[Patterns] = []

    @cached_property
    def _by_piece(self) -> Mapping[str, list[Patterns]]:
        return self._sorted(_piece_of)

    @cached_property
    def _by_short_stem(self) -> Mapping[str, list[Patterns]]:
        return self._sorted(lambda stem: None if _piece_of(stem) else stem)

    def _sorted(self, key_of: Callable[[str], str | None]) -> Mapping[str, list[Patterns]]:
        found: dict[str, list[Patterns]] = {}
        for patterns in self.patterns:
            for key in {key_of(stem) for stem in patterns.stems} - {None}:
                found.setdefault(key or "", []).append(patterns)
        return found

    def find(self, folded: str, pieces: set[str]) -> Iterator[Patterns]:
        for piece in self._by_piece.keys() & pieces:
            yield from self._by_piece[piece]
        for stem, patterns in self._by_short_stem.items():
            if stem in folded:
                yield from patterns


_ASCII_PIECE, _PIECE = 4, 2
"""Characters of a piece: of words in ASCII letters, and of others, which are rarer."""


def _pieces(text: str) -> set[str]:
    pieces = {text[at : at + _ASCII_PIECE] for at in range(len(text) - _ASCII_PIECE + 1)}
    if not text.isascii():
        pieces.update([text[at : at + _PIECE] for at in range(len(text))], text)
    return pieces


def _piece_of(stem: str) -> str | None:
    """The last piece of a stem, as words differ more in their ends; None if it is too short."""
    if stem.isascii():
        return stem[-_ASCII_PIECE:] if len(stem) >= _ASCII_PIECE else None
    last = max(at for at, char in enumerate(stem) if not char.isascii())
    return stem[max(last - 1, 0) : last + 1]


@dataclass(frozen=True)
class PhraseSet:
    """Different phrases for one thing: those in English, and those in other languages, which are in the index."""

    by_language: Mapping[str, Patterns]
    index: PhraseIndex

    def __post_init__(self) -> None:
        for patterns in self._foreign:
            self.index.add(patterns)

    @cached_property
    def _foreign(self) -> tuple[Patterns, ...]:
        return tuple(patterns for language, patterns in self.by_language.items() if language != ENGLISH)

    @property
    def patterns(self) -> tuple[str, ...]:
        return tuple(text for patterns in self.by_language.values() for text in patterns.texts)

    def find_in(self, folded: str, foreign: Foreign) -> list[Patterns]:
        """Those worth trying on a sentence, which is given in its `fold_for_stems` form."""
        english = self.by_language.get(ENGLISH)
        found = [english] if english and english.may_be_in(folded) else []
        return found + [patterns for patterns in self._foreign if patterns in foreign] if foreign else found

    def may_be_in(self, folded: str) -> bool:
        """Whether the expressions are worth trying on a text of any length: a quick test that most texts fail."""
        return any(patterns.may_be_in(folded) for patterns in self.by_language.values())

    def search(self, text: str, foreign: Foreign) -> re.Match[str] | None:
        """The first match in a plain sentence or a part of it."""
        english = self.by_language.get(ENGLISH)
        first = english.regex.search(text) if english else None
        for patterns in self._foreign if foreign else ():
            match = patterns.regex.search(text) if patterns in foreign else None
            if match and (first is None or match.start() < first.start()):
                first = match
        return first

    def is_in(self, sentence: str) -> bool:
        """Whether a sentence has one of the phrases."""
        words, folded = forms(sentence)
        return self.search(words, self.index.find(folded)) is not None

    def split(self, text: str, foreign: Foreign) -> list[str]:
        """The parts of a plain sentence, or of a part of it, between the phrases."""
        parts = [text]
        for language, patterns in self.by_language.items():
            if language == ENGLISH or patterns in foreign:
                parts = [piece for part in parts for piece in patterns.regex.split(part)]
        return parts

    def without(self, left_out: frozenset[str], index: PhraseIndex) -> PhraseSet:
        kept = {
            language: replace(patterns, texts=tuple(text for text in patterns.texts if text not in left_out))
            for language, patterns in self.by_language.items()
        }
        return PhraseSet({language: patterns for language, patterns in kept.items() if patterns.texts}, index)


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
    needed: Patterns | None
    """What the sentence must contain, and is looked up in the index of doubts; None for English."""


@dataclass(frozen=True)
class Rule:
    """One table ``[rule.NAME]``. A rule without a ``kind`` states no ending."""

    phrases: PhraseSet
    doubt_index: PhraseIndex
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
        index = PhraseIndex()
        return replace(
            self,
            rules={
                name: replace(rule, phrases=rule.phrases.without(left_out, index)) for name, rule in self.rules.items()
            },
        )


@lru_cache(maxsize=1)
def phrase_book() -> PhraseBook:
    """The phrases shipped with the program, loaded on first use."""
    return read_book(_read_toml(RULES_FILE), read_languages())


@lru_cache(maxsize=1)
def read_languages() -> dict[str, dict[str, Any]]:
    """The parsed files of phrases by language, English first."""
    paths = sorted(LANGUAGES_FOLDER.glob("*.toml"), key=lambda path: (path.stem != ENGLISH, path.stem))
    return {path.stem: _read_toml(path) for path in paths}


def _read_toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text(encoding="utf-8"))


def has_phrase(name: str, sentence: str) -> bool:
    """Whether a phrase of the set with this name is in the sentence."""
    return phrase_book().sets[name].is_in(sentence)


def read_book(rules: Mapping[str, Any], languages: Mapping[str, Mapping[str, Any]]) -> PhraseBook:
    """Builds a book from the parsed files. Raises KeyError, TypeError or ValueError if one is invalid."""
    index, doubt_index = PhraseIndex(), PhraseIndex()
    files = {
        code: _Language(toml, rules["words"], None if code == ENGLISH else doubt_index)
        for code, toml in languages.items()
    }
    shared = StemFinder({name: joined(text) for name, text in rules["words"].items()})
    names = dict.fromkeys(name for file in files.values() for name in file.sets)

    def phrase_set(*parts: str) -> PhraseSet:
        by_language = {code: file.patterns(parts) for code, file in files.items()}
        return PhraseSet({code: patterns for code, patterns in by_language.items() if patterns.texts}, index)

    def doubts(*parts: str) -> tuple[Doubt, ...]:
        return tuple(doubt for part in parts for file in files.values() for doubt in file.doubts.get(part, ()))

    def rule(name: str, kind: str = "", names: str = "", phrases: Sequence[str] = (), **fields: Any) -> Rule:
        named = Patterns((f"{{{names}}}",), shared) if names else None
        for key in ("unless", "denied_by", "doubted_by"):
            fields[key] = doubts(*fields.get(key, ()))
        fields["unless"] += doubts(ANY)
        kind_of_ending = OutcomeKind(kind) if kind else None
        own_phrases = phrase_set(*(phrases or (name,)))
        return Rule(own_phrases, doubt_index, kind_of_ending, names=names, named=named, **fields)

    return PhraseBook(
        {name: phrase_set(name) for name in names}, {name: rule(name, **table) for name, table in rules["rule"].items()}
    )


class _Language:
    """The parsed file of one language."""

    def __init__(self, toml: Mapping[str, Any], words: Mapping[str, str], doubt_index: PhraseIndex | None) -> None:
        self._doubt_index = doubt_index
        self._letters = _WORD_LETTERS[toml["word_letters"]]
        self._script = toml.get("script", "")
        self._words = StemFinder({name: joined(text) for name, text in {**words, **toml.get("words", {})}.items()})
        self.sets = {
            name: tuple(map(self._parse_phrase, rows)) for name, rows in toml.items() if isinstance(rows, list)
        }
        self.doubts = {name: tuple(map(self._parse_doubt, rows)) for name, rows in toml.get("doubt", {}).items()}

    def patterns(self, names: Iterable[str]) -> Patterns:
        """The phrases of some sets together."""
        texts = tuple(text for name in names for text in self.sets.get(name, ()))
        return Patterns(texts, self._words, self._letters, self._script)

    def _parse_phrase(self, row: Mapping[str, Any]) -> str:
        if "whole" in row:
            return rf"\A(?:{joined(row['whole'])})\Z"
        if "start" in row:
            return rf"\A(?:{joined(row['start'])})"
        start, end = _WORD_EDGES[self._letters]
        return end.sub(r"\\b", start.sub(r"\\b", joined(row["phrase"])))

    def _parse_doubt(self, row: Mapping[str, Any]) -> Doubt:
        def patterns(value: str | list[str]) -> Patterns:
            texts = tuple(map(joined, [value] if isinstance(value, str) else value))
            return Patterns(texts, self._words, self._letters, self._script)

        def optional(key: str) -> Patterns | None:
            return patterns(row[key]) if key in row else None

        looks = tuple(
            DoubtCondition(key.removeprefix("no_"), patterns(row[key]), not key.startswith("no_"))
            for key in row
            if key not in _NON_CONDITION_KEYS
        )
        needed = next(look.phrases for look in looks if look.must_be_there) if self._doubt_index else None
        if self._doubt_index and needed:
            self._doubt_index.add(needed)
        return Doubt(
            looks, optional("ignoring"), row.get("earlier", False), row.get("undone_in", ""), optional("other_product"),
            needed,
        )  # fmt: skip


def joined(text: str) -> str:
    """An expression that was written in several lines."""
    return _LINE_START.sub("", text)


def _expand(text: str, words: Mapping[str, str]) -> str:
    """The pattern with its ``{words}`` filled in."""
    return _PLACEHOLDER.sub(lambda match: f"(?:{_expand(words[match[1]], words)})", text)
