"""Picks the one or two sentences of a message that contain the words of a search."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from itertools import accumulate

from bot.reading.analyzer import terms
from bot.reading.search_query import fold
from bot.reading.text_edges import EDGES, UNSPACED

MAX_PASSAGE_CHARS = 240
"""Maximum characters of a passage."""

MAX_SCANNED_CHARS = 100_000
"""Maximum characters of a message that are searched."""

ELLIPSIS = "…"
_SENTENCE_BREAK = re.compile(
    r"(?<=[.!?…])[ \t]+|(?<=[。！？])(?![」』”’）。！？])[ \t]*|\n[ \t]*\n|\n(?=[ \t]*(?:[-*+>#|`]|\d{1,9}[.)][ \t]))",
    re.ASCII,
)
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|^[ \t]*(?:```|~~~)[^\n]*$", re.DOTALL | re.MULTILINE)
_LIST_MARK = re.compile(r"\A(?:[-*+]|\d{1,9}[.)]) ", re.ASCII)
_WORD = re.compile(rf"[{UNSPACED}]{{1,40}}+[{EDGES}]*+ ?|[^ {UNSPACED}{EDGES}]++[{EDGES}]*+ ?|[{EDGES}]++ ?| ")
_PREFIX_LENGTH = 3
"""Leading letters of a term that stemming leaves unchanged. Analysis takes most of the time of a search, so only
sentences with the leading letters of a term are analysed; all of them if none has any, since accents may hide them."""

_MAX_PIECE_CHARS = 2_000
"""A longer sentence is split into pieces of this length, so that a wall of text takes linear time too."""


def passage(text: str, query_terms: Collection[str], phrases: Sequence[str] = (), most: int = MAX_PASSAGE_CHARS) -> str:
    """At most two sentences of ``text`` on one line, those with most of the query terms; "" if none has any.

    They have at most ``most`` characters.

    A sentence with one of the (folded) ``phrases`` ranks above all others; one quoted from another message (``> …``)
    ranks below them. ``…`` marks where a sentence was cut. Linear in the length of the text.
    """
    visible = _HIDDEN.sub(" ", text[:MAX_SCANNED_CHARS])
    sentences = [
        sentence
        for part in _SENTENCE_BREAK.split(visible)
        for sentence in _pieces(_LIST_MARK.sub("", " ".join(part.split())))
    ]
    starts = {term[: max(1, min(_PREFIX_LENGTH, len(term) - 1))] for term in query_terms}
    likely = [index for index, sentence in enumerate(sentences) if any(map(sentence.casefold().__contains__, starts))]
    if phrases or not likely:
        likely = list(range(len(sentences)))
    ranks = {index: _rank(sentences[index], query_terms, phrases) for index in likely}
    best = max(ranks, key=ranks.__getitem__, default=-1)
    if best < 0 or not any(ranks[best][:2]):
        return ""
    shown = sentences[best]
    if len(shown) > most:
        return _window(shown, query_terms, phrases, most)
    following = sentences[best + 1] if best + 1 < len(sentences) else ""
    has_room = following and not following.startswith(">") and len(shown) + 1 + len(following) <= most
    return f"{shown} {following}" if has_room else shown


def _pieces(sentence: str) -> list[str]:
    return [sentence[at : at + _MAX_PIECE_CHARS] for at in range(0, len(sentence), _MAX_PIECE_CHARS)]


def _rank(sentence: str, query_terms: Collection[str], phrases: Sequence[str]) -> tuple[int, int, bool]:
    """A sort key: how many phrases and terms it contains, and whether it is the writer's own."""
    folded = fold(sentence) if phrases else ""
    shared = len(set(terms(sentence)).intersection(query_terms))
    is_own = not sentence.startswith(">")
    return sum(phrase in folded for phrase in phrases), shared * (2 if is_own else 1), is_own


def _window(sentence: str, query_terms: Collection[str], phrases: Sequence[str], most: int) -> str:
    """The part of a long sentence where the query's words are densest."""
    words = _words(sentence)
    hits = [bool(set(terms(word)).intersection(query_terms)) for word in words]
    if not any(hits):
        folded = fold(sentence)
        place, ends = max(0, *map(folded.find, phrases)), accumulate(map(len, words))
        hits[next((at for at, end in enumerate(ends) if end > place), 0)] = True  # no term, so a phrase matched
    start, end = _densest(words, hits, most)
    room_inside = most - len(ELLIPSIS) * 2 - 2
    is_left, room = True, room_inside - sum(map(len, words[start:end]))
    while room > 0 and (start > 0 or end < len(words)):
        is_left = start > 0 and (is_left or end == len(words))
        word = words[start - 1] if is_left else words[end]
        room -= len(word)
        if room >= 0:
            start, end = (start - 1, end) if is_left else (start, end + 1)
        is_left = not is_left
    shown = "".join(words[start:end]).rstrip()[:room_inside]
    return f"{ELLIPSIS + ' ' if start else ''}{shown}{' ' + ELLIPSIS if end < len(words) else ''}"


def _words(sentence: str) -> list[str]:
    """The words with the space after them. A phrase in a script without spaces counts as a word, with the punctuation
    after it, and so does each part of a long one."""
    return _WORD.findall(f"{sentence} ")


def _densest(words: Sequence[str], hits: Sequence[bool], most: int) -> tuple[int, int]:
    """The range from one hit to another that contains the most hits within ``most`` characters."""
    places = [index for index, is_hit in enumerate(hits) if is_hit]
    starts = [0, *accumulate(map(len, words))]
    best, first = (0, 0, 0), 0
    for last, index in enumerate(places):
        while first < last and starts[index + 1] - starts[places[first]] > most - 4:
            first += 1
        best = max(best, (last - first + 1, -places[first], index + 1))
    return -best[1], best[2]
