"""Brings the index of sessions up to date with their files: reads what is new or has grown, forgets what is gone.

A posting list has 32 bits for each passage: 27 for its number, 5 for its level, see `bot.index.impacts`. Lists of
segments that follow each other are joined by writing one after the other. What reads the files is imported only
when one of them has changed.
"""

from __future__ import annotations

import sqlite3
from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

from bot.index.impacts import LEVELS
from bot.local_cache.database import fact, note, writing
from bot.reading.analyzer import terms
from bot.sources.session_files import SessionFile, SessionFiles

if TYPE_CHECKING:
    from bot.sources.session import Utterance
    from bot.sources.session_reader import Cursor

BATCH = 5_000
"""Messages that are written at once: a second or two, for which others who write have to wait."""

MAX_FILES = 500
"""Files that are read for one batch."""

_CACHE = 64 << 10
"""KiB: a batch that fits keeps nobody from reading until it is written."""

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Tick = Callable[[int], None]


def microseconds(moment: datetime) -> int:
    """Since 1970, as times of passages are stored."""
    return (moment - EPOCH) // timedelta(microseconds=1)


class KnownFile(NamedTuple):
    """What is known of a file. Its mark is "" while it is read in several batches."""

    number: int
    mark: str
    inode: int
    cursor: Cursor


class SessionSync:
    """One refresh. ``failed`` has the files that cannot be read, with the reason."""

    def __init__(self, database: sqlite3.Connection, files: SessionFiles, tick: Tick) -> None:
        from bot.sources.clock import local_zone

        self._database, self._files, self._tick = database, files, tick
        self._zone = local_zone()
        self.failed: dict[str, str] = {}

    def run(self) -> None:
        """Batch after batch, each a transaction: what is written stays, whatever happens to the rest."""
        self._database.execute(f"PRAGMA cache_size = -{_CACHE}")
        while is_behind(self._database, self._files, self.failed):
            with writing(self._database):
                self._step()
        with writing(self._database):
            self._number(stamp_of(self._files))

    def _step(self) -> None:
        held = self._held()
        for path in held.keys() - {file.path for file in self._files.sessions}:
            forget(self._database, held[path].number)
            self._database.execute("DELETE FROM files WHERE number = ?", (held[path].number,))
        batch = Batch(int(fact(self._database, "next") or 1))
        if batch.first + 2 * BATCH > LAST:
            raise sqlite3.DatabaseError("full")  # it is made anew, with numbers from 1
        self._fill(batch, held)
        batch.write(self._database)
        note(self._database, "next", str(batch.next))
        tidy(self._database)
        self._database.execute("DELETE FROM sessions WHERE number NOT IN (SELECT session FROM passages)")

    def _fill(self, batch: Batch, held: Mapping[str, KnownFile]) -> None:
        count = 0
        for file in self._files.sessions:
            known = held.get(file.path)
            if file.path in self.failed or (known and known.mark == file.mark):
                continue
            if len(batch) >= BATCH or count >= MAX_FILES:
                return
            count += 1
            try:
                self._take(file, known, batch)
            except OSError as error:
                self.failed[file.path] = error.strerror or str(error)

    def _take(self, file: SessionFile, known: KnownFile | None, batch: Batch) -> None:
        from bot.sources.session_reader import Cursor, is_same, read_portion

        goes_on = known is not None and known.inode == file.inode and is_same(file, known.cursor)
        cursor = known.cursor if known and goes_on else Cursor()
        portion = read_portion(file, cursor, BATCH - len(batch), self._zone)
        if known and not goes_on:
            forget(self._database, known.number)
        number = self._note_file(file, file.mark if portion.is_last else "", portion.cursor, portion.unfinished)
        names: dict[str, int] = {}
        for name, utterance in portion.said:
            session = names.get(name) or names.setdefault(name, self._session(name))
            self._add(utterance, number, session, batch)
        self._tick(portion.lines)

    def _add(self, said: Utterance, file: int, session: int, batch: Batch) -> None:
        number = batch.add(terms(said.text) + terms("\n".join(said.files)))
        at = microseconds(said.at) if said.at else None
        self._database.execute("INSERT INTO passages VALUES (?, ?, ?, ?, ?)", (number, file, session, said.type, at))
        self._database.execute("INSERT INTO texts VALUES (?, ?, ?)", (number, said.text, "\n".join(said.files)))

    def _session(self, name: str) -> int:
        self._database.execute("INSERT OR IGNORE INTO sessions (id) VALUES (?)", (name,))
        return int(self._database.execute("SELECT number FROM sessions WHERE id = ?", (name,)).fetchone()[0])

    def _note_file(self, file: SessionFile, mark: str, cursor: Cursor, unfinished: int) -> int:
        row = (file.path, mark, file.inode, *cursor, unfinished)
        return int(
            self._database.execute(
                "INSERT INTO files (path, mark, inode, offset, session, folder, broken, last, guard, unfinished)"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (path) DO UPDATE SET mark = excluded.mark,"
                " inode = excluded.inode, offset = excluded.offset, session = excluded.session,"
                " folder = excluded.folder, broken = excluded.broken, last = excluded.last, guard = excluded.guard,"
                " unfinished = excluded.unfinished RETURNING number",
                row,
            ).fetchone()[0]
        )

    def _held(self) -> dict[str, KnownFile]:
        from bot.sources.session_reader import Cursor

        rows = self._database.execute(
            "SELECT path, number, mark, inode, offset, session, folder, broken, last, guard FROM files"
        )
        return {row[0]: KnownFile(row[1], row[2], row[3], Cursor(*row[4:])) for row in rows}

    def _number(self, stamp: str) -> None:
        if fact(self._database, "mapping") == stamp:
            return
        from bot.sources.session_issues import issues_of_sessions

        self._database.execute("UPDATE files SET issue = NULL WHERE issue IS NOT NULL")
        known = issues_of_sessions(self._files.mappings, self._files.sessions)
        self._database.executemany(
            "UPDATE files SET issue = ? WHERE path = ?", ((number, path) for path, number in known.items())
        )
        note(self._database, "mapping", stamp)


def is_behind(database: sqlite3.Connection, files: SessionFiles, failed: Container[str] = ()) -> bool:
    """Whether a file is new, has changed or is gone; one that ``failed`` is as it can be. Asked before every search."""
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


# -- posting lists ---------------------------------------------------------------------------------------------------

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
            asked = "INSERT INTO segments (first, last, size, gone) VALUES (?, ?, ?, 0)"
            segment = database.execute(asked, (self.first, self.next - 1, len(self))).lastrowid
            _write_lists(database, segment or 0, self._lists)


def _write_lists(database: sqlite3.Connection, segment: int, lists: Mapping[str, array[int]]) -> None:
    rows = ((segment, term, each.tobytes()) for term, each in sorted(lists.items()))
    database.executemany("INSERT INTO postings VALUES (?, ?, ?)", rows)


def _level(frequency: float) -> int:
    return 1 + bisect_left(_BOUNDS, frequency / (K1 + frequency))


def segments(database: sqlite3.Connection) -> list[PassageSegment]:
    """All of them, oldest first."""
    rows = database.execute("SELECT number, first, last, size, gone FROM segments ORDER BY first")
    return [PassageSegment(*row) for row in rows]


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
            lists.setdefault(term, array("I")).extend(part)
    for segment in group:
        database.execute("DELETE FROM postings WHERE segment = ?", (segment.number,))
        database.execute("DELETE FROM segments WHERE number = ?", (segment.number,))
        database.execute("DELETE FROM gone WHERE number BETWEEN ? AND ?", (segment.first, segment.last))
    live = sum(map(_live, group))
    if live:
        row = (group[0].number, group[0].first, group[-1].last, live)
        database.execute("INSERT INTO segments VALUES (?, ?, ?, ?, 0)", row)
        _write_lists(database, group[0].number, lists)


def _lists(database: sqlite3.Connection, segment: PassageSegment) -> Iterator[tuple[str, array[int]]]:
    span = (segment.first, segment.last)
    gone = {row[0] for row in database.execute("SELECT number FROM gone WHERE number BETWEEN ? AND ?", span)}
    for term, data in database.execute("SELECT term, list FROM postings WHERE segment = ? ORDER BY term", segment[:1]):
        part = array("I", data[: len(data) // 4 * 4])
        if gone:
            part = array("I", (posting for posting in part if posting >> LEVEL_BITS not in gone))
        if part:
            yield term, part
