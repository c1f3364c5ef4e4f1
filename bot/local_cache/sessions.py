"""Opens and searches transcripts of agents, as named by the settings of the checkout or by the user.

SQLite FTS5 keeps the index, in a file of the cache that never leaves the machine. It holds the terms of our own
analyser, and the ranking is ours too: BM25 (S. Robertson and H. Zaragoza, "The Probabilistic Relevance Framework: BM25
and Beyond", 2009) with rounded frequencies as in `bot.index.impacts`, and a floor below which nothing is shown.
"""

from __future__ import annotations

import re
import sqlite3
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from bot.domain.card import LEAST_PART, SessionPassage
from bot.errors import UserError, WorldError
from bot.index.impacts import LEVELS, heaviest, idf
from bot.local_cache.database import SESSIONS, is_damage, open_database, remove, unusable
from bot.local_cache.local_memory import (
    ProgressBar,
    Warn,
    cache_folder,
    cache_name,
    early_settings_at,
    no_progress,
    no_warning,
)
from bot.local_cache.session_sync import EPOCH, SessionSync, Tick, is_behind, is_unmapped, microseconds
from bot.questions.requests import WordSearch
from bot.questions.search import SessionHits
from bot.reading.analyzer import terms
from bot.sources.session_files import SessionFiles, find_sessions

if TYPE_CHECKING:
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.sources.session import Utterance


MAX_WORDS = 2_000
"""Characters of a query that are used."""

MAX_MESSAGES = 20_000
"""Messages of one session that are shown, the first ones."""

_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TITLE = 200
_AHEAD = 50
"""Extra hits that are read, since a message may occur twice."""


class Outline(NamedTuple):
    """A session without its messages. ``title`` is the first line of the first prompt, ``turn_count`` the number of
    messages, ``path`` a file that contains it; times are None if no line has one."""

    id: str
    title: str
    begun: datetime | None
    ended: datetime | None
    turn_count: int
    path: str
    issue: int | None = None
    files: tuple[str, ...] = ()


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
        try:
            return self._refreshed(files, tick)
        except sqlite3.Error as error:
            if not is_damage(error):
                unusable(self._path, error)
        self._start_over()
        with self._asked():
            return self._refreshed(files, tick)

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[SessionPassage]:
        """Return the messages that match these words best, newest first among equals.

        A message must hold at least half of the words, weighted by rarity. ``since`` leaves out older messages and
        those without a time.
        """
        with self._asked():
            ranking = rank_passages(self._database, terms(words[:MAX_WORDS]))
            return list(islice(self._passages(ranking, limit, since), max(0, limit)))

    @property
    def size(self) -> int:
        """Number of sessions with messages."""
        with self._asked():
            return int(self._database.execute("SELECT count(DISTINCT session) FROM passages").fetchone()[0])

    def sessions(self, since: datetime | None = None) -> list[Outline]:
        """Return all sessions with messages since then, the most recently ended first."""
        least = -1 if since is None else microseconds(since)
        with self._asked():
            rows = self._database.execute(
                "SELECT s.number, s.id, min(p.at), max(p.at), count(*), min(p.file) FROM passages p"
                " JOIN sessions s ON s.number = p.session GROUP BY p.session HAVING coalesce(max(p.at), 0) > ?"
                " ORDER BY coalesce(max(p.at), 0) DESC, s.id",
                (least - 1,),
            )
            return [self._outline(row) for row in rows.fetchall()]

    def session(self, id: str) -> Thread | None:
        """Return a session as a thread, None if it is unknown."""
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
        issue = next((row[5] for row in rows if row[5]), None)
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
            rows = [(score, *row) for number, score in group if (row := self._row(number, least))]
            rows.sort(key=lambda row: (-row[0], -(row[2] or 0)))
            for score, kind, at, session, name, path, text, files in rows:
                if (session, kind, text) not in told:
                    told.add((session, kind, text))
                    yield SessionPassage(
                        name, kind, excerpt(_seen(text), files, ranking.rarity), _time(at), score, path
                    )

    def _row(self, number: int, least: int | None) -> tuple[str, int | None, int, str, str, str, str] | None:
        found = self._database.execute(
            "SELECT p.type, p.at, p.session, s.id, f.path, t.text, t.files FROM passages p"
            " JOIN sessions s ON s.number = p.session JOIN files f ON f.number = p.file"
            " JOIN texts t ON t.number = p.number WHERE p.number = ? AND (? IS NULL OR p.at >= ?)",
            (number, least, least),
        )
        return cast("tuple[str, int | None, int, str, str, str, str] | None", found.fetchone())

    def _outline(self, row: tuple[int, str, int | None, int | None, int, int]) -> Outline:
        number, name, begun, ended, count, file = row
        path, issue = self._database.execute("SELECT path, issue FROM files WHERE number = ?", (file,)).fetchone()
        asked = self._database.execute(
            "SELECT substr(t.text, 1, ?) FROM passages p JOIN texts t ON t.number = p.number"
            " WHERE p.session = ? AND p.type = 'user' AND t.text != '' ORDER BY p.at IS NULL, p.at, p.number LIMIT 1",
            (_TITLE, number),
        ).fetchone()
        files = self._database.execute(
            "SELECT DISTINCT t.files FROM passages p JOIN texts t ON t.number = p.number"
            " WHERE p.session = ? AND t.files != ''",
            (number,),
        )
        touched = dict.fromkeys(path for (names,) in files for path in names.split("\n"))
        title = asked[0].partition("\n")[0].strip() if asked else ""
        return Outline(name, title, _time(begun), _time(ended), count, path, issue, tuple(touched))


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
    """Messages that pass the floor, with their scores in BM25 units, best first; ``rarity`` is the weight of terms."""

    found: tuple[tuple[int, float], ...]
    rarity: Mapping[str, float]


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
    least = LEAST_PART * sum(rarity.values()) * (1 - 1e-9)
    kept = [(passage, scores[passage]) for passage, part in parts.items() if part >= least]
    return PassageRanking(tuple(sorted(kept, key=lambda one: (-one[1], one[0]))), rarity)


_OCCURRENCES = (
    "SELECT o.doc, count(*), p.length FROM occurrences o CROSS JOIN passages p ON p.number = o.doc"
    " WHERE o.term = ? GROUP BY o.doc"
)


@lru_cache(1 << 16)
def _saturated(count: int, length: int) -> float:
    """BM25's part of the frequency, rounded to the nearest level."""
    frequency = count * (1 / (1 - B + B * length / USUAL))
    return LEVELS[1 + bisect_left(_BOUNDS, frequency / (K1 + frequency))]


# -- excerpts --------------------------------------------------------------------------------------------------------

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


@contextmanager
def open_session_index(
    top: Path | None,
    given: Sequence[str] = (),
    *,
    asked: bool = False,
    progress: ProgressBar = no_progress,
    warn: Warn = no_warning,
) -> Iterator[SessionIndex | None]:
    """Index these transcripts and those that the settings at ``top`` name; None if there are none.

    ``warn`` is called for each problem. Raises UserError if one of those ``given`` names no transcript.
    """
    named = _globs(top, asked=asked) if top else ()
    if not named and not given:
        yield None
        return
    from bot.sources.clock import local_key  # a search of the memory needs no clock

    folder = top if top and named else Path.cwd()
    asked_for = {_whole(each): each for each in given}
    patterns = [*named, *asked_for]
    name = cache_name("\n".join([str(folder), *patterns, local_key()]))  # stored times depend on the zone
    version = SESSIONS.format.replace(" ", "-")  # other versions use other files
    logs = SessionIndex(cache_folder() / "logs" / f"{name}.{version}.db")
    try:
        files = find_sessions(patterns, str(folder))
        for pattern, reason in files.unmatched.items():
            if pattern in asked_for:
                raise UserError(f"--logs {asked_for[pattern]}: {reason}")
        with progress("Reading transcripts", None) as tick:
            notes = logs.refresh(files, tick)
        for note in notes:
            warn(note)
        if broken := sum(logs.broken().values()):
            warn("1 broken line was left out." if broken == 1 else f"{broken:,} broken lines were left out.")
        yield logs
    finally:
        logs.close()


def sessions_of_issue(place: LocalMemory, number: int) -> list[Thread]:
    """Return the sessions that worked on an issue, of those that the settings of the checkout name.

    Committed transcripts are left out: anybody who may open a pull request could put words into the agent's mouth.
    """
    from bot.git.checkout import tracked_files

    with open_session_index(place.top, progress=place.progress, warn=place.warn) as logs:
        if logs is None:
            return []
        working = [one for one in logs.sessions() if one.issue == number]
        committed = tracked_files(place.top, [one.path for one in working]) if place.top else set()
        told = (logs.session(one.id) for one in working if one.path not in committed)
        return [one for one in told if one]


def session_named(place: LocalMemory, key: str) -> Thread | None:
    with open_session_index(place.top, progress=place.progress, warn=place.warn) as logs:
        return logs.session(key) if logs else None


def _whole(given: str) -> str:
    try:
        return str(Path.cwd() / Path(given).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {given}: there is no such account") from error


def _globs(top: Path, *, asked: bool) -> Sequence[str]:
    """The globs of the settings. Wrong settings give none, or raise UserError if they were ``asked`` for."""
    try:
        return early_settings_at(top).sessions
    except UserError:
        if asked:
            raise
    return ()


def search_sessions(
    asked: WordSearch, folder: Path, option: str, progress: ProgressBar = no_progress, warn: Warn = no_warning
) -> SessionHits:
    """Search the transcripts named by the query or by the settings of the checkout around ``folder``.

    Raises UserError if none are named, and for filters that sessions do not have. ``option`` is the prefix of
    parameters in messages: ``--``, or nothing.
    """
    from bot.git.checkout import top_of

    _refuse_filters(asked, option)
    with open_session_index(top_of(folder), asked.logs, asked=True, progress=progress, warn=warn) as logs:
        if logs is None:
            give = "give --logs PATH, or " if option else ""
            raise UserError(f"no transcripts are named: {give}set sources.sessions in the settings")
        return SessionHits(tuple(logs.search(asked.meant.words, asked.limit, asked.choice.since)), logs.size)


def _refuse_filters(asked: WordSearch, option: str) -> None:
    choice = asked.choice
    filters = {"state": choice.state != "all", "label": choice.labels, "author": choice.author, "expand": asked.expand}
    if wrong := [f"{option}{name}" for name, is_given in filters.items() if is_given]:
        raise UserError(
            f"{', '.join(wrong)}: sessions have none of these; "
            f"{option}since and {option}limit go with {option}kind session"
        )
