"""Opens and searches transcripts of agents, as named by the settings of the checkout or by the user.

SQLite FTS5 keeps the index, in a file of the cache that never leaves the machine. It holds the terms of our own
analyser, and the ranking is ours too: BM25 (S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009) with rounded frequencies as in `bot.index.impacts`, and a floor below which nothing is shown.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar, cast

from bot.domain.card import LEAST_PART, SessionHit, SessionOutline, SessionPassage
from bot.errors import UserError, WorldError
from bot.index.impacts import LEVELS, heaviest, idf
from bot.local_cache.database import SESSIONS, is_damage, open_database, remove, unusable
from bot.local_cache.local_memory import ProgressBar, Warn, cache_folder, cache_name, no_progress, no_warning
from bot.local_cache.session_excerpts import excerpt
from bot.local_cache.session_owners import own_sessions
from bot.local_cache.session_sources import SessionSources, session_sources
from bot.local_cache.session_subjects import FIRST_PROMPT, sessions_about
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


MAX_WORDS = 2_000
"""Characters of a query that are used."""

MAX_MESSAGES = 20_000
"""Messages of one session that are shown, the first ones."""

Result = TypeVar("Result")

_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
MAX_SHOWN = 20
"""Sessions that are listed for an issue or a branch."""

MAX_AFTER_THREADS = 5
"""Sessions that a search of all kinds shows after the threads."""

_READ_FOR_SESSIONS = 50
_TITLE = 200
_AHEAD = 50
"""Extra hits that are read, since a message may occur twice."""


_OUTLINES = (
    "SELECT s.number, s.id, min(p.at), max(p.at), count(*), min(p.file) FROM passages p"
    " JOIN sessions s ON s.number = p.session"
)


class SessionIndex:
    """The index of sessions in the file at ``path``. Raises WorldError if the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = open_database(path, SESSIONS)

    def close(self) -> None:
        self._database.close()

    def refresh(self, files: SessionFiles, tick: Tick = lambda _: None) -> tuple[str, ...]:
        """Read what is new in these files, and forget all others. Returns sentences about what was left out.

        ``tick`` receives the number of lines of each portion. A kill loses only the portion that is being read.
        """
        return self._made_again(lambda: self._refreshed(files, tick))

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[SessionPassage]:
        """Return the messages that match these words best, newest first among equals.

        A message must hold at least half of the words, weighted by rarity. ``since`` leaves out older messages and
        those without a time.
        """
        with self._asked():
            ranking = rank_passages(self._database, terms(words[:MAX_WORDS]))
            return list(islice(self._passages(ranking, limit, since), max(0, limit)))

    def search_each(self, words: str, limit: int, since: datetime | None = None) -> list[SessionPassage]:
        """Return the best message of each of the sessions that match best, of those with one of the best messages."""
        found: dict[str, SessionPassage] = {}
        with self._asked():
            ranking = rank_passages(self._database, terms(words[:MAX_WORDS]))
            for one in islice(self._passages(ranking, limit, since), _READ_FOR_SESSIONS):
                found.setdefault(one.session, one)
                if len(found) >= limit:
                    break
        return list(found.values())

    @property
    def size(self) -> int:
        """Number of sessions with messages."""
        with self._asked():
            return int(self._database.execute("SELECT count(DISTINCT session) FROM passages").fetchone()[0])

    def sessions(self, since: datetime | None = None) -> list[SessionOutline]:
        """Return all sessions with messages since then, the most recently ended first."""
        least = -1 if since is None else microseconds(since)
        with self._asked():
            rows = self._database.execute(
                f"{_OUTLINES} GROUP BY p.session HAVING coalesce(max(p.at), 0) > ?"
                " ORDER BY coalesce(max(p.at), 0) DESC, s.id",
                (least - 1,),
            )
            return [self._outline(row) for row in rows.fetchall()]

    def outline(self, id: str) -> SessionOutline | None:
        """Return a session without its messages, None if it is unknown."""
        with self._asked():
            row = self._database.execute(f"{_OUTLINES} WHERE s.id = ? GROUP BY p.session", (id,)).fetchone()
            return self._outline(row) if row else None

    def about(self, numbers: Sequence[int], repo: str, branch: str = "") -> list[SessionOutline]:
        """Return the sessions that worked on these issues or pull requests, or on this branch, each with the reasons;
        the most recently ended first. ``repo`` is OWNER/NAME, "" if unknown."""
        with self._asked():
            reasons: dict[int, dict[str, None]] = {}
            paths: dict[int, str] = {}
            for subject in sessions_about(self._database, numbers, repo, branch):
                reasons.setdefault(subject.session, {})[subject.why] = None
                paths.setdefault(subject.session, subject.path)
            found = []
            for session, why in reasons.items():
                row = self._database.execute(f"{_OUTLINES} WHERE s.number = ?", (session,)).fetchone()
                found.append(self._outline(row)._replace(path=paths[session], why=tuple(why)))
        return sorted(found, key=lambda one: (one.ended or EPOCH, one.id), reverse=True)

    def paths(self, id: str) -> list[str]:
        """Return the files that hold messages of a session."""
        asked = (
            "SELECT DISTINCT f.path FROM sessions s JOIN passages p ON p.session = s.number"
            " JOIN files f ON f.number = p.file WHERE s.id = ?"
        )
        with self._asked():
            return [path for (path,) in self._database.execute(asked, (id,))]

    def own(self, files: SessionFiles, sources: SessionSources) -> tuple[SessionFile, ...]:
        """Return those of the files in the usual folders that are transcripts of the checkout."""
        return self._made_again(lambda: own_sessions(self._database, files, sources))

    def session(self, id: str, number: int | None = None) -> Thread | None:
        """Return a session as a thread, None if it is unknown. ``number``: the issue that it worked on, if not the one
        of a mapping file."""
        from bot.sources.session import Session, Utterance, thread_of

        with self._asked():
            rows = self._database.execute(
                "SELECT p.type, t.text, p.at, t.files, f.path, f.issue FROM sessions s"
                " JOIN passages p ON p.session = s.number JOIN texts t ON t.number = p.number"
                " JOIN files f ON f.number = p.file WHERE s.id = ? ORDER BY p.number LIMIT ?",
                (id, MAX_MESSAGES),
            ).fetchall()
        if not rows:
            return None
        told: dict[tuple[str, str], str] = {}
        said = []
        for kind, text, at, files, path, _ in rows:
            if not text or told.setdefault((kind, text), path) == path:  # repeated by another file
                said.append(Utterance(kind, text, _time(at), tuple(filter(None, files.split("\n")))))
        issue = number or next((row[5] for row in rows if row[5]), None)
        return thread_of(Session(id, rows[0][4], _in_time(said), issue))

    def broken(self) -> dict[str, int]:
        """Return the number of unreadable lines of each file that has any."""
        with self._asked():
            return dict(
                self._database.execute(
                    "SELECT path, broken + unfinished FROM files WHERE broken + unfinished > 0 ORDER BY path"
                )
            )

    def _refreshed(self, files: SessionFiles, tick: Tick) -> tuple[str, ...]:
        if not is_behind(self._database, files) and not is_unmapped(self._database, files):
            return files.notes
        sync = SessionSync(self._database, files, tick)
        sync.run()
        failed = [f"{path} cannot be read: {reason}" for path, reason in sorted(sync.failed.items())]
        return (*files.notes, *failed)

    def _made_again(self, work: Callable[[], Result]) -> Result:
        """Do this work, once more with an empty file if the file is damaged."""
        try:
            return work()
        except sqlite3.Error as error:
            if not is_damage(error):
                unusable(self._path, error)
        self._start_over()
        with self._asked():
            return work()

    def _start_over(self) -> None:
        self._database.close()
        remove(self._path)
        self._database = open_database(self._path, SESSIONS)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Wrap every query: a damaged file is replaced."""
        try:
            yield
        except sqlite3.Error as error:
            if not is_damage(error):
                unusable(self._path, error)
            self._start_over()
            raise WorldError(f"{self._path} was damaged and has been emptied", "try again") from error

    def _passages(self, ranking: PassageRanking, limit: int, since: datetime | None) -> Iterator[SessionPassage]:
        least = None if since is None else microseconds(since)
        told: set[tuple[int, str, str]] = set()
        places = iter(ranking.found)
        while group := list(islice(places, limit + _AHEAD)):
            rows = [(score, number, *row) for number, score in group if (row := self._row(number, least))]
            rows.sort(key=lambda row: (-row[0], -(row[3] or 0)))
            for score, number, kind, at, session, name, path, text, files in rows:
                if (session, kind, text) not in told:
                    told.add((session, kind, text))
                    shown = excerpt(_seen(text), files, ranking.rarity)
                    yield SessionPassage(name, kind, shown, _time(at), score, path, ranking.parts[number])

    def _row(self, number: int, least: int | None) -> tuple[str, int | None, int, str, str, str, str] | None:
        found = self._database.execute(
            "SELECT p.type, p.at, p.session, s.id, f.path, t.text, t.files FROM passages p"
            " JOIN sessions s ON s.number = p.session JOIN files f ON f.number = p.file"
            " JOIN texts t ON t.number = p.number WHERE p.number = ? AND (? IS NULL OR p.at >= ?)",
            (number, least, least),
        )
        return cast("tuple[str, int | None, int, str, str, str, str] | None", found.fetchone())

    def _outline(self, row: tuple[int, str, int | None, int | None, int, int]) -> SessionOutline:
        number, name, begun, ended, count, file = row
        path, issue = self._database.execute("SELECT path, issue FROM files WHERE number = ?", (file,)).fetchone()
        asked = self._database.execute(FIRST_PROMPT, (_TITLE, number)).fetchone()
        files = self._database.execute(
            "SELECT DISTINCT t.files FROM passages p JOIN texts t ON t.number = p.number"
            " WHERE p.session = ? AND t.files != ''",
            (number,),
        )
        touched = dict.fromkeys(path for (names,) in files for path in names.split("\n"))
        title = asked[0].partition("\n")[0].strip() if asked else ""
        return SessionOutline(name, title, _time(begun), _time(ended), count, path, issue, tuple(touched))


def _in_time(said: Iterable[Utterance]) -> tuple[Utterance, ...]:
    """Order messages of several files by time; one without a time stays after its predecessor."""
    now = EPOCH
    times: list[tuple[datetime, int, Utterance]] = []
    for each in said:
        now = each.at or now
        times.append((now, len(times), each))
    return tuple(each for *_, each in sorted(times, key=lambda one: one[:2]))


def _time(number: int | None) -> datetime | None:
    return None if number is None else EPOCH + timedelta(microseconds=number)


def _seen(text: str) -> str:
    """The text without HTML comments, which are invisible, before it is cut."""
    return _HIDDEN.sub("", text) if "<!--" in text else text


# -- ranking ---------------------------------------------------------------------------------------------------------

K1, B = 1.2, 0.5
"""Saturation, and how much length counts: messages of sessions are short or long for no particular reason."""

USUAL = 60
"""Terms in a usual message."""

_BOUNDS = tuple((low * high) ** 0.5 for low, high in pairwise(LEVELS[1:]))


class PassageRanking(NamedTuple):
    """Messages that pass the floor, with their scores in BM25 units, best first.

    ``rarity`` is the weight of each term, ``parts`` the share of that weight which a message holds, in 0..1.
    """

    found: tuple[tuple[int, float], ...]
    rarity: Mapping[str, float]
    parts: Mapping[int, float]


def rank_passages(database: sqlite3.Connection, wanted: Sequence[str]) -> PassageRanking:
    """Rank all messages that hold enough of these terms. Of two equal messages the one read earlier comes first."""
    total = int(database.execute("SELECT count(*) FROM passages").fetchone()[0])
    scores: dict[int, float] = {}
    parts: dict[int, float] = {}
    rarity: dict[str, float] = {}
    for _, term in heaviest(dict.fromkeys(wanted, 1.0)):
        found = database.execute(_OCCURRENCES, (term,)).fetchall()
        weight = rarity[term] = idf(len(found), max(total, len(found)))
        for passage, count, length in found:
            gain = weight * _saturated(count, length) * (K1 + 1)
            scores[passage] = scores.get(passage, 0.0) + gain
            parts[passage] = parts.get(passage, 0.0) + weight
    whole = sum(rarity.values())
    least = LEAST_PART * whole * (1 - 1e-9)
    kept = {passage: min(1.0, part / whole) for passage, part in parts.items() if part >= least}
    found = sorted(((passage, scores[passage]) for passage in kept), key=lambda one: (-one[1], one[0]))
    return PassageRanking(tuple(found), rarity, kept)


_OCCURRENCES = (
    "SELECT o.doc, count(*), p.length FROM occurrences o CROSS JOIN passages p ON p.number = o.doc"
    " WHERE o.term = ? GROUP BY o.doc"
)


@lru_cache(1 << 16)
def _saturated(count: int, length: int) -> float:
    """BM25's part of the frequency, rounded to the nearest level."""
    frequency = count * (1 / (1 - B + B * length / USUAL))
    return LEVELS[1 + bisect_left(_BOUNDS, frequency / (K1 + frequency))]


@contextmanager
def open_session_index(
    top: Path | None,
    given: Sequence[str] = (),
    *,
    asked: bool = False,
    progress: ProgressBar = no_progress,
    warn: Warn = no_warning,
    tell: bool = False,
) -> Iterator[SessionIndex | None]:
    """Index these transcripts, those that the settings at ``top`` name, and those in the usual folders of coding
    agents; None if there are none.

    ``warn`` is called for each problem and, if ``tell``, with the usual folders that were used. Raises UserError if one
    of those ``given`` names no transcript.
    """
    sources = session_sources(top, asked=asked)
    if not sources.are_known and not given:
        yield None
        return
    from bot.sources.clock import local_key  # a search of the memory needs no clock

    folder = top if top and sources.are_known else Path.cwd()
    asked_for = {_whole(each): each for each in given}
    patterns = [*sources.patterns, *(each.path for each in sources.folders if each.is_in_checkout), *asked_for]
    usual = ["the usual folders"] if sources.folders else []
    name = cache_name("\n".join([str(folder), *patterns, *usual, local_key()]))  # stored times depend on the zone
    version = SESSIONS.format.replace(" ", "-")  # other versions use other files
    logs = SessionIndex(cache_folder() / "logs" / f"{name}.{version}.db")
    try:
        files = find_sessions(patterns, str(folder))
        for pattern, reason in files.unmatched.items():
            if pattern in asked_for:
                raise UserError(f"--logs {asked_for[pattern]}: {reason}")
        own = _own(logs, sources)
        with progress("Reading transcripts", None) as tick:
            notes = logs.refresh(files := files.together(own), tick)
        for note in (*notes, *_broken(logs), *(_used(logs, sources, files) if tell else ())):
            warn(note)
        yield logs if own.sessions or patterns else None
    finally:
        logs.close()


def _own(logs: SessionIndex, sources: SessionSources) -> SessionFiles:
    """The sessions of the checkout in the usual folders."""
    patterns = [f"{each.path}/{glob}" for each in sources.folders if not each.is_in_checkout for glob in each.patterns]
    if not patterns:
        return SessionFiles(())
    found = find_sessions(patterns, str(sources.top), with_notes=False)
    return found._replace(sessions=logs.own(found, sources))


def _broken(logs: SessionIndex) -> Iterator[str]:
    if broken := sum(logs.broken().values()):
        yield "1 broken line was left out." if broken == 1 else f"{broken:,} broken lines were left out."


def _used(logs: SessionIndex, sources: SessionSources, files: SessionFiles) -> Iterator[str]:
    """Which of the folders were searched that no setting names."""
    paths = [file.path for file in files.sessions]
    used = [each for each in sources.folders if any(path.startswith(f"{each.path}/") for path in paths)]
    if not used:
        return
    count, prefixes = logs.size, tuple(f"{each.path}/" for each in used)
    others = "" if all(path.startswith(prefixes) for path in paths) else ", some of them"
    folders = " and ".join(dict.fromkeys(each.shown for each in used))
    yield (
        f"Searched {count:,} session{'s' * (count != 1)}{others} in {folders} "
        "(sources.default_sessions: false leaves these out)."
    )


def about_issue(place: LocalMemory, number: int) -> list[SessionOutline]:
    """Return the sessions that worked on an issue or pull request, or on the pull request that fixed it.

    Committed transcripts are left out: anybody who may open a pull request could put words into the agent's mouth.
    """
    fixes = [link.target for link in place.local_cache.links([number]) if link.kind == "fix" and link.source == number]
    return _sessions_about(place, [number, *(each for each in fixes if isinstance(each, int))])


def about_work(place: LocalMemory, worktree: Worktree) -> list[SessionOutline]:
    """Return the sessions on the branch of a checkout, or on the issues that its name and its commits name."""
    from bot.questions.worktree_query import worktree_query

    signs = worktree_query(worktree)
    return _sessions_about(place, [*signs.tickets, *signs.mentioned], worktree.branch)


def _sessions_about(place: LocalMemory, numbers: Sequence[int], branch: str = "") -> list[SessionOutline]:
    if not numbers and not branch:
        return []
    with open_session_index(place.session_top, progress=place.progress, warn=place.warn) as logs:
        found = logs.about(numbers, place.repo, branch)[:MAX_SHOWN] if logs else []
        paths = {one.id: logs.paths(one.id) for one in found} if logs else {}
    committed = _committed(place.top, {path for each in paths.values() for path in each})
    return [one for one in found if not committed.intersection(paths[one.id])]


def _committed(top: Path | None, paths: Iterable[str]) -> set[str]:
    inside = [path for path in paths if top and Path(path).is_relative_to(top)]
    if not top or not inside:
        return set()
    from bot.git.checkout import tracked_files

    return tracked_files(top, inside)


def threads_of(place: LocalMemory, found: Sequence[SessionOutline], number: int) -> list[Thread]:
    """Return these sessions, which worked on an issue, with their messages."""
    with open_session_index(place.session_top, progress=place.progress) as logs:
        told = (logs.session(one.id, number) for one in found) if logs else ()
        return [one for one in told if one]


def session_named(place: LocalMemory, key: str) -> Thread | None:
    with open_session_index(place.top, progress=place.progress, warn=place.warn) as logs:
        return logs.session(key) if logs else None


def _whole(given: str) -> str:
    try:
        return str(Path.cwd() / Path(given).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {given}: there is no such account") from error


def find_sessions_about(asked: WordSearch, place: LocalMemory) -> list[SessionHit]:
    """Find the sessions that say most about the words, each with its best message."""
    opened = open_session_index(place.session_top, asked.logs, progress=place.progress, warn=place.warn, tell=True)
    with opened as logs:
        if logs is None:
            return []
        best = logs.search_each(asked.meant.words, min(asked.limit, MAX_AFTER_THREADS), asked.since)
        return [SessionHit(outline, one) for one in best if (outline := logs.outline(one.session))]


def search_sessions(
    asked: WordSearch, folder: Path, option: str, progress: ProgressBar = no_progress, warn: Warn = no_warning
) -> SessionHits:
    """Search the transcripts named by the query or by the settings of the checkout around ``folder``, and those in
    the usual folders of coding agents.

    Raises UserError if there are none, and for filters that sessions do not have. ``option`` is the prefix of
    parameters in messages: ``--``, or nothing.
    """
    from bot.git.checkout import top_of

    _refuse_filters(asked, option)
    top = top_of(folder)
    with open_session_index(top, asked.logs, asked=True, progress=progress, warn=warn, tell=True) as logs:
        if logs is None:
            give = "give --logs PATH, or " if option else ""
            raise UserError(f"there are no sessions of this checkout: {give}set sources.sessions in the settings")
        return SessionHits(tuple(logs.search(asked.meant.words, asked.limit, asked.since)), logs.size)


def _refuse_filters(asked: WordSearch, option: str) -> None:
    if wrong := [f"{option}{name}" for name in asked.filters_without_sessions]:
        raise UserError(
            f"{', '.join(wrong)}: sessions have none of these; "
            f"{option}since and {option}limit go with {option}kind session"
        )
