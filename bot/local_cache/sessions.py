"""Opens and searches transcripts of agents, as named by the settings of the checkout or by the user.

SQLite FTS5 keeps the index in a cache file that never leaves the machine. The terms come from our own analyser, and the
ranking is our own, too: BM25 (S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009) with rounded frequencies as in `bot.index.scoring`, and a floor below which nothing is shown.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import SessionHit, SessionOutline, SessionPassage
from bot.errors import UserError
from bot.index.scoring import LEVELS, MIN_QUERY_SHARE, heaviest, least, query_shares
from bot.local_cache.database import (
    SESSIONS_SCHEMA,
    is_damage,
    is_replaced,
    open_database,
    raise_unusable,
    reading,
    reason_of,
    remove,
)
from bot.local_cache.local_memory import ProgressBar, cache_folder, cache_name, no_progress
from bot.local_cache.session_excerpts import excerpt
from bot.local_cache.session_owners import own_sessions, read_heads, store_heads
from bot.local_cache.session_results import Found, SessionAnswer, SessionRecord
from bot.local_cache.session_sources import SessionSources, session_sources
from bot.local_cache.session_subjects import FIRST_PROMPT_SQL, sessions_about
from bot.local_cache.session_sync import EPOCH, SessionSync, Tick, is_behind, is_unmapped, microseconds
from bot.questions.requests import WordSearch
from bot.questions.search import SessionHits
from bot.ranking.rarity import idf
from bot.reading.analyzer import terms
from bot.sources.session_files import SessionFile, SessionFiles, find_sessions
from bot.sources.session_worktrees import Worktrees

if TYPE_CHECKING:
    from bot.domain.card import Worktree
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.questions.requests import SmartSearch
    from bot.sources.session import Utterance


MAX_QUERY_CHARS = 2_000
"""Characters of a query that are used."""

MAX_MESSAGES = 20_000
"""Messages of one session that are shown, from the first."""

MAX_WAIT = 2.0
"""Seconds that a search waits for another process that is writing the index."""

_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
MAX_SHOWN = 20
"""Sessions that are listed for an issue or a branch."""

MAX_AFTER_THREADS = 5
"""Sessions that a search of all kinds shows after the threads."""

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

    def sessions(self, since: datetime | None = None) -> list[SessionOutline]:
        """Return all sessions with messages since then, the most recently ended first."""
        earliest = -1 if since is None else microseconds(since)
        rows = self._database.execute(
            f"{_OUTLINES_SQL} GROUP BY p.session HAVING coalesce(max(p.at), 0) > ?"
            " ORDER BY coalesce(max(p.at), 0) DESC, s.id",
            (earliest - 1,),
        )
        return [self._outline(row) for row in rows.fetchall()]

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
        return SessionPassage(id, kind, excerpt(_strip_html_comments(text), "", {}), _to_datetime(at), 0.0, path)

    def paths(self, id: str) -> list[str]:
        """Return the files that hold messages of a session."""
        sql = (
            "SELECT DISTINCT f.path FROM sessions s JOIN passages p ON p.session = s.number"
            " JOIN files f ON f.number = p.file WHERE s.id = ?"
        )
        return [path for (path,) in self._database.execute(sql, (id,))]

    def own_files(self, files: SessionFiles, sources: SessionSources) -> tuple[SessionFile, ...]:
        """Return those of the files in the usual folders that are transcripts of the checkout."""
        trees = Worktrees(str(sources.top))
        heads = read_heads(self._database, files.sessions, trees)
        self._write(lambda: store_heads(self._database, heads))
        return own_sessions(files.sessions, heads, sources, trees)

    def session(self, id: str, number: int | None = None) -> Thread | None:
        """Return a session as a thread; None if it is unknown. ``number``: the issue that it worked on, if not the one
        in a mapping file."""
        from bot.sources.session import Session, Utterance, thread_of

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
                text_shown = excerpt(_strip_html_comments(text), files, rarity)
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


def _strip_html_comments(text: str) -> str:
    """Remove HTML comments, which are invisible, before the text is cut."""
    return _HTML_COMMENT.sub("", text) if "<!--" in text else text


# -- ranking ---------------------------------------------------------------------------------------------------------

K1, B = 1.2, 0.5
"""Saturation, and how much length counts: messages of sessions are short or long for no particular reason."""

TYPICAL_LENGTH = 60
"""Terms in a typical message."""

_LEVEL_BOUNDS = tuple((low * high) ** 0.5 for low, high in pairwise(LEVELS[1:]))


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
    parts: dict[int, float] = {}
    rows: dict[int, _Occurrence] = {}
    occurrences: dict[str, list[_Occurrence]] = {
        term: database.execute(_OCCURRENCES_SQL, (_NO_TIME, term)).fetchall()
        for _, term in heaviest(dict.fromkeys(query_terms, 1.0))
    }
    rarity = {term: idf(len(found), max(total, len(found))) for term, found in occurrences.items()}
    shares = query_shares(rarity)
    for term, found in occurrences.items():
        for row in found:
            passage, count, length, *_ = row
            scores[passage] = scores.get(passage, 0.0) + rarity[term] * _saturate(count, length) * (K1 + 1)
            parts[passage] = parts.get(passage, 0.0) + shares[term]
            rows[passage] = row
    earliest = _NO_TIME if since is None else microseconds(since)
    order = sorted(
        (-scores[passage], -moment, passage)
        for passage, part in parts.items()
        if part >= least(MIN_QUERY_SHARE) and (moment := rows[passage][3]) >= earliest
    )
    ranked = (
        RankedPassage(passage, -score, min(1.0, parts[passage]), *rows[passage][3:]) for score, _, passage in order
    )
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
    return LEVELS[1 + bisect_left(_LEVEL_BOUNDS, frequency / (K1 + frequency))]


class SessionScope(NamedTuple):
    """The sessions to ask: those that the settings at ``top`` name, those in the usual folders of coding agents, and
    these ``transcripts``. ``required``: wrong settings raise UserError, instead of naming none."""

    top: Path | None
    transcripts: Sequence[str] = ()
    required: bool = False
    progress: ProgressBar = no_progress


_DAMAGE = (sqlite3.Error, ValueError, TypeError, AttributeError, ArithmeticError, LookupError)
"""What a damaged file may raise: SQLite has no checksums, so it may also return values that were never stored."""


def ask_sessions(scope: SessionScope, question: Callable[[SessionIndex], Iterable[Found]]) -> SessionAnswer[Found]:
    """Bring the index up to date and ask it; without sessions, the question is not asked.

    A damaged index is replaced. Raises UserError if one of ``transcripts`` names none, and WorldError if the index
    cannot be read, such as when another process keeps it locked.
    """
    sources = session_sources(scope.top, required=scope.required)
    if not sources.are_known and not scope.transcripts:
        return SessionAnswer()
    path = _index_path(scope, sources)
    try:
        return _ask(path, scope, sources, question)
    except _DAMAGE as error:
        _discard(path, error)
    try:
        return _ask(path, scope, sources, question)
    except sqlite3.Error as error:
        raise_unusable(path, error)


def _discard(path: Path, error: Exception) -> None:
    """Remove a damaged file. Raises WorldError if the error has another reason, or the file cannot be removed."""
    if isinstance(error, sqlite3.Error) and not is_damage(error):
        if not is_replaced(error):
            raise_unusable(path, error)
        return
    try:
        remove(path)
    except OSError as failure:
        raise_unusable(path, failure)


def _index_path(scope: SessionScope, sources: SessionSources) -> Path:
    from bot.sources.session_times import local_key  # not needed for a search of the memory

    patterns = [*sources.patterns, *map(_absolute_path, scope.transcripts)]
    usual = ["the usual folders"] if sources.folders else []
    folder = str(_folder_of(scope, sources))
    name = cache_name("\n".join([folder, *patterns, *usual, local_key()]))  # stored times depend on the zone
    version = SESSIONS_SCHEMA.format.replace(" ", "-")  # other versions use other files
    return cache_folder() / "logs" / f"{name}.{version}.db"


def _folder_of(scope: SessionScope, sources: SessionSources) -> Path:
    return scope.top if scope.top and sources.are_known else Path.cwd()


def _ask(
    path: Path, scope: SessionScope, sources: SessionSources, question: Callable[[SessionIndex], Iterable[Found]]
) -> SessionAnswer[Found]:
    with closing(SessionIndex(path)) as index:
        typed = {_absolute_path(transcript): transcript for transcript in scope.transcripts}
        wanted = find_sessions(typed, str(_folder_of(scope, sources)))
        for pattern, reason in wanted.unmatched.items():
            raise UserError(f"--logs {typed[pattern]}: {reason}")
        files = wanted.merge(_known_sessions(index, sources, {file.path for file in wanted.sessions}))
        with scope.progress("Reading transcripts", None) as tick:
            notes = index.refresh(files, tick)
        unreadable = tuple(_unreadable_notes(files))
        if not (files.sessions or sources.patterns or typed):
            return SessionAnswer(notes=notes, searched=unreadable)
        with index.unchanged():
            found, notes = tuple(question(index)), (*notes, *_broken_note(index))
            return SessionAnswer(found, notes, (*_folders_note(index, sources, files), *unreadable))


def _known_sessions(index: SessionIndex, sources: SessionSources, wanted: Container[str]) -> SessionFiles:
    """The sessions that the settings name, and those in the usual folders that did not come with a checkout. Tells the
    index which are committed, except for the ``wanted`` ones."""
    named, usual = find_sessions(sources.patterns, str(sources.top)), _usual_sessions(index, sources)
    committed = _committed_paths(sources.top, named.merge(usual))
    index.committed = frozenset(path for path in committed if path not in wanted)
    return named.merge(usual.without(committed))


def _usual_sessions(index: SessionIndex, sources: SessionSources) -> SessionFiles:
    """The sessions of the checkout in the usual folders."""
    inside = find_sessions([each.path for each in sources.folders if each.is_in_checkout], str(sources.top))
    patterns = [f"{each.path}/{glob}" for each in sources.folders if not each.is_in_checkout for glob in each.patterns]
    if not patterns:
        return inside
    files = find_sessions(patterns, str(sources.top), with_notes=False)
    return inside.merge(files._replace(sessions=index.own_files(files, sources)))


def _committed_paths(top: Path | None, files: SessionFiles) -> set[str]:
    stored_in = {file.path: file.database or file.path for file in (*files.sessions, *files.mappings)}
    if not stored_in:
        return set()
    from bot.git.checkout import tracked_files

    tracked = tracked_files(top, dict.fromkeys(stored_in.values()))
    return {path for path, stored in stored_in.items() if stored in tracked}


def _broken_note(index: SessionIndex) -> Iterator[str]:
    if broken := sum(index.broken_lines().values()):
        yield "1 broken line was left out." if broken == 1 else f"{broken:,} broken lines were left out."


def _unreadable_notes(files: SessionFiles) -> Iterator[str]:
    """What is in the usual folders in a format that is not read; other checkouts may have some of it."""
    for name, count in files.unreadable.items():
        yield f"{count:,} file{'s' * (count != 1)} cannot be read: {name}."


def _folders_note(index: SessionIndex, sources: SessionSources, files: SessionFiles) -> Iterator[str]:
    """A note on the default folders that were searched."""
    paths = [file.path for file in files.sessions]
    used = [folder for folder in sources.folders if any(path.startswith(f"{folder.path}/") for path in paths)]
    if not used:
        return
    count, prefixes = index.size, tuple(f"{folder.path}/" for folder in used)
    others = "" if all(path.startswith(prefixes) for path in paths) else ", some of them"
    folders = " and ".join(dict.fromkeys(folder.shown for folder in used))
    yield (
        f"Searched {count:,} session{'s' * (count != 1)}{others} in {folders} "
        "(sources.default_sessions: false leaves these out)."
    )


def about_issue(memory: LocalMemory, number: int) -> SessionAnswer[SessionOutline]:
    """Return the sessions that worked on an issue or pull request, or on the pull request that fixed it. Those with
    committed transcripts are left out."""
    numbers = _numbers_of(memory, number)
    return ask_sessions(_scope_of(memory), lambda index: _outlines_about(index, memory, numbers))


def read_about_issue(memory: LocalMemory, number: int) -> SessionAnswer[SessionRecord]:
    """As `about_issue`, with the messages."""

    def read(index: SessionIndex) -> Iterator[SessionRecord]:
        for outline in _outlines_about(index, memory, numbers):
            if thread := index.session(outline.id, number):
                yield SessionRecord(outline, thread)

    numbers = _numbers_of(memory, number)
    return ask_sessions(_scope_of(memory), read)


def about_work(memory: LocalMemory, worktree: Worktree) -> SessionAnswer[SessionOutline]:
    """Return the sessions on the branch of a checkout, or on the issues that its name and its commits name."""
    numbers, branch = _subjects_of(worktree)
    if not numbers and not branch:
        return SessionAnswer()
    return ask_sessions(_scope_of(memory), lambda index: _outlines_about(index, memory, numbers, branch))


def find_at_work(request: SmartSearch, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """As `about_work`, each with its newest message, and no more of them than a search shows."""

    def search(index: SessionIndex) -> Iterator[SessionHit]:
        outlines = _outlines_about(index, memory, numbers, branch)
        for outline in outlines[: min(request.limit, MAX_AFTER_THREADS)]:
            if passage := index.newest_message(outline.id):
                yield SessionHit(outline, passage)

    numbers, branch = _subjects_of(request.worktree)
    return ask_sessions(_scope_of(memory), search) if numbers or branch else SessionAnswer()


def _subjects_of(worktree: Worktree) -> tuple[tuple[int, ...], str]:
    """The issues that the branch and the commits of a checkout name, and the branch."""
    from bot.questions.worktree_query import worktree_query

    signals = worktree_query(worktree)
    return (*signals.tickets, *signals.mentioned), worktree.branch


def _numbers_of(memory: LocalMemory, number: int) -> list[int]:
    """An issue, and the pull requests that fixed it."""
    fixes = [link.target for link in memory.local_cache.links([number]) if link.kind == "fix" and link.source == number]
    return [number, *(each for each in fixes if isinstance(each, int))]


def _scope_of(memory: LocalMemory) -> SessionScope:
    return SessionScope(memory.session_top, progress=memory.progress)


def _outlines_about(
    index: SessionIndex, memory: LocalMemory, numbers: Sequence[int], branch: str = ""
) -> list[SessionOutline]:
    outlines = index.find_by_subject(numbers, memory.repo, branch)[:MAX_SHOWN]
    return [outline for outline in outlines if index.committed.isdisjoint(index.paths(outline.id))]


def read_session(memory: LocalMemory, id: str) -> SessionAnswer[Thread]:
    """Return the session of the checkout at hand with this id, if there is one."""
    scope = SessionScope(memory.top, progress=memory.progress)
    return ask_sessions(scope, lambda index: filter(None, [index.session(id)]))


def _absolute_path(path: str) -> str:
    try:
        return str(Path.cwd() / Path(path).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {path}: no such account") from error


def find_sessions_about(request: WordSearch, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """Find the sessions that best match the words, each with its best message."""

    def search(index: SessionIndex) -> Iterator[SessionHit]:
        words, limit = request.parsed_query.words, min(request.limit, MAX_AFTER_THREADS)
        for passage in index.search_each(words, limit, request.since):
            if outline := index.outline(passage.session):
                yield SessionHit(outline, passage)

    return ask_sessions(SessionScope(memory.session_top, request.logs, progress=memory.progress), search)


def search_sessions(
    request: WordSearch, folder: Path, option: str, progress: ProgressBar = no_progress
) -> SessionAnswer[SessionHits]:
    """Search the transcripts named by the query or by the settings of the checkout around ``folder``, and those in
    the usual folders of coding agents.

    Raises UserError if there are none, and for filters that sessions do not have; WorldError if the index cannot be
    read. ``option`` is the prefix of parameters in messages: ``--``, or nothing.
    """
    from bot.git.checkout import find_top

    def search(index: SessionIndex) -> Iterator[SessionHits]:
        passages = index.search(request.parsed_query.words, request.limit, request.since)
        yield SessionHits(tuple(passages), index.size)

    _refuse_filters(request, option)
    answer = ask_sessions(SessionScope(find_top(folder), request.logs, required=True, progress=progress), search)
    if not answer.found:
        give = "give --logs PATH, or " if option else ""
        left_out = "; ".join(note.rstrip(".") for note in (*answer.notes, *answer.searched))
        raise UserError(
            f"no sessions found for this checkout{f' ({left_out})' if left_out else ''}: "
            f"{give}set sources.sessions in the settings"
        )
    return answer


def _refuse_filters(request: WordSearch, option: str) -> None:
    if unsupported := [f"{option}{name}" for name in request.filters_without_sessions]:
        raise UserError(
            f"{', '.join(unsupported)}: not supported for sessions; "
            f"{option}kind session accepts {option}since and {option}limit"
        )
