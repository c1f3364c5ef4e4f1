"""The words of comments, shipped ones and a repository's own, which are checked to be nothing but words."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from bot.comment.clean_text import account, visible_text
from bot.comment.defang import hazards
from bot.comment.plurals import plural_form
from bot.domain.roles import PARTICIPANT, role_word
from bot.domain.thread import GHOST, Kind, ThreadId
from bot.settings.schema import ENGLISH, SettingsError, format_value
from bot.settings.yaml_file import PlacedText, load_texts

OVERRIDES_PATH = ".github/precedent/words.yml"
MAX_CHARS = 300
MONTH_COUNT = 12

THOUSANDS_SEPARATORS = frozenset({"", " ", ",", ".", "'", "’", "\u00a0", "\u202f"})
"""Thousands separators: https://cldr.unicode.org/translation/number-currency-formats/number-symbols."""

_BOLD = re.compile(r"\*\*(?=[^\s*])([^*]+)(?<=[^\s*])\*\*")
_SAMPLES = ("x", "", "12", ". x", ") x")
"""Sample values: none may turn the words around it into Markdown."""

_SUFFIXES = ("", ":")
"""What templates put after a text."""

_GITHUB_KEYWORD = re.compile(
    r"\W{0,9}duplicate\s+of\b|.*\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s{0,9}\{(?:change|pull|threads?|numbers?)\}",
    re.ASCII | re.IGNORECASE,
)
_MEANINGS = {
    "mention": "would ping somebody",
    "html": "is HTML",
    "number": "would refer to an issue",
    "prefix": "would refer to an issue",
    "path": "would refer to an issue",
    "commit": "would refer to a commit",
    "scheme": "is an address",
    "host": "is an address",
    "emoji": "would draw an emoji",
}


def own_words(shipped: Words, text: str) -> Words:
    """The shipped words, overridden by those in ``text``, the content of a repository's ``words.yml``.

    Raises SettingsError, with file, line and remedy, for the first text that is more than plain words.
    """
    overrides = {
        name: _check_override(name, entry, shipped.texts) for name, entry in load_texts(text, OVERRIDES_PATH).items()
    }
    return Words({**shipped.texts, **overrides}, shipped.language)


def _check_override(name: str, entry: PlacedText, shipped: Mapping[str, str]) -> str:
    if name not in shipped:
        raise SettingsError(f"{entry.place}: unknown name {format_value(name)}; {_suggest(name, shipped, 'names')}")
    if problem := find_problem(name, entry.text, shipped[name]):
        raise SettingsError(f"{entry.place}: {name}: {problem}")
    return entry.text


def find_problem(name: str, text: str, original: str) -> str:
    """Why ``text`` cannot replace ``original``, the shipped text of this name, with the remedy; "" if it can."""
    if name == "thousands":
        return "" if text in THOUSANDS_SEPARATORS else 'use one of "," "." "\'" or a space, or nothing'
    if len(text) > MAX_CHARS:
        return f"it has {len(text):,} characters; the most is {MAX_CHARS}"
    if not text.strip() or text != text.strip() or "\n" in text or visible_text(text) != text:
        return "use one line of visible words, without spaces at its ends"
    return _wrong_placeholder(text, original) or _wrong_list(name, text) or _unsafe(name, text)


def _wrong_placeholder(text: str, original: str) -> str:
    placeholders = dict.fromkeys(PLACEHOLDER.findall(original))
    for name in PLACEHOLDER.findall(text):
        if name not in placeholders:
            return f"unknown placeholder {{{name}}}; {_suggest(name, placeholders, 'placeholders')}"
    if set("{}") & set(PLACEHOLDER.sub("", text)):
        return "use curly brackets only around the name of a placeholder"
    return ""


def _wrong_list(name: str, text: str) -> str:
    months = [part.strip() for part in text.split(",")]
    if name == "months" and (len(months) != MONTH_COUNT or not all(months)):
        return f"name all {MONTH_COUNT} months, with commas between them"
    return ""


def _unsafe(name: str, text: str) -> str:
    if _GITHUB_KEYWORD.match(text):
        return "GitHub might act on these words as if a person had said them; use other words"
    plain = unbold(name, text)
    for sample in filter(None, _SAMPLES) if name == "label" else _SAMPLES:  # a label is never empty
        # a day at the start of a line ("3. Mai") is escaped
        line = f"{'x ' if name == 'day' else ''}{PLACEHOLDER.sub(sample, plain)}"
        for end in _SUFFIXES:
            for kind, what in hazards(line + end):
                if kind != "phrase":
                    return f"{format_value(what)} {_MEANINGS.get(kind, 'has a meaning in Markdown')}; use plain words"
    return ""


def unbold(name: str, text: str) -> str:
    """The text of this name without asterisks; only texts about endings may have some."""
    return _BOLD.sub(r"\1", text) if name.startswith("ended_") else text


def _suggest(name: str, choices: Mapping[str, object], what: str) -> str:
    matches = difflib.get_close_matches(name[:100], choices, n=1)
    if matches:
        return f"did you mean {format_value(matches[0])}?"
    if what == "names":
        return "the names are those of templates/words.yml"
    return f"known here: {', '.join(f'{{{choice}}}' for choice in choices) or 'none'}"


PLACEHOLDER = re.compile(r"\{([a-z_]{1,20})\}", re.ASCII)
"""A placeholder in a text. Its value is inserted as it is; placeholders inside the value are not filled."""

TEMPLATE_TEXTS = (
    "mentioned", "also_mentioned", "seen_before", "perhaps_related", "open_now", "pages", "files", "decided", "said",
    "why", "changed", "nothing_found", "organisation",
)  # fmt: skip
"""The texts that templates find under ``words``, besides the two sentences of the last line."""

COMMAND_SYNTAX = {
    "search": "`/precedent search WORDS`",
    "context": "`/precedent context #N`",
    "refresh": "`/precedent refresh`",
    "wrong": "`/precedent wrong #N`",
    "same": "`/precedent same #N`",
    "different": "`/precedent different #N`",
    "original": "`/precedent original #N`",
    "off": "`/precedent off`",
    "on": "`/precedent on`",
    "forget": "`/precedent forget`",
}
"""The commands, in the order of the help reply."""

REPORTER_COMMANDS = ("search", "wrong", "off")
"""All that the help reply tells people who may not write to the repository."""

_MONTH_NAMES = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip
MAX_NUMBERS = 4
"""Further issues that the last line offers to mark wrong."""

_CLOSING_TEXTS = {
    "completed": "ended_completed",
    "not_planned": "ended_not_planned",
    "duplicate": "ended_duplicate_unknown",
}
_AGE_UNITS = ((365, "age_years"), (30, "age_months"), (7, "age_weeks"))


@dataclass(frozen=True, slots=True)
class Words:
    """The texts of ``templates/words.yml`` by name, with those of a ``language`` or a repository in place of some.

    They hold only words and placeholders, so the results are harmless if the values are. Days, counts and names are
    plain text: a day may begin with ``3.``, which Markdown would read as a list.
    """

    texts: Mapping[str, str]
    language: str = ENGLISH

    def say(self, name: str, **values: str) -> str:
        """The text of this name, filled with ``values``. Raises KeyError for an unknown name or a missing value."""
        return PLACEHOLDER.sub(lambda match: values[match[1]], self.texts[name])

    def without_bold(self) -> Words:
        """The same words without emphasis on an ending."""
        return replace(self, texts={name: unbold(name, text) for name, text in self.texts.items()})

    def join(self, parts: Iterable[str]) -> str:
        """The parts that are not empty, as a list in one line."""
        return self.comma.join(filter(None, parts))

    @property
    def comma(self) -> str:
        """What stands between the parts of a list."""
        return self.say("list", first="", second="")

    @property
    def colon(self) -> str:
        """What stands after a label."""
        return self.say("label", what="", value="").rstrip()

    def count(self, name: str, number: int, **values: str) -> str:
        """``1 comment``, ``1,204 comments``: the text ``NAME_one``, ``NAME_other`` or another form of the language."""
        return self.say(f"{name}_{plural_form(number, self.language)}", count=self.number(number), **values)

    def number(self, number: int) -> str:
        return f"{number:,}".replace(",", self.texts["thousands"])

    def day(self, moment: datetime) -> str:
        """The calendar day in UTC, as ``12 March 2025``, whatever the locale. A naive moment counts as UTC."""
        utc = _utc(moment)
        month = self.texts["months"].split(",")[utc.month - 1].strip()
        return self.say("day", day=str(utc.day), month=month, year=str(utc.year))

    def age(self, since: datetime, now: datetime) -> str:
        """The age in the largest unit that fits twice, at least in days: ``4 days old``, ``opened today``."""
        days = (_utc(now) - _utc(since)).days
        for length, name in _AGE_UNITS:
            if days >= length * 2:
                return self.count(name, days // length)
        return self.count("age_days", days) if days >= 1 else self.texts["age_today"]

    def closing(self, state_reason: str | None) -> str:
        """How GitHub describes the closing of a thread. An unknown reason adds nothing."""
        return self.texts[_CLOSING_TEXTS.get((state_reason or "").lower(), "ended_closed")]

    def thread_label(self, thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
        """A thread by its id, never as ``#12``, which GitHub would turn into a backlink."""
        if isinstance(thread, str):
            return thread
        return self.say(kind.traits.words, number=str(thread))

    def speaker(self, author: str | None, role: str | None) -> str:
        """The login, with a role that carries weight: ``hubot, maintainer`` (raw: defang it).

        Logins have no commas, so none looks like one with a role.
        """
        name, word = account(author or GHOST), role_word(role)
        if word != PARTICIPANT:
            return self.say("who_role", who=name, role=self.texts[word]) if author else self.texts[word]
        reserved = [GHOST, self.texts["maintainer"].casefold(), self.texts["contributor"].casefold()]
        return self.texts["participant"] if name.casefold() in reserved else name

    def footer(self, searched: int, shown: Sequence[ThreadId], *, commands: bool) -> dict[str, str]:
        """The sentences of the last line: a bot wrote this, how to correct or silence it, and how to only silence it.

        ``shown`` are the threads that may be marked wrong.
        """
        is_known = searched >= 1
        return {
            "provenance": self.count("provenance", searched) if is_known else self.texts["provenance_unknown"],
            "controls": self._controls(shown) if commands else self.texts["controls_quiet"],
            "silence": self.say("silence", off=COMMAND_SYNTAX["off"]) if commands else "",
        }

    def _controls(self, shown: Sequence[ThreadId]) -> str:
        """With commands that can be copied as they are."""
        first, *others = [str(thread) for thread in shown if isinstance(thread, int)] or [""]
        if not first:
            return self.say("controls_off", off=COMMAND_SYNTAX["off"])
        wrong = COMMAND_SYNTAX["wrong"].replace("#N", first)
        if others:
            wrong = self.say("or_numbers", command=wrong, numbers=self.join(others[:MAX_NUMBERS]))
        return self.say("controls", wrong=wrong, off=COMMAND_SYNTAX["off"])

    def fixed_texts(self) -> dict[str, str]:
        """The texts that templates find under ``words`` in every comment."""
        return {name: self.texts[name] for name in TEMPLATE_TEXTS} | {"comma": self.comma, "colon": self.colon}


def day(moment: datetime) -> str:
    """The calendar day in UTC in English, as ``12 March 2025``. A naive moment counts as UTC."""
    utc = _utc(moment)
    return f"{utc.day} {_MONTH_NAMES[utc.month - 1]} {utc.year}"


def count(number: int, noun: str) -> str:
    """``1 comment``, ``1,204 comments``, in English."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def thread_label(thread: ThreadId, kind: Kind = Kind.ISSUE) -> str:
    """A thread by its id in English, never as ``#12``."""
    if isinstance(thread, str):
        return thread
    return f"{kind.traits.noun} {thread}"


def _utc(moment: datetime) -> datetime:
    return moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
