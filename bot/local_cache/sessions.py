"""Opens and searches transcripts of agents, as named by the settings of the checkout or by the user.

SQLite FTS5 keeps the index in a cache file that never leaves the machine. The terms come from our own analyser, and the
ranking is our own, too: BM25 (S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009) with rounded frequencies as in `bot.index.impacts`, and a floor below which nothing is shown.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from bot.domain.card import MIN_QUERY_SHARE, SessionHit, SessionOutline, SessionPassage
from bot.errors import UserError, WorldError
from bot.index.impacts import LEVELS, heaviest, idf
from bot.local_cache.database import SESSIONS_SCHEMA, is_damage, open_database, raise_unusable, remove
from bot.local_cache.local_memory import ProgressBar, Warn, cache_folder, cache_name, no_progress, no_warning
from bot.local_cache.session_excerpts import excerpt
from bot.local_cache.session_owners import own_sessions
from bot.local_cache.session_sources import SessionSources, session_sources
from bot.local_cache.session_subjects import FIRST_PROMPT_SQL, sessions_about
from bot.local_cache.session_sync import EPOCH, SessionSync, Tick, is_behind, is_unmapped, microseconds
from bot.questions.requests import WordSearch
from bot.questions.search import SessionHits
from bot.reading.analyzer import terms
from bot.sources.session_files import SessionFile, SessionFiles, find_sessions

if TYPE_CHECKING:
    from bot.domain.card import Worktree
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.sources.session import Utterance


MAX_QUERY_CHARS = 2_000
"""Characters of a query that are used."""

MAX_MESSAGES = 20_000
"""Messages of one session that are shown, from the first."""

Result = TypeVar("Result")

_HTML_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
MAX_SHOWN = 20
"""Sessions that are listed for an issue or a branch."""

MAX_AFTER_THREADS = 5
"""Sessions that a search of all kinds shows after the threads."""

_MAX_PASSAGES = 50
_MAX_TITLE_CHARS = 200
_READ_AHEAD = 50
"""Extra hits to read, because a message may occur twice."""


_OUTLINES_SQL = (
    "SELECT s.number, s.id, min(p.at), max(p.at), count(*), min(p.file) FROM passages p"
    " JOIN sessions s ON s.number = p.session"
)


class SessionIndex:
    """The index of sessions in the file at ``path``. Raises WorldError if the file cannot be used.

    ``committed`` are paths of transcripts that came with a checkout: anybody who may open a pull request could put
    words into the agent's mouth, so they are found only if somebody searches for sessions.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.committed: frozenset[str] = frozenset()
        self._database = open_database(path, SESSIONS_SCHEMA)

    def close(self) -> None:
        self._database.close()

    def refresh(self, files: SessionFiles, tick: Tick = lambda _: None) -> tuple[str, ...]:
        """Read what is new in these files, and forget all others. Returns sentences about what was left out.

        ``tick`` receives the number of lines of each portion. A kill loses only the current portion.
        """
        return self._retry_empty(lambda: self._read_new(files, tick))

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[SessionPassage]:
        """Return the messages that match these words best, newest first among equals.

        A message must hold at least half of the words, weighted by rarity. ``since`` leaves out older messages and
        those without a time.
        """
        with self._replacing_damage():
            ranking = rank_passages(self._database, terms(words[:MAX_QUERY_CHARS]))
            return list(islice(self._passages(ranking, limit, since), max(0, limit)))

    def search_each(self, words: str, limit: int, since: datetime | None = None) -> list[SessionPassage]:
        """Return the best message of each of the best sessions, as found among the best messages of all; none of a
        committed transcript."""
        best_by_session: dict[str, SessionPassage] = {}
        with self._replacing_damage():
            ranking = rank_passages(self._database, terms(words[:MAX_QUERY_CHARS]))
            own = (one for one in self._passages(ranking, limit, since) if one.path not in self.committed)
            for passage in islice(own, _MAX_PASSAGES):
                best_by_session.setdefault(passage.session, passage)
                if len(best_by_session) >= limit:
                    break
        return list(best_by_session.values())

    @property
    def size(self) -> int:
        """Number of sessions with messages."""
        with self._replacing_damage():
            return int(self._database.execute("SELECT count(DISTINCT session) FROM passages").fetchone()[0])

    def sessions(self, since: datetime | None = None) -> list[SessionOutline]:
        """Return all sessions with messages since then, the most recently ended first."""
        earliest = -1 if since is None else microseconds(since)
        with self._replacing_damage():
            rows = self._database.execute(
                f"{_OUTLINES_SQL} GROUP BY p.session HAVING coalesce(max(p.at), 0) > ?"
                " ORDER BY coalesce(max(p.at), 0) DESC, s.id",
                (earliest - 1,),
            )
            return [self._outline(row) for row in rows.fetchall()]

    def outline(self, id: str) -> SessionOutline | None:
        """Return a session without its messages; None if it is unknown."""
        with self._replacing_damage():
            row = self._database.execute(f"{_OUTLINES_SQL} WHERE s.id = ? GROUP BY p.session", (id,)).fetchone()
            return self._outline(row) if row else None

    def find_by_subject(self, numbers: Sequence[int], repo: str, branch: str = "") -> list[SessionOutline]:
        """Return the sessions that worked on these issues or pull requests, or on this branch, each with the reasons;
        the most recently ended first. ``repo`` is OWNER/NAME, "" if unknown."""
        with self._replacing_damage():
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

    def paths(self, id: str) -> list[str]:
        """Return the files that hold messages of a session."""
        sql = (
            "SELECT DISTINCT f.path FROM sessions s JOIN passages p ON p.session = s.number"
            " JOIN files f ON f.number = p.file WHERE s.id = ?"
        )
        with self._replacing_damage():
            return [path for (path,) in self._database.execute(sql, (id,))]

    def own_files(self, files: SessionFiles, sources: SessionSources) -> tuple[SessionFile, ...]:
        """Return those of the files in the usual folders that are transcripts of the checkout."""
        return self._retry_empty(lambda: own_sessions(self._database, files, sources))

    def session(self, id: str, number: int | None = None) -> Thread | None:
        """Return a session as a thread; None if it is unknown. ``number``: the issue that it worked on, if not the one
        in a mapping file."""
        from bot.sources.session import Session, Utterance, thread_of

        with self._replacing_damage():
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
        with self._replacing_damage():
            return dict(
                self._database.execute(
                    "SELECT path, broken + unfinished FROM files WHERE broken + unfinished > 0 ORDER BY path"
                )
            )

    def _read_new(self, files: SessionFiles, tick: Tick) -> tuple[str, ...]:
        if not is_behind(self._database, files) and not is_unmapped(self._database, files):
            return files.notes
        sync = SessionSync(self._database, files, tick)
        sync.run()
        failed = [f"{path} cannot be read: {reason}" for path, reason in sorted(sync.failed.items())]
        return (*files.notes, *failed)

    def _retry_empty(self, work: Callable[[], Result]) -> Result:
        """Run ``work``; if the file is damaged, run it again with an empty file."""
        try:
            return work()
        except sqlite3.Error as error:
            if not is_damage(error):
                raise_unusable(self._path, error)
        self._start_over()
        with self._replacing_damage():
            return work()

    def _start_over(self) -> None:
        self._database.close()
        remove(self._path)
        self._database = open_database(self._path, SESSIONS_SCHEMA)

    @contextmanager
    def _replacing_damage(self) -> Iterator[None]:
        """Replace a damaged file. Wraps every query."""
        try:
            yield
        except sqlite3.Error as error:
            if not is_damage(error):
                raise_unusable(self._path, error)
            self._start_over()
            raise WorldError(f"{self._path} was damaged and has been emptied", "try again") from error

    def _passages(self, ranking: PassageRanking, limit: int, since: datetime | None) -> Iterator[SessionPassage]:
        earliest = None if since is None else microseconds(since)
        seen: set[tuple[int, str, str]] = set()
        ranked = iter(ranking.found)
        while group := list(islice(ranked, limit + _READ_AHEAD)):
            rows = [(score, number, *row) for number, score in group if (row := self._fetch_row(number, earliest))]
            rows.sort(key=lambda row: (-row[0], -(row[3] or 0)))
            for score, number, kind, at, session, name, path, text, files in rows:
                if (session, kind, text) not in seen:
                    seen.add((session, kind, text))
                    text_shown = excerpt(_strip_html_comments(text), files, ranking.rarity)
                    yield SessionPassage(name, kind, text_shown, _to_datetime(at), score, path, ranking.parts[number])

    def _fetch_row(self, number: int, earliest: int | None) -> tuple[str, int | None, int, str, str, str, str] | None:
        cursor = self._database.execute(
            "SELECT p.type, p.at, p.session, s.id, f.path, t.text, t.files FROM passages p"
            " JOIN sessions s ON s.number = p.session JOIN files f ON f.number = p.file"
            " JOIN texts t ON t.number = p.number WHERE p.number = ? AND (? IS NULL OR p.at >= ?)",
            (number, earliest, earliest),
        )
        return cast("tuple[str, int | None, int, str, str, str, str] | None", cursor.fetchone())

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
    return None if number is None else EPOCH + timedelta(microseconds=number)


def _strip_html_comments(text: str) -> str:
    """Remove HTML comments, which are invisible, before the text is cut."""
    return _HTML_COMMENT.sub("", text) if "<!--" in text else text


# -- ranking ---------------------------------------------------------------------------------------------------------

K1, B = 1.2, 0.5
"""Saturation, and how much length counts: messages of sessions are short or long for no particular reason."""

TYPICAL_LENGTH = 60
"""Terms in a typical message."""

_LEVEL_BOUNDS = tuple((low * high) ** 0.5 for low, high in pairwise(LEVELS[1:]))


class PassageRanking(NamedTuple):
    """Messages that pass the floor, with their scores in BM25 units, best first.

    ``rarity`` has the weight of each term, ``parts`` the share of the total weight in each message, in 0..1.
    """

    found: tuple[tuple[int, float], ...]
    rarity: Mapping[str, float]
    parts: Mapping[int, float]


def rank_passages(database: sqlite3.Connection, query_terms: Sequence[str]) -> PassageRanking:
    """Rank all messages that hold enough of these terms. On a tie, the message read earlier comes first."""
    total = int(database.execute("SELECT count(*) FROM passages").fetchone()[0])
    scores: dict[int, float] = {}
    parts: dict[int, float] = {}
    rarity: dict[str, float] = {}
    for _, term in heaviest(dict.fromkeys(query_terms, 1.0)):
        found = database.execute(_OCCURRENCES_SQL, (term,)).fetchall()
        weight = rarity[term] = idf(len(found), max(total, len(found)))
        for passage, count, length in found:
            gain = weight * _saturate(count, length) * (K1 + 1)
            scores[passage] = scores.get(passage, 0.0) + gain
            parts[passage] = parts.get(passage, 0.0) + weight
    total_weight = sum(rarity.values())
    minimum = MIN_QUERY_SHARE * total_weight * (1 - 1e-9)
    kept = {passage: min(1.0, part / total_weight) for passage, part in parts.items() if part >= minimum}
    found = sorted(((passage, scores[passage]) for passage in kept), key=lambda one: (-one[1], one[0]))
    return PassageRanking(tuple(found), rarity, kept)


_OCCURRENCES_SQL = (
    "SELECT o.doc, count(*), p.length FROM occurrences o CROSS JOIN passages p ON p.number = o.doc"
    " WHERE o.term = ? GROUP BY o.doc"
)


@lru_cache(1 << 16)
def _saturate(count: int, length: int) -> float:
    """The frequency component of BM25, rounded to the nearest level."""
    frequency = count * (1 / (1 - B + B * length / TYPICAL_LENGTH))
    return LEVELS[1 + bisect_left(_LEVEL_BOUNDS, frequency / (K1 + frequency))]


@contextmanager
def open_session_index(
    top: Path | None,
    transcripts: Sequence[str] = (),
    *,
    required: bool = False,
    progress: ProgressBar = no_progress,
    warn: Warn = no_warning,
    verbose: bool = False,
) -> Iterator[SessionIndex | None]:
    """Index these transcripts, those that the settings at ``top`` name, and those in the usual folders of coding
    agents; None if there are none.

    ``warn`` is called for each problem and, if ``verbose``, for the usual folders in use. Raises UserError if one of
    ``transcripts`` names none.
    """
    sources = session_sources(top, required=required)
    if not sources.are_known and not transcripts:
        yield None
        return
    from bot.sources.session_times import local_key  # not needed for a search of the memory

    folder = top if top and sources.are_known else Path.cwd()
    typed = {_absolute_path(transcript): transcript for transcript in transcripts}
    patterns = [*sources.patterns, *typed]
    usual = ["the usual folders"] if sources.folders else []
    name = cache_name("\n".join([str(folder), *patterns, *usual, local_key()]))  # stored times depend on the zone
    version = SESSIONS_SCHEMA.format.replace(" ", "-")  # other versions use other files
    logs = SessionIndex(cache_folder() / "logs" / f"{name}.{version}.db")
    try:
        wanted = find_sessions(typed, str(folder))
        for pattern, reason in wanted.unmatched.items():
            raise UserError(f"--logs {typed[pattern]}: {reason}")
        files = wanted.merge(_known_sessions(logs, sources, {file.path for file in wanted.sessions}))
        with progress("Reading transcripts", None) as tick:
            notes = logs.refresh(files, tick)
        shown = (*_folders_note(logs, sources, files), *_unreadable_notes(files)) if verbose else ()
        for note in (*notes, *_broken_note(logs), *shown):
            warn(note)
        yield logs if files.sessions or patterns else None
    finally:
        logs.close()


def _known_sessions(logs: SessionIndex, sources: SessionSources, wanted: Container[str]) -> SessionFiles:
    """The sessions that the settings name, and those in the usual folders that did not come with a checkout. Tells the
    index which are committed, except for the ``wanted`` ones."""
    named, usual = find_sessions(sources.patterns, str(sources.top)), _usual_sessions(logs, sources)
    committed = _committed_paths(sources.top, named.merge(usual))
    logs.committed = frozenset(path for path in committed if path not in wanted)
    return named.merge(usual.without(committed))


def _usual_sessions(logs: SessionIndex, sources: SessionSources) -> SessionFiles:
    """The sessions of the checkout in the usual folders."""
    inside = find_sessions([each.path for each in sources.folders if each.is_in_checkout], str(sources.top))
    patterns = [f"{each.path}/{glob}" for each in sources.folders if not each.is_in_checkout for glob in each.patterns]
    if not patterns:
        return inside
    files = find_sessions(patterns, str(sources.top), with_notes=False)
    return inside.merge(files._replace(sessions=logs.own_files(files, sources)))


def _committed_paths(top: Path | None, files: SessionFiles) -> set[str]:
    stored_in = {file.path: file.database or file.path for file in (*files.sessions, *files.mappings)}
    if not stored_in:
        return set()
    from bot.git.checkout import tracked_files

    tracked = tracked_files(top, dict.fromkeys(stored_in.values()))
    return {path for path, stored in stored_in.items() if stored in tracked}


def _broken_note(logs: SessionIndex) -> Iterator[str]:
    if broken := sum(logs.broken_lines().values()):
        yield "1 broken line was left out." if broken == 1 else f"{broken:,} broken lines were left out."


def _unreadable_notes(files: SessionFiles) -> Iterator[str]:
    """What is in the usual folders in a format that is not read; other checkouts may have some of it."""
    for name, count in files.unreadable.items():
        yield f"{count:,} file{'s' * (count != 1)} cannot be read: {name}."


def _folders_note(logs: SessionIndex, sources: SessionSources, files: SessionFiles) -> Iterator[str]:
    """A note on the default folders that were searched."""
    paths = [file.path for file in files.sessions]
    used = [folder for folder in sources.folders if any(path.startswith(f"{folder.path}/") for path in paths)]
    if not used:
        return
    count, prefixes = logs.size, tuple(f"{folder.path}/" for folder in used)
    others = "" if all(path.startswith(prefixes) for path in paths) else ", some of them"
    folders = " and ".join(dict.fromkeys(folder.shown for folder in used))
    yield (
        f"Searched {count:,} session{'s' * (count != 1)}{others} in {folders} "
        "(sources.default_sessions: false leaves these out)."
    )


def about_issue(memory: LocalMemory, number: int) -> list[SessionOutline]:
    """Return the sessions that worked on an issue or pull request, or on the pull request that fixed it. Those with
    committed transcripts are left out."""
    fixes = [link.target for link in memory.local_cache.links([number]) if link.kind == "fix" and link.source == number]
    return _sessions_about(memory, [number, *(each for each in fixes if isinstance(each, int))])


def about_work(memory: LocalMemory, worktree: Worktree) -> list[SessionOutline]:
    """Return the sessions on the branch of a checkout, or on the issues that its name and its commits name."""
    from bot.questions.worktree_query import worktree_query

    signals = worktree_query(worktree)
    return _sessions_about(memory, [*signals.tickets, *signals.mentioned], worktree.branch)


def _sessions_about(memory: LocalMemory, numbers: Sequence[int], branch: str = "") -> list[SessionOutline]:
    if not numbers and not branch:
        return []
    with open_session_index(memory.session_top, progress=memory.progress, warn=memory.warn) as logs:
        outlines = logs.find_by_subject(numbers, memory.repo, branch)[:MAX_SHOWN] if logs else []
        return [outline for outline in outlines if logs and logs.committed.isdisjoint(logs.paths(outline.id))]


def threads_of(memory: LocalMemory, outlines: Sequence[SessionOutline], number: int) -> list[Thread]:
    """Return these sessions, which worked on an issue, with their messages."""
    with open_session_index(memory.session_top, progress=memory.progress) as logs:
        threads = (logs.session(outline.id, number) for outline in outlines) if logs else ()
        return [thread for thread in threads if thread]


def session_named(memory: LocalMemory, key: str) -> Thread | None:
    with open_session_index(memory.top, progress=memory.progress, warn=memory.warn) as logs:
        return logs.session(key) if logs else None


def _absolute_path(path: str) -> str:
    try:
        return str(Path.cwd() / Path(path).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {path}: no such account") from error


def find_sessions_about(request: WordSearch, memory: LocalMemory) -> list[SessionHit]:
    """Find the sessions that best match the words, each with its best message."""
    index = open_session_index(
        memory.session_top, request.logs, progress=memory.progress, warn=memory.warn, verbose=True
    )
    with index as logs:
        if logs is None:
            return []
        best = logs.search_each(request.parsed_query.words, min(request.limit, MAX_AFTER_THREADS), request.since)
        return [SessionHit(outline, passage) for passage in best if (outline := logs.outline(passage.session))]


def search_sessions(
    request: WordSearch, folder: Path, option: str, progress: ProgressBar = no_progress, warn: Warn = no_warning
) -> SessionHits:
    """Search the transcripts named by the query or by the settings of the checkout around ``folder``, and those in
    the usual folders of coding agents.

    Raises UserError if there are none, and for filters that sessions do not have. ``option`` is the prefix of
    parameters in messages: ``--``, or nothing.
    """
    from bot.git.checkout import find_top

    _refuse_filters(request, option)
    top = find_top(folder)
    with open_session_index(top, request.logs, required=True, progress=progress, warn=warn, verbose=True) as logs:
        if logs is None:
            give = "give --logs PATH, or " if option else ""
            raise UserError(f"no sessions found for this checkout: {give}set sources.sessions in the settings")
        return SessionHits(tuple(logs.search(request.parsed_query.words, request.limit, request.since)), logs.size)


def _refuse_filters(request: WordSearch, option: str) -> None:
    if unsupported := [f"{option}{name}" for name in request.filters_without_sessions]:
        raise UserError(
            f"{', '.join(unsupported)}: not supported for sessions; "
            f"{option}kind session accepts {option}since and {option}limit"
        )
