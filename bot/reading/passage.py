"""Cuts the one or two sentences out of a message that hold the words of a search."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import accumulate

from bot.reading.analyzer import terms
from bot.reading.search_query import fold

MOST = 240
"""Most characters of a passage."""

SCANNED = 100_000
"""Characters of a message that are looked through."""

CUT = "…"
_BREAK = re.compile(r"(?<=[.!?…])[ \t]+|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>#|`]|\d{1,9}[.)][ \t]))", re.ASCII)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|^[ \t]*(?:```|~~~)[^\n]*$", re.DOTALL | re.MULTILINE)
_MARK = re.compile(r"\A(?:[-*+]|\d{1,9}[.)]) ", re.ASCII)
_START = 3
"""Letters of a term that a word keeps when it is stemmed. Only sentences with such letters are analysed, as that takes
most of the time of a search; all of them if none has any, which accents may hide."""

_MAX_PIECE = 2_000
"""A longer sentence is looked at in pieces of so many characters, so that a wall of text is linear too."""


def passage(text: str, wanted: Collection[str], phrases: Sequence[str] = ()) -> str:
    """At most two sentences of ``text`` on one line, those with most of the ``wanted`` terms; "" if none has any.

    A sentence with one of the ``phrases`` (folded) goes before all others, one that a message repeats from another
    (``> …``) after them. A sentence that is cut is marked with ``…`` there. Linear in the length of the text.
    """
    seen = _HIDDEN.sub(" ", text[:SCANNED])
    sentences = [sentence for part in _BREAK.split(seen) for sentence in _pieces(_MARK.sub("", " ".join(part.split())))]
    starts = {term[: max(1, min(_START, len(term) - 1))] for term in wanted}
    likely = [place for place, sentence in enumerate(sentences) if any(map(sentence.casefold().__contains__, starts))]
    if phrases or not likely:
        likely = list(range(len(sentences)))
    ranks = {place: _rank(sentences[place], wanted, phrases) for place in likely}
    best = max(ranks, key=ranks.__getitem__, default=-1)
    if best < 0 or not any(ranks[best][:2]):
        return ""
    shown = sentences[best]
    if len(shown) > MOST:
        return _window(shown, wanted, phrases)
    following = sentences[best + 1] if best + 1 < len(sentences) else ""
    is_more = following and not following.startswith(">") and len(shown) + 1 + len(following) <= MOST
    return f"{shown} {following}" if is_more else shown


def _pieces(sentence: str) -> list[str]:
    return [sentence[at : at + _MAX_PIECE] for at in range(0, len(sentence), _MAX_PIECE)]


def _rank(sentence: str, wanted: Collection[str], phrases: Sequence[str]) -> tuple[int, int, bool]:
    """How many phrases and terms it holds, and whether it is the writer's own; compared in this order."""
    folded = fold(sentence) if phrases else ""
    held = len(set(terms(sentence)).intersection(wanted))
    is_own = not sentence.startswith(">")
    return sum(phrase in folded for phrase in phrases), held * (2 if is_own else 1), is_own


def _window(sentence: str, wanted: Collection[str], phrases: Sequence[str]) -> str:
    """The part of a long sentence around the densest place of the words."""
    words = sentence.split(" ")
    hits = [bool(set(terms(word)).intersection(wanted)) for word in words]
    if not any(hits):
        folded = fold(sentence)
        hits[folded.count(" ", 0, max(0, *map(folded.find, phrases)))] = True  # only a phrase is left: no other word
    start, end = _densest(words, hits)
    is_left, room = True, MOST - len(CUT) * 2 - 2 - sum(len(word) + 1 for word in words[start:end])
    while room > 0 and (start > 0 or end < len(words)):
        is_left = start > 0 and (is_left or end == len(words))
        word = words[start - 1] if is_left else words[end]
        room -= len(word) + 1
        if room >= 0:
            start, end = (start - 1, end) if is_left else (start, end + 1)
        is_left = not is_left
    shown = " ".join(words[start:end])[: MOST - len(CUT) * 2 - 2]
    return f"{CUT + ' ' if start else ''}{shown}{' ' + CUT if end < len(words) else ''}"


def _densest(words: Sequence[str], hits: Sequence[bool]) -> tuple[int, int]:
    """The stretch from one hit to another that holds the most hits within the length of a passage."""
    places = [place for place, is_hit in enumerate(hits) if is_hit]
    starts = [0, *accumulate(len(word) + 1 for word in words)]
    best, first = (0, 0, 0), 0
    for last, place in enumerate(places):
        while first < last and starts[place + 1] - starts[places[first]] > MOST - 4:
            first += 1
        best = max(best, (last - first + 1, -places[first], place + 1))
    return -best[1], best[2]
