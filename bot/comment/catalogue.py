"""A repository's own words, checked so that they can do nothing but speak."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping

from bot.comment.defang import hazard
from bot.comment.visible import clean
from bot.comment.wording import PLACEHOLDER, Words
from bot.config import Placed, load_texts
from bot.settings import SettingsError, shown

NAME = ".github/precedent/words.yml"
MAX_CHARS = 300
MONTHS = 12

THOUSANDS = frozenset({"", " ", ",", ".", "'", "’", "\u00a0", "\u202f"})
"""Marks between thousands: https://cldr.unicode.org/translation/number-currency-formats/number-symbols."""

_BOLD = re.compile(r"\*\*(?=[^\s*])([^*]+)(?<=[^\s*])\*\*")
_SAMPLES = ("x", "", "12", ". x", ") x")
"""What values may look like at their edges: they must not turn the words around them into something else."""

_ENDS = ("", ":")
"""What templates put behind a text."""

_SPEAKS_FOR_A_PERSON = re.compile(
    r"\W{0,9}duplicate\s+of\b|.*\b(?:close[sd]?|fix(?:e[sd])?|resolve[sd]?):?\s{0,9}\{(?:change|threads?|numbers?)\}",
    re.ASCII | re.IGNORECASE,
)
_WHAT = {
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
    """The shipped words with those in ``text``, the content of a repository's ``words.yml``, in their place.

    Raises SettingsError, with file, line and the remedy, for the first text that says more than words.
    """
    given: dict[str, str] = {}
    for name, written in load_texts(text, NAME).items():
        given[name] = _checked(name, written, shipped.texts)
    return Words({**shipped.texts, **given})


def _checked(name: str, written: Placed, shipped: Mapping[str, str]) -> str:
    if name not in shipped:
        raise SettingsError(f"{written.place}: unknown name {shown(name)}; {_nearest(name, shipped, 'names')}")
    if problem := fault(name, written.text, shipped[name]):
        raise SettingsError(f"{written.place}: {name}: {problem}")
    return written.text


def fault(name: str, text: str, model: str) -> str:
    """Why ``text`` cannot stand for the shipped text ``model`` of this name, with the remedy; "" where it can."""
    if name == "thousands":
        return "" if text in THOUSANDS else 'use one of "," "." "\'" or a space, or nothing'
    if len(text) > MAX_CHARS:
        return f"it has {len(text):,} characters; the most is {MAX_CHARS}"
    if not text.strip() or text != text.strip() or "\n" in text or clean(text) != text:
        return "use one line of visible words, without spaces at its ends"
    return _wrong_placeholder(text, model) or _wrong_list(name, text) or _unsafe(name, text)


def _wrong_placeholder(text: str, model: str) -> str:
    known = dict.fromkeys(PLACEHOLDER.findall(model))
    for found in PLACEHOLDER.findall(text):
        if found not in known:
            return f"unknown placeholder {{{found}}}; {_nearest(found, known, 'placeholders')}"
    if set("{}") & set(PLACEHOLDER.sub("", text)):
        return "curly brackets stand around the name of a placeholder only"
    return ""


def _wrong_list(name: str, text: str) -> str:
    months = [part.strip() for part in text.split(",")]
    if name == "months" and (len(months) != MONTHS or not all(months)):
        return f"name all {MONTHS} months, with commas between them"
    return ""


def _unsafe(name: str, text: str) -> str:
    if _SPEAKS_FOR_A_PERSON.match(text):
        return "GitHub might act on these words as if a person had said them; say it otherwise"
    plain = _BOLD.sub(r"\1", text) if name.startswith("ended_") else text
    for sample in _SAMPLES:
        # A day never begins a line as it is: "3. Mai" is escaped there.
        shown_as = f"{'x ' if name == 'day' else ''}{PLACEHOLDER.sub(sample, plain)}"
        for end in _ENDS:
            kind, what = hazard(shown_as + end)
            if kind and kind != "phrase":
                return f"{shown(what)} {_WHAT.get(kind, 'has a meaning in Markdown')}; use plain words"
    return ""


def _nearest(name: str, known: Mapping[str, object], what: str) -> str:
    close = difflib.get_close_matches(name[:100], known, n=1)
    if close:
        return f"did you mean {shown(close[0])}?"
    if what == "names":
        return "the names are those of templates/words.yml"
    return f"known here: {', '.join(f'{{{each}}}' for each in known) or 'none'}"
