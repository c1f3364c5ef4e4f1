"""Cuts the part of a message that says most of the words that were searched for."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bot.reading.analyzer import terms

MAX_EXCERPT = 500
"""Characters."""

_LEAD = 80
"""Characters before the first word of the query."""

_ELLIPSIS = "…"
_CHUNK = re.compile(r"\S{1,80}")
"""A word, or a piece of encoded data or of a script without spaces."""

_BREAK = re.compile(r"\s")


class _Hit(NamedTuple):
    start: int
    end: int
    held: frozenset[str]


def excerpt(text: str, files: str, wanted: Mapping[str, float]) -> str:
    """Return at most 500 characters of the text, and below it those ``files`` (one per line) that alone have a word.

    ``wanted`` is the weight of each term of the query.
    """
    hits = _hits(text, wanted)
    named = _named(files, wanted.keys() - {term for hit in hits for term in hit.held}, text)
    room = MAX_EXCERPT - len(named)
    return _window(text, hits, wanted, room - 2 if named else room) + (f"\n\n{named}" if named and text else named)


def _named(files: str, missing: set[str], text: str) -> str:
    found = [path for path in files.split("\n") if path and (not text or missing & set(terms(path)))]
    return f"Files: {', '.join(found)}"[: MAX_EXCERPT // 2] if found else ""


def _hits(text: str, wanted: Mapping[str, float]) -> list[_Hit]:
    found = []
    known: dict[str, frozenset[str]] = {}
    for match in _CHUNK.finditer(text):
        held = known.get(match[0])
        if held is None:
            held = known[match[0]] = frozenset(wanted.keys() & set(terms(match[0])))
        if held:
            found.append(_Hit(match.start(), match.end(), held))
    return found


def _window(text: str, hits: list[_Hit], wanted: Mapping[str, float], room: int) -> str:
    if len(text) <= room:
        return text
    begin = max(0, min(_best(hits, wanted, room - _LEAD - 2) - _LEAD, len(text) - room + 1))
    if begin:
        space = _BREAK.search(text, begin, begin + _LEAD // 2)
        begin = space.end() if space else begin
    end = min(len(text), begin + room - 2)
    if end < len(text):
        cut = max(text.rfind(" ", end - _LEAD, end), text.rfind("\n", end - _LEAD, end))
        end = cut if cut > begin else end
    return (_ELLIPSIS if begin else "") + text[begin:end].strip() + (_ELLIPSIS if end < len(text) else "")


def _best(hits: list[_Hit], wanted: Mapping[str, float], width: int) -> int:
    """The start of the window of this width with the greatest weight of terms; the first of equal ones."""
    best, place, last = 0.0, hits[0].start if hits else 0, 0
    counts: dict[str, int] = {}
    for first, hit in enumerate(hits):
        while last < len(hits) and (last == first or hits[last].end <= hit.start + width):
            for term in hits[last].held:
                counts[term] = counts.get(term, 0) + 1
            last += 1
        worth = sum(wanted[term] for term, count in counts.items() if count)
        if worth > best * (1 + 1e-9):
            best, place = worth, hit.start
        for term in hit.held:
            counts[term] -= 1
    return place
