"""Loads the forms of questions about earlier decisions and discussions: ``[recall]`` in the file of each language.

``bot/reading/endings/languages/en.toml`` explains how they are written. The phrases of the settings are written in the
same way, without classes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cached_property, lru_cache
from itertools import product
from typing import Any

from bot.reading.endings.phrases import ENGLISH, joined, read_languages
from bot.reading.text_edges import HANGUL, UNSPACED

MAX_GAP_WORDS = 4
"""Most words that a ``*`` in a phrase stands for; three times as many characters where words have no spaces between."""

_MAX_LEAD = 4
_MAX_TIMES = 3
_CHARACTER_WORDS = f"{UNSPACED}{HANGUL}"
"""Scripts in which each character counts as a word."""

TOKEN = re.compile(rf"[{_CHARACTER_WORDS}]|[^\s{_CHARACTER_WORDS}]+")
_HAS_CHARACTER_WORDS = re.compile(f"[{_CHARACTER_WORDS}]")
_PUNCTUATION = "\"'`“”‘’«».,;:!?¿¡()[]{}<>*_~…-–—「」『』《》【】・"
_QUOTES = "\"'“”‘’«»`"
_CONTRACTIONS = (("n't", ""), ("'s", " is"), ("'d", " did"), ("'ve", " have"), ("'re", " are"), ("'ll", " will"))
_BARE_CONTRACTIONS = {
    "didnt": "did",
    "dont": "do",
    "havent": "have",
    "hasnt": "has",
    "wasnt": "was",
    "whats": "what is",
    "cant": "ca",
}
_REQUEST_VERBS = frozenset({"search", "find", "show", "list", "summarize", "summarise", "remind", "tell"})
"""A phrase of the settings that begins with one of these is a request."""

_NEVER = r"(?!)"


class Form(StrEnum):
    """What a sentence of a form does, which decides how it must end. The values are tables in the files."""

    ASKS = "asks"
    """A question: it does not end like a statement."""
    MARKED = "marked"
    """A statement but for its question mark."""
    REQUESTS = "requests"
    """A request to whoever can: it may end with a full stop, and gives no advice."""
    STATES = "states"
    """A statement: it asks only if it ends in a question, or is all that a comment says."""


def plain_words(token: str) -> list[str]:
    """A typed word in lower case, without punctuation around it and without ``not``; nothing for account names."""
    if token.startswith(("@", *_QUOTES)) and not token.strip(_PUNCTUATION).startswith("#"):
        token = "" if token.startswith("@") else f"\0{token}"  # a quotation begins no question
    word = token.strip(_PUNCTUATION).casefold()
    for end, full in _CONTRACTIONS:
        word = word.removesuffix(end) + full if word.endswith(end) else word
    return [part for part in _BARE_CONTRACTIONS.get(word, word).split() if part != "not"]


class QuestionForms:
    """The forms of one language, compiled when they are needed."""

    def __init__(self, recall: Mapping[str, Any]) -> None:
        verbs = recall.get("verbs", {})
        self.words = {name: joined(text) for name, text in {**recall.get("words", {}), **verbs}.items()}
        self.verbs = frozenset(f"<{name}>" for name in verbs)
        self._recall, self._patterns = recall, dict[str, re.Pattern[str]]()
        self.may_end_with_stop: bool = recall.get("may_end_with_stop", False)
        self.generic, self.plain_verbs = (
            frozenset(self.words.get(name, "").split("|")) for name in ("generic", "plain")
        )

    @cached_property
    def rules(self) -> tuple[FormRule, ...]:
        return tuple(
            FormRule(form, text, self) for form in Form for row in self._recall.get(form, ()) for text in row["forms"]
        )

    def may_be_in(self, text: str) -> bool:
        """Whether a text has a word of some question. A quick test that saves the rules for few texts."""
        return not (self._is_in_another_script and text.isascii()) and bool(self.pattern("may_ask").search(text))

    @cached_property
    def _is_in_another_script(self) -> bool:
        signs = self.pattern("may_ask").pattern
        return bool(signs) and not re.search(r"(?<!\\)[A-Za-z]", signs)

    def pattern(self, name: str) -> re.Pattern[str]:
        """The expression of this name, one that never matches if the language has none."""
        if name not in self._patterns:
            self._patterns[name] = _compile(joined(self._recall.get(name, _NEVER)))
        return self._patterns[name]

    @cached_property
    def lead(self) -> str:
        """The pattern of the words before a question that do not change it."""
        return rf"(?:{self.part('<lead>')}){{0,{_MAX_LEAD}}}+" if "lead" in self.words else ""

    @cached_property
    def times(self) -> str:
        """The pattern of the words of time after a question."""
        return rf"(?:{self.part('<time>')}){{0,{_MAX_TIMES}}}" if "time" in self.words else ""

    @cached_property
    def trailing_time(self) -> re.Pattern[str]:
        """Words of time at the end of a topic, as typed."""
        choices = _expanded(self.words.get("time", ""), self.words)
        typed = sorted((re.escape(choice) for choice in choices), key=len, reverse=True)
        ends = [each if _HAS_CHARACTER_WORDS.search(each) else rf"(?:\s|,){each}" for each in typed if each]
        return _compile(rf"(?:{'|'.join(ends) or _NEVER})\Z")

    @cached_property
    def confirmation_end(self) -> re.Pattern[str]:
        """The end of a statement that asks whether it is true."""
        return _compile(rf"(?<![\s,])[\s,]++{joined(self._recall.get('confirmation', _NEVER))}\W*+\Z")

    @cached_property
    def opening(self) -> re.Pattern[str]:
        """The first words of all forms: a quick test that saves the rules for few sentences."""
        openings = "|".join(dict.fromkeys(rule.opening for rule in self.rules)) or _NEVER
        return re.compile(f"{self.lead}(?:{openings})")

    def part(self, word: str) -> str:
        """The pattern of one word of a form; none for a ``*``, as how long a gap is depends on the form."""
        match word:
            case "{thing}":
                return r"(?!to |that )(?P<topic>(?:\S+ )+?)"
            case "{topic}":
                return r"(?P<topic>(?:\S+ )+?)"
            case "{noun}":
                return rf"(?P<noun>(?:\S+ ){{0,{MAX_GAP_WORDS}}}?)"
            case "*":
                return ""
        group = "?P<verb>" if word in self.verbs else "?:"
        choices = "|".join(_words_pattern(choice) for choice in _expanded(word, self.words))
        return f"({group}{choices})"


class FormRule:
    """A form as a rule over plain words, each followed by a space. Its pattern is made when a text begins as it does:
    all of them take as long as a search."""

    def __init__(self, form: Form, text: str, language: QuestionForms) -> None:
        self.form, self._language = form, language
        self._words = text.replace("{topic}", " {topic} ").split()

    @property
    def begins_with_topic(self) -> bool:
        return self._words[0] in ("{topic}", "{thing}")

    @cached_property
    def opening(self) -> str:
        """The pattern of its first word."""
        return self._language.part(self._words[0]).replace("?P<topic>", "?:").replace("?P<verb>", "?:")

    @cached_property
    def _begins(self) -> re.Pattern[str]:
        return re.compile(f"{self._language.lead}{self.opening}")

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        gap_words = MAX_GAP_WORDS * (3 if _HAS_CHARACTER_WORDS.search("".join(self._words)) else 1)
        gap = rf"(?:\S+ ){{0,{gap_words}}}?"
        parts = [gap if word == "*" else self._language.part(word) for word in self._words]
        later = "" if parts[-1].startswith("(?P<topic>") else self._language.times
        return re.compile(f"{self._language.lead}{''.join(parts)}{later}\\Z")

    def match(self, words: str, start: int = 0) -> re.Match[str] | None:
        return self._pattern.match(words, start) if self._begins.match(words, start) else None


@lru_cache(maxsize=1)
def shipped_forms() -> tuple[QuestionForms, ...]:
    """The forms of all languages that have some, English first."""
    return tuple(QuestionForms(toml["recall"]) for toml in read_languages().values() if "recall" in toml)


@lru_cache(maxsize=16)
def forms_of(phrases: tuple[str, ...]) -> tuple[QuestionForms, ...]:
    """The forms by which the people of a repository ask: their own first."""
    return (*([_own_forms(phrases)] if phrases else []), *shipped_forms())


def _own_forms(phrases: tuple[str, ...]) -> QuestionForms:
    english = read_languages()[ENGLISH]["recall"]
    tables: dict[str, list[dict[str, list[str]]]] = {form: [] for form in Form}
    for phrase in phrases:
        tables[_form_of(phrase)].append({"forms": [phrase.replace("/", "|")]})
    return QuestionForms({**english, **tables, "may_ask": "", "verbs": {}})


def _form_of(phrase: str) -> Form:
    first = phrase.split(None, 1)[0].casefold().split("/")[0]
    return Form.REQUESTS if first in _REQUEST_VERBS else Form.STATES if first == "we" else Form.ASKS


def _words_pattern(choice: str) -> str:
    words = [part for token in TOKEN.findall(choice) for part in plain_words(token)]
    return "".join(f"{re.escape(part)} " for part in words)


def _expanded(text: str, words: Mapping[str, str]) -> list[str]:
    """The words separated by ``|``, with those of each <class> in its place, the longest of a class first."""
    expanded: list[str] = []
    for choice in text.split("|"):
        expanded += _filled(choice, words) if "<" in choice else [choice]
    return expanded


def _filled(choice: str, words: Mapping[str, str]) -> list[str]:
    """A choice of several words with those of its classes in place; what is no class stays."""
    parts = [
        _expanded(words[name], words) if (name := word[1:-1]) in words and word == f"<{name}>" else [word]
        for word in choice.split()
    ]
    return sorted({" ".join(filter(None, each)) for each in product(*parts)}, key=lambda each: (-len(each), each))


def _compile(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
