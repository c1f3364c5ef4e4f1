"""Cuts the part of a message that contains most of the words of a search."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from bot.reading.analyzer import terms

MAX_EXCERPT = 500
"""Characters."""

_LEAD_CHARS = 80
"""Characters before the first word of the query."""

_ELLIPSIS = "…"
_CHUNK = re.compile(r"\S{1,80}")
"""A word, or a piece of encoded data or of text without spaces."""

_BREAK = re.compile(r"\s")


class _Match(NamedTuple):
    start: int
    end: int
    terms_held: frozenset[str]


def excerpt(text: str, files: str, weights: Mapping[str, float]) -> str:
    """Return at most 500 characters of the text, followed by those ``files`` (one per line) with words missing in it.

    ``weights`` has the weight of each term of the query.
    """
    hits = _find_hits(text, weights)
    files_note = _files_note(files, weights.keys() - {term for hit in hits for term in hit.terms_held}, text)
    room = MAX_EXCERPT - len(files_note)
    return _cut_window(text, hits, weights, room - 2 if files_note else room) + (
        f"\n\n{files_note}" if files_note and text else files_note
    )


def _files_note(files: str, missing: set[str], text: str) -> str:
    paths = [path for path in files.split("\n") if path and (not text or missing & set(terms(path)))]
    return f"Files: {', '.join(paths)}"[: MAX_EXCERPT // 2] if paths else ""


def _find_hits(text: str, weights: Mapping[str, float]) -> list[_Match]:
    hits = []
    cache: dict[str, frozenset[str]] = {}
    for match in _CHUNK.finditer(text):
        terms_held = cache.get(match[0])
        if terms_held is None:
            terms_held = cache[match[0]] = frozenset(weights.keys() & set(terms(match[0])))
        if terms_held:
            hits.append(_Match(match.start(), match.end(), terms_held))
    return hits


def _cut_window(text: str, hits: list[_Match], weights: Mapping[str, float], room: int) -> str:
    if len(text) <= room:
        return text
    begin = max(0, min(_best_start(hits, weights, room - _LEAD_CHARS - 2) - _LEAD_CHARS, len(text) - room + 1))
    if begin:
        space = _BREAK.search(text, begin, begin + _LEAD_CHARS // 2)
        begin = space.end() if space else begin
    end = min(len(text), begin + room - 2)
    if end < len(text):
        space_before = max(text.rfind(" ", end - _LEAD_CHARS, end), text.rfind("\n", end - _LEAD_CHARS, end))
        end = space_before if space_before > begin else end
    return (_ELLIPSIS if begin else "") + text[begin:end].strip() + (_ELLIPSIS if end < len(text) else "")


def _best_start(hits: list[_Match], weights: Mapping[str, float], width: int) -> int:
    """The start of the window of this width with the greatest weight of terms; the first one on a tie."""
    best, start, last = 0.0, hits[0].start if hits else 0, 0
    counts: dict[str, int] = {}
    for first, hit in enumerate(hits):
        while last < len(hits) and (last == first or hits[last].end <= hit.start + width):
            for term in hits[last].terms_held:
                counts[term] = counts.get(term, 0) + 1
            last += 1
        weight = sum(weights[term] for term, count in counts.items() if count)
        if weight > best * (1 + 1e-9):
            best, start = weight, hit.start
        for term in hit.terms_held:
            counts[term] -= 1
    return start
