"""The index of sessions in a file: what was said, who said it when, and what each session worked on.

SQLite FTS5 keeps it in a cache file that never leaves the machine. The terms come from our own analyser, and the
ranking is our own, too: BM25 (S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009) with rounded frequencies as in `bot.index.scoring`, and a floor below which nothing is shown.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.comment.clean_text import truncate
from bot.domain.card import SessionOutline, SessionPassage
from bot.index.scoring import LEVELS, MIN_QUERY_SHARE, heaviest, least, level_of, query_share, query_shares
from bot.local_cache.database import SESSIONS_SCHEMA, is_damage, is_replaced, open_database, reading, reason_of, writing
from bot.local_cache.session_sync import (
    BRANCH,
    EPOCH,
    FIRST_PROMPT_SQL,
    PROMPT,
    PULL_REQUEST,
    SessionSync,
    Tick,
    is_behind,
    is_unmapped,
    microseconds,
)
from bot.ranking.rarity import idf
from bot.reading.analyzer import terms
from bot.reading.passage import passage
from bot.sources.sessions.files import SessionFile, SessionFiles
from bot.sources.sessions.formats import MAX_HEAD_BYTES, Origin, origin_in
from bot.sources.sessions.head import head_of

if TYPE_CHECKING:
    from bot.domain.thread import Thread
    from bot.sources.sessions.session import Utterance
    from bot.sources.sessions.worktrees import Worktrees

MAX_QUERY_CHARS = 2_000
"""Characters of a query that are used."""

MAX_MESSAGES = 20_000
"""Messages of one session that are shown, from the first."""

MAX_EXCERPT = 500
"""Characters of a message that a search shows."""

MAX_WAIT = 2.0
"""Seconds that a search waits for another process that is writing the index."""

_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_MAX_TITLE_CHARS = 200

_PASSAGE_SQL = (
    "SELECT p.type, s.id, f.path, t.text, t.files FROM passages p JOIN sessions s ON s.number = p.session"
    " JOIN files f ON f.number = p.file JOIN texts t ON t.number = p.number WHERE p.number = ?"
)
_NEWEST_SQL = (
    "SELECT p.type, t.text, p.at, f.path FROM sessions s JOIN passages p ON p.session = s.number"
    " JOIN texts t ON t.number = p.number JOIN files f ON f.number = p.file WHERE s.id = ? AND t.text != ''"
    " ORDER BY p.at IS NULL, p.at DESC, p.number DESC LIMIT 1"
)
_OUTLINES_SQL = (
    "SELECT s.number, s.id, min(p.at), max(p.at), count(*), min(p.file) FROM passages p"
    " JOIN sessions s ON s.number = p.session"
)


class TranscriptHead(NamedTuple):
    """The working folder of a transcript, and the git folder of its checkout while that existed, or the name of its
    repository in the transcript; "" if unknown."""

    mark: str = ""
    folder: str = ""
    owner: str = ""


class SessionIndex:
    """The index of sessions in the file at ``path``. Raises WorldError if the file cannot be opened.

    A file that cannot be written now, as another process writes it or it is read-only, is read as it is. All methods
    raise `sqlite3.Error` for a damaged file: `ask_sessions` replaces it.

    ``committed`` are paths of transcripts that came with a checkout: anybody who may open a pull request could put
    words into the agent's mouth, so they are found only if somebody searches for sessions.
    """

    def __init__(self, path: Path) -> None:
        self.committed: frozenset[str] = frozenset()
        self._unwritable = ""
        """Why the file cannot be written, "" as long as it can."""
        self._database = open_database(path, SESSIONS_SCHEMA, MAX_WAIT)

    def close(self) -> None:
        self._database.close()

    def refresh(self, files: SessionFiles, tick: Tick = lambda _: None) -> tuple[str, ...]:
        """Read what is new in these files, and forget all others. Returns sentences about what was left out.

        ``tick`` receives the number of lines of each portion. A kill loses only the current portion.
        """
        failed: Mapping[str, str] = {}
        if is_behind(self._database, files) or is_unmapped(self._database, files):
            sync = SessionSync(self._database, files, tick)
            self._write(sync.run)
            failed = sync.failed
        notes = [f"{path} cannot be read: {reason}" for path, reason in sorted(failed.items())]
        if self._unwritable and is_behind(self._database, files, failed):
            outdated = "The index of agents' sessions was not updated, so the newest may be missing"
            notes.append(f"{outdated}: {self._unwritable}")
        return (*files.notes, *notes)

    def unchanged(self) -> AbstractContextManager[None]:
        """A block that sees one state of the file, whatever other processes write meanwhile."""
        return reading(self._database)

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[SessionPassage]:
        """Return the messages that match these words best, newest first among equals.

        A message must hold at least half of the words, weighted by rarity. ``since`` leaves out older messages and
        those without a time.
        """
        ranking = rank_passages(self._database, terms(words[:MAX_QUERY_CHARS]), since)
        return list(islice(self._passages(ranking.found, ranking.rarity), max(0, limit)))

    def search_each(self, words: str, limit: int, since: datetime | None = None) -> list[SessionPassage]:
        """Return the best message of each of the best sessions, newest first among equals; none of a committed
        transcript."""
        best_by_session: dict[int, RankedPassage] = {}
        ranking = rank_passages(self._database, terms(words[:MAX_QUERY_CHARS]), since)
        committed = self._committed_files()
        for ranked in ranking.found:
            if ranked.file not in committed:
                best_by_session.setdefault(ranked.session, ranked)
                if len(best_by_session) >= limit:
                    break
        return list(self._passages(best_by_session.values(), ranking.rarity))

    @property
    def size(self) -> int:
        """Number of sessions with messages."""
        return int(self._database.execute("SELECT count(DISTINCT session) FROM passages").fetchone()[0])

    def outline(self, id: str) -> SessionOutline | None:
        """Return a session without its messages; None if it is unknown."""
        row = self._database.execute(f"{_OUTLINES_SQL} WHERE s.id = ? GROUP BY p.session", (id,)).fetchone()
        return self._outline(row) if row else None

    def find_by_subject(self, numbers: Sequence[int], repo: str, branch: str = "") -> list[SessionOutline]:
        """Return the sessions that worked on these issues or pull requests, or on this branch, each with the reasons;
        the most recently ended first. ``repo`` is OWNER/NAME, "" if unknown."""
        reasons: dict[int, dict[str, None]] = {}
        paths: dict[int, str] = {}
        for subject in sessions_about(self._database, numbers, repo, branch):
            reasons.setdefault(subject.session, {})[subject.why] = None
            paths.setdefault(subject.session, subject.path)
        outlines = []
        for session, why in reasons.items():
            row = self._database.execute(f"{_OUTLINES_SQL} WHERE s.number = ?", (session,)).fetchone()
            outlines.append(self._outline(row)._replace(path=paths[session], why=tuple(why)))
        return sorted(outlines, key=lambda outline: (outline.ended or EPOCH, outline.id), reverse=True)

    def newest_message(self, id: str) -> SessionPassage | None:
        """Return the newest message of a session that has a text, from its beginning; None if there is none."""
        row = self._database.execute(_NEWEST_SQL, (id,)).fetchone()
        if row is None:
            return None
        kind, text, at, path = row
        return SessionPassage(id, kind, excerpt(text, ""), _to_datetime(at), 0.0, path)

    def paths(self, id: str) -> list[str]:
        """Return the files that hold messages of a session."""
        sql = (
            "SELECT DISTINCT f.path FROM sessions s JOIN passages p ON p.session = s.number"
            " JOIN files f ON f.number = p.file WHERE s.id = ?"
        )
        return [path for (path,) in self._database.execute(sql, (id,))]

    def heads(self, files: Iterable[SessionFile], trees: Worktrees) -> dict[str, TranscriptHead]:
        """Return the head of each of these files by its path. Reads only the beginnings that are new or have changed,
        and forgets all other files."""
        rows = self._database.execute("SELECT path, mark, folder, owner FROM heads").fetchall()
        known = {path: TranscriptHead(*row) for path, *row in rows}
        heads = {file.path: _head_of(file, known.get(file.path, TranscriptHead()), trees) for file in files}
        changed = [(path, *head) for path, head in heads.items() if known.get(path) != head]
        gone = [(path,) for path in known.keys() - heads.keys()]

        def store() -> None:
            with writing(self._database):
                self._database.executemany("DELETE FROM heads WHERE path = ?", gone)
                self._database.executemany("INSERT OR REPLACE INTO heads VALUES (?, ?, ?, ?)", changed)

        if changed or gone:
            self._write(store)
        return heads

    def session(self, id: str, number: int | None = None) -> Thread | None:
        """Return a session as a thread; None if it is unknown. ``number``: the issue that it worked on, if not the one
        in a mapping file."""
        from bot.sources.sessions.session import Session, Utterance, thread_of

        rows = self._database.execute(
            "SELECT p.type, t.text, p.at, t.files, f.path, f.issue FROM sessions s"
            " JOIN passages p ON p.session = s.number JOIN texts t ON t.number = p.number"
            " JOIN files f ON f.number = p.file WHERE s.id = ? ORDER BY p.number LIMIT ?",
            (id, MAX_MESSAGES),
        ).fetchall()
        if not rows:
            return None
        first_paths: dict[tuple[str, str], str] = {}
        messages = []
        for kind, text, at, files, path, _ in rows:
            if not text or first_paths.setdefault((kind, text), path) == path:  # repeated by another file
                messages.append(Utterance(kind, text, _to_datetime(at), tuple(filter(None, files.split("\n")))))
        issue = number or next((row[5] for row in rows if row[5]), None)
        return thread_of(Session(id, rows[0][4], _sort_by_time(messages), issue))

    def broken_lines(self) -> dict[str, int]:
        """Return the number of unreadable lines of each file that has any."""
        return dict(
            self._database.execute(
                "SELECT path, broken + unfinished FROM files WHERE broken + unfinished > 0 ORDER BY path"
            )
        )

    def _write(self, change: Callable[[], None]) -> None:
        """Change the file, unless another process is writing it or it cannot be written: that waits only once."""
        if self._unwritable:
            return
        try:
            change()
        except sqlite3.Error as error:
            if is_damage(error) or is_replaced(error):
                raise
            self._unwritable = reason_of(error)

    def _passages(self, ranked: Iterable[RankedPassage], rarity: Mapping[str, float]) -> Iterator[SessionPassage]:
        """The messages as they are shown, without those that repeat an earlier one of their session."""
        seen: set[tuple[int, str, str]] = set()
        for one in ranked:
            kind, name, path, text, files = self._database.execute(_PASSAGE_SQL, (one.number,)).fetchone()
            if (one.session, kind, text) not in seen:
                seen.add((one.session, kind, text))
                text_shown = excerpt(text, files, rarity)
                yield SessionPassage(name, kind, text_shown, _to_datetime(one.at), one.score, path, one.part)

    def _committed_files(self) -> set[int]:
        if not self.committed:
            return set()
        files = self._database.execute("SELECT number, path FROM files")
        return {number for number, path in files if path in self.committed}

    def _outline(self, row: tuple[int, str, int | None, int | None, int, int]) -> SessionOutline:
        number, name, begun, ended, count, file = row
        path, issue = self._database.execute("SELECT path, issue FROM files WHERE number = ?", (file,)).fetchone()
        prompt = self._database.execute(FIRST_PROMPT_SQL, (_MAX_TITLE_CHARS, number)).fetchone()
        files = self._database.execute(
            "SELECT DISTINCT t.files FROM passages p JOIN texts t ON t.number = p.number"
            " WHERE p.session = ? AND t.files != ''",
            (number,),
        )
        touched = dict.fromkeys(path for (names,) in files for path in names.split("\n"))
        title = prompt[0].partition("\n")[0].strip() if prompt else ""
        return SessionOutline(name, title, _to_datetime(begun), _to_datetime(ended), count, path, issue, tuple(touched))


def _head_of(file: SessionFile, known: TranscriptHead, trees: Worktrees) -> TranscriptHead:
    """The head of a file; ``known`` is its former one, of a time when its folder may have existed."""
    if known.mark == file.mark:
        return known
    origin = Origin(file.folder) if file.folder else origin_in(head_of(file.path, MAX_HEAD_BYTES))
    former = known.owner if known.folder == origin.folder and known.owner.startswith("/") else ""
    return TranscriptHead(file.mark, origin.folder, trees.owner_of(origin.folder) or former or origin.repository)


def _sort_by_time(messages: Iterable[Utterance]) -> tuple[Utterance, ...]:
    """Sort messages of several files by time; one without a time stays after its predecessor."""
    now = EPOCH
    times: list[tuple[datetime, int, Utterance]] = []
    for message in messages:
        now = message.at or now
        times.append((now, len(times), message))
    return tuple(message for *_, message in sorted(times, key=lambda one: one[:2]))


def _to_datetime(number: int | None) -> datetime | None:
    return None if number is None or number == _NO_TIME else EPOCH + timedelta(microseconds=number)


def excerpt(text: str, files: str, query_terms: Collection[str] = ()) -> str:
    """Return the text if it is short, else its part with most of the words; then ``files``, one per line, with others.

    At most 500 characters, without HTML comments, which are invisible.
    """
    visible = _HTML_COMMENT.sub("", text) if "<!--" in text else text
    missing = set(query_terms).difference(terms(visible))
    paths = [path for path in files.split("\n") if path and (not visible or missing.intersection(terms(path)))]
    files_note = f"Files: {', '.join(paths)}"[: MAX_EXCERPT // 2] if paths else ""
    room = MAX_EXCERPT - len(files_note) - 2
    shown = visible if len(visible) <= room else passage(visible, query_terms, most=room) or truncate(visible, room)
    return "\n\n".join(filter(None, (shown, files_note)))


# -- ranking ---------------------------------------------------------------------------------------------------------

K1, B = 1.2, 0.5
"""Saturation, and how much length counts: messages of sessions are short or long for no particular reason."""

TYPICAL_LENGTH = 60
"""Terms in a typical message."""


class RankedPassage(NamedTuple):
    """A message that passes the floor: its score in BM25 units, the share of the total weight that it holds (0..1), its
    time in microseconds since 1970 (`_NO_TIME`: unknown), and the numbers of its session and file."""

    number: int
    score: float
    part: float
    at: int
    session: int
    file: int


class PassageRanking(NamedTuple):
    """Messages, best first, to be read once, and the weight of each term of the query."""

    found: Iterator[RankedPassage]
    rarity: Mapping[str, float]


def rank_passages(
    database: sqlite3.Connection, query_terms: Sequence[str], since: datetime | None = None
) -> PassageRanking:
    """Rank all messages that hold enough of these terms and are not older than ``since``.

    On a tie the newest comes first, one without a time last, then the one read earlier.
    """
    total = int(database.execute("SELECT count(*) FROM passages").fetchone()[0])
    scores: dict[int, float] = {}
    held: dict[int, list[str]] = {}
    rows: dict[int, _Occurrence] = {}
    occurrences: dict[str, list[_Occurrence]] = {
        term: database.execute(_OCCURRENCES_SQL, (_NO_TIME, term)).fetchall()
        for _, term in heaviest(dict.fromkeys(query_terms, 1.0))
    }
    rarity = {term: idf(len(found), max(total, len(found))) for term, found in occurrences.items()}
    for term, found in occurrences.items():
        for row in found:
            passage, count, length, *_ = row
            scores[passage] = scores.get(passage, 0.0) + rarity[term] * _saturate(count, length) * (K1 + 1)
            held.setdefault(passage, []).append(term)
            rows[passage] = row
    earliest = _NO_TIME if since is None else microseconds(since)
    shares = query_shares(rarity)
    parts = {number: query_share(shares, terms) for number, terms in held.items() if rows[number][3] >= earliest}
    order = sorted(
        (-scores[passage], -rows[passage][3], passage)
        for passage, part in parts.items()
        if part >= least(MIN_QUERY_SHARE)
    )
    ranked = (RankedPassage(passage, -score, parts[passage], *rows[passage][3:]) for score, _, passage in order)
    return PassageRanking(ranked, rarity)


_Occurrence = tuple[int, int, int, int, int, int]
"""The number of a message, how often it has a term, its length in terms, and its time, session and file."""

_NO_TIME = -(1 << 62)
"""Stands for an unknown time: before all others."""

_OCCURRENCES_SQL = (
    "SELECT o.doc, count(*), p.length, coalesce(p.at, ?), p.session, p.file FROM occurrences o"
    " CROSS JOIN passages p ON p.number = o.doc WHERE o.term = ? GROUP BY o.doc"
)


@lru_cache(1 << 16)
def _saturate(count: int, length: int) -> float:
    """The frequency component of BM25, rounded to the nearest level."""
    frequency = count * (1 / (1 - B + B * length / TYPICAL_LENGTH))
    return LEVELS[level_of(frequency / (K1 + frequency))]


# -- what sessions worked on -------------------------------------------------------------------------------------------

_REASONS = {
    BRANCH: "on the branch {}",
    PULL_REQUEST: "its pull request is {}",
    PROMPT: "its first prompt names {}",
}


class Subject(NamedTuple):
    """A session, one of its files, and why it matches."""

    session: int
    path: str
    why: str


_BY_NUMBER = "s.number = ? AND s.number > 0"
_BY_BRANCH = "s.kind = 'branch' AND s.name = ?"
_SUBJECTS_SQL = (
    "SELECT DISTINCT p.session, f.path, s.kind, s.name, s.repo FROM subjects s"
    " JOIN passages p ON p.session = s.session JOIN files f ON f.number = p.file WHERE "
)
_MAPPED_SQL = "SELECT DISTINCT p.session, f.path FROM files f JOIN passages p ON p.file = f.number WHERE f.issue = ?"


def sessions_about(
    database: sqlite3.Connection, numbers: Iterable[int], repo: str, branch: str = ""
) -> Iterator[Subject]:
    """The sessions that worked on these issues or pull requests of ``repo`` ("" if unknown), or on this branch."""
    for number in numbers:
        yield from _query_subjects(database, _SUBJECTS_SQL + _BY_NUMBER, number, repo)
        for session, path in database.execute(_MAPPED_SQL, (number,)).fetchall():
            yield Subject(session, path, f"a mapping file names #{number}")
    if branch:
        yield from _query_subjects(database, _SUBJECTS_SQL + _BY_BRANCH, branch, repo)


def _query_subjects(database: sqlite3.Connection, sql: str, key: int | str, repo: str) -> Iterator[Subject]:
    for session, path, kind, name, owner in database.execute(sql, (key,)).fetchall():
        if not owner or not repo or owner.casefold() == repo.casefold():
            yield Subject(session, path, _REASONS[kind].format(name))
