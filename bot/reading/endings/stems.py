"""Derives plain texts from a regular expression such that every match contains at least one of them.

Searching for a few substrings is many times faster than trying the expression, and most sentences contain none of them.
The idea comes from RE2's prefilter (https://github.com/google/re2, prefilter.cc): each part of an expression has the
``exact`` strings that it can match, if they are few, and the ``needed`` ones, of which any match contains at least one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

DIGIT = "0"
"""Represents any digit among the stems."""

_MAX_ALTERNATIVES = 8
_USEFUL_CHARS = 4
_DIGIT_RARITY = 2
_TOKEN = re.compile(
    r"\(\?(?P<look>[=!]|<[=!])|(?P<open>\((?:\?(?:[au]?[:>]|P<\w+>))?)|(?P<close>\))|(?P<bar>\|)"
    r"|\{(?P<word>[a-z_]+)\}|(?P<set>\[\^?\]?(?:\\.|[^\]\\])*\])|(?P<digit>\\d)|(?P<edge>\\[bBAZ]|[\^$])|(?P<any>\\[wWsSD]|\.)"
    r"|\\u(?P<code>[0-9a-f]{4})|\\(?P<escaped>.)|(?P<chars>[^\W_]+(?![?*+{])|.)",
    re.DOTALL,
)
_REPEAT = re.compile(r"(?:(?P<least>[?*])|\+|\{(?P<count>\d+)(?:,\d*)?\})[?+]?")

_Strings = frozenset[str]
_EMPTY = frozenset({""})


class _Part(NamedTuple):
    exact: _Strings | None = _EMPTY
    needed: _Strings | None = None


_ANYTHING, _NOTHING, _ANY_DIGIT = _Part(None), _Part(), _Part(None, frozenset({DIGIT}))


def stems(patterns: Iterable[str]) -> tuple[str, ...]:
    """Lower-case texts of which every match of the patterns contains at least one; ("",) if there are none."""
    return StemFinder({}).stems(patterns)


class StemFinder:
    """Finds the stems of patterns in which ``{name}`` stands for an expression of ``words``.

    Each expression is read once, as most of them are in many patterns.
    """

    def __init__(self, words: Mapping[str, str]) -> None:
        self.words = words
        self._parts: dict[str, _Part] = {}

    def stems(self, patterns: Iterable[str]) -> tuple[str, ...]:
        """Lower-case texts of which every match of the patterns contains at least one; ("",) if there are none."""
        texts: set[str] = set()
        for pattern in patterns:
            needed = self._alternatives(pattern, 0)[0].needed
            if needed is None:
                return ("",)
            texts |= needed
        return tuple(sorted(stem for stem in texts if not any(other in stem for other in texts if other != stem)))

    def _word(self, name: str) -> _Part:
        if name not in self._parts:
            self._parts[name] = self._alternatives(self.words[name], 0)[0]
        return self._parts[name]

    def _alternatives(self, pattern: str, at: int) -> tuple[_Part, int]:
        """The part from ``at`` to the end of its group, and the position of that end."""
        parts = []
        while True:
            part, at = self._sequence(pattern, at)
            parts.append(part)
            if pattern[at : at + 1] != "|":
                return _union(parts), at
            at += 1

    def _sequence(self, pattern: str, at: int) -> tuple[_Part, int]:
        run, candidates, is_exact = _EMPTY, list[_Strings](), True
        while at < len(pattern) and pattern[at] not in ")|":
            part, at = self._atom(pattern, at)
            if part.needed:
                candidates.append(part.needed)
            if part.exact is None or len(run) * len(part.exact) > _MAX_ALTERNATIVES:
                is_exact = False
                candidates.append(run)
                run = part.exact or _EMPTY
            elif part.exact is not _EMPTY:
                run = frozenset([before + after for before in run for after in part.exact])
        candidates.append(run)
        needed = max((each for each in candidates if "" not in each), key=_usefulness, default=None)
        return _Part(run if is_exact else None, needed), at

    def _atom(self, pattern: str, at: int) -> tuple[_Part, int]:
        token = _TOKEN.match(pattern, at)
        assert token
        at = token.end()
        kind = token.lastgroup
        if kind in {"look", "open"}:
            part, at = self._alternatives(pattern, at)
            at += 1
            if kind == "look":
                return _Part(_EMPTY, part.needed if token["look"] == "=" else None), at
        elif kind == "word":
            part = self._word(token["word"])
        elif kind == "digit":
            part = _ANY_DIGIT
        elif kind in {"set", "any"}:
            part = _ANYTHING
        elif kind == "edge":
            part = _NOTHING
        else:
            text = chr(int(token["code"], 16)) if kind == "code" else token[kind or "chars"].lower()
            part = _Part(frozenset({text}), frozenset({text}))
        repeat = _REPEAT.match(pattern, at)
        if not repeat:
            return part, at
        may_be_absent = repeat["least"] or repeat["count"] == "0"
        exact = part.exact | _EMPTY if part.exact is not None and pattern[at] == "?" else None
        return _Part(exact, None if may_be_absent else part.needed), repeat.end()


def _union(parts: list[_Part]) -> _Part:
    exact = _any_of([part.exact for part in parts])
    return _Part(exact if exact and len(exact) <= _MAX_ALTERNATIVES else None, _any_of([part.needed for part in parts]))


def _any_of(alternatives: list[_Strings | None]) -> _Strings | None:
    finite = [strings for strings in alternatives if strings is not None]
    return frozenset[str]().union(*finite) if len(finite) == len(alternatives) else None


def _usefulness(strings: _Strings) -> tuple[int, int]:
    return min(map(_rarity, strings)), -len(strings)


def _rarity(text: str) -> int:
    """Roughly how few texts contain it. Most texts have only ASCII characters, so others are rare."""
    if text == DIGIT:
        return _DIGIT_RARITY
    return min(len(text), _USEFUL_CHARS) if text.isascii() else _USEFUL_CHARS + min(len(text), _USEFUL_CHARS)
