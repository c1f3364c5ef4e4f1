"""The search index of sessions: which passages hold a term, and how much it says about each (BM25).

A posting list has 32 bits for each passage: 27 for its number, 5 for its level, see `bot.index.impacts`. Lists of
segments that follow each other are joined by writing one after the other.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from bot.index.impacts import LEVELS
from bot.local_cache.database import fact
from bot.sources.session_files import SessionFiles

LEVEL_BITS = 5
LAST = (1 << 27) - 1
"""The highest number of a passage."""

K1, B = 1.2, 0.5
"""Saturation, and how much length counts: messages of sessions are short or long for no reason of theirs."""

USUAL = 60
"""Terms of a usual message."""

_BOUNDS = tuple((low * high) ** 0.5 for low, high in pairwise(LEVELS[1:]))
_RATIO = 2
"""A segment is joined with the one before it unless that is so many times larger: few segments, little written."""


class PassageSegment(NamedTuple):
    """A part of the index: the numbers of its first and last passage, how many it got, how many of them are gone."""

    number: int
    first: int
    last: int
    size: int
    gone: int


class Batch:
    """The passages that become the next segment; ``next`` is the number of the next one."""

    def __init__(self, first: int) -> None:
        self.first = self.next = first
        self._lists: dict[str, array[int]] = {}

    def __len__(self) -> int:
        return self.next - self.first

    def add(self, terms: Sequence[str]) -> int:
        """The number of a passage of these terms."""
        number = self.next
        self.next += 1
        scale = 1 / (1 - B + B * len(terms) / USUAL)
        levels: dict[int, int] = {}
        for term, frequency in Counter(terms).items():
            level = levels.get(frequency) or levels.setdefault(frequency, _level(frequency * scale))
            posting = number << LEVEL_BITS | level
            known = self._lists.get(term)
            if known is None:
                self._lists[term] = array("I", (posting,))
            else:
                known.append(posting)
        return number

    def write(self, database: sqlite3.Connection) -> None:
        """Add what there is as a segment; none where there is nothing."""
        if len(self):
            row = (self.first, self.next - 1, len(self))
            segment = database.execute(
                "INSERT INTO segments (first, last, size, gone) VALUES (?, ?, ?, 0)", row
            ).lastrowid
            lists = sorted(self._lists.items())
            database.executemany(
                "INSERT INTO postings VALUES (?, ?, ?)", ((segment, term, each.tobytes()) for term, each in lists)
            )


def _level(frequency: float) -> int:
    return 1 + bisect_left(_BOUNDS, frequency / (K1 + frequency))


def segments(database: sqlite3.Connection) -> list[PassageSegment]:
    """All of them, oldest first."""
    return [
        PassageSegment(*row)
        for row in database.execute("SELECT number, first, last, size, gone FROM segments ORDER BY first")
    ]


def departed(database: sqlite3.Connection) -> frozenset[int]:
    """The passages that are gone and still have postings: less than half of all."""
    return frozenset(row[0] for row in database.execute("SELECT number FROM gone"))


def postings(database: sqlite3.Connection, numbers: Iterable[int], term: str, gone: Collection[int] = ()) -> array[int]:
    """The list of a term in these segments without those that are ``gone``; ``posting >> LEVEL_BITS`` is the passage,
    the rest its level."""
    found = array("I")
    for number in numbers:
        row = database.execute("SELECT list FROM postings WHERE segment = ? AND term = ?", (number, term)).fetchone()
        if row:
            found.frombytes(row[0][: len(row[0]) // 4 * 4])
    return array("I", (posting for posting in found if posting >> LEVEL_BITS not in gone)) if gone else found


def forget(database: sqlite3.Connection, file: int) -> None:
    """Take the passages of a file out. Their postings stay until their segment is written anew."""
    for segment in segments(database):
        gone = database.execute(
            "SELECT count(*) FROM passages WHERE file = ? AND number BETWEEN ? AND ?",
            (file, segment.first, segment.last),
        ).fetchone()[0]
        if gone:
            database.execute("UPDATE segments SET gone = gone + ? WHERE number = ?", (gone, segment.number))
    database.execute("INSERT INTO gone SELECT number FROM passages WHERE file = ?", (file,))
    database.execute("DELETE FROM texts WHERE number IN (SELECT number FROM passages WHERE file = ?)", (file,))
    database.execute("DELETE FROM passages WHERE file = ?", (file,))


def tidy(database: sqlite3.Connection) -> None:
    """Join segments of a like size, and write those anew of which half is gone."""
    for segment in segments(database):
        if segment.gone * 2 > segment.size:
            _join(database, [segment])
    held = segments(database)
    while len(held) > 1 and _live(held[-2]) < _RATIO * _live(held[-1]):
        begin = len(held) - 2
        while begin and _live(held[begin - 1]) < _RATIO * sum(map(_live, held[begin:])):
            begin -= 1
        _join(database, held[begin:])
        held = segments(database)


def _live(segment: PassageSegment) -> int:
    return segment.size - segment.gone


def _join(database: sqlite3.Connection, group: Sequence[PassageSegment]) -> None:
    """Make one segment of these, which follow each other, without what is gone."""
    lists: dict[str, array[int]] = {}
    for segment in group:
        for term, part in _lists(database, segment):
            known = lists.get(term)
            if known is None:
                lists[term] = part
            else:
                known.extend(part)
    for segment in group:
        database.execute("DELETE FROM postings WHERE segment = ?", (segment.number,))
        database.execute("DELETE FROM segments WHERE number = ?", (segment.number,))
        database.execute("DELETE FROM gone WHERE number BETWEEN ? AND ?", (segment.first, segment.last))
    live = sum(map(_live, group))
    if live:
        row = (group[0].number, group[0].first, group[-1].last, live)
        database.execute("INSERT INTO segments VALUES (?, ?, ?, ?, 0)", row)
        database.executemany(
            "INSERT INTO postings VALUES (?, ?, ?)",
            ((group[0].number, term, each.tobytes()) for term, each in sorted(lists.items())),
        )


def _lists(database: sqlite3.Connection, segment: PassageSegment) -> Iterator[tuple[str, array[int]]]:
    """The terms of a segment with their lists, without the passages that are gone."""
    span = (segment.first, segment.last)
    gone = {row[0] for row in database.execute("SELECT number FROM gone WHERE number BETWEEN ? AND ?", span)}
    for term, data in database.execute("SELECT term, list FROM postings WHERE segment = ? ORDER BY term", segment[:1]):
        part = array("I", data[: len(data) // 4 * 4])
        if gone:
            part = array("I", (posting for posting in part if posting >> LEVEL_BITS not in gone))
        if part:
            yield term, part


def is_behind(database: sqlite3.Connection, files: SessionFiles, failed: Container[str] = ()) -> bool:
    """Whether a file is new, has changed or is gone; one that ``failed`` is as it can be."""
    known = dict(database.execute("SELECT path, mark FROM files"))
    paths = {file.path for file in files.sessions}
    changed = any(known.get(file.path) != file.mark and file.path not in failed for file in files.sessions)
    return changed or not known.keys() <= paths


def is_unmapped(database: sqlite3.Connection, files: SessionFiles) -> bool:
    """Whether an issue may belong to another session than is noted."""
    return fact(database, "mapping") != stamp_of(files)


def stamp_of(files: SessionFiles) -> str:
    """Another one as soon as a mapping file has changed, or the files that it may name."""
    if not files.mappings:
        return ""
    from hashlib import sha256  # most have no mapping files, and begin without it

    marks = [f"{file.path}\0{file.mark}" for file in files.mappings]
    return sha256("\0".join([*marks, *sorted(file.path for file in files.sessions)]).encode()).hexdigest()
