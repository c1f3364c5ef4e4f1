"""Sessions and logs of this machine, searched by words: indexed where they are read, in a file of the cache.

Nothing of it leaves the machine. What reads the files is imported only when one of them has changed.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.card import Passage
from bot.errors import WorldError
from bot.glance.logs.excerpt import excerpt
from bot.glance.logs.file import is_damage, opened, remove, unusable
from bot.glance.logs.held import is_behind, is_unmapped
from bot.glance.logs.ranking import Ranking, ranked
from bot.reading.words import terms
from bot.sources.transcripts.files import Files

if TYPE_CHECKING:
    from bot.model import Thread
    from bot.sources.transcripts.nouns import Utterance

MAX_WORDS = 2_000
"""Characters of what is looked for."""

MAX_MESSAGES = 20_000
"""Messages of one session that are told, the first ones."""

_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TITLE = 200
_AHEAD = 50
"""More of the best are read than are wanted, since a message may be told twice."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Tick = Callable[[int], None]


class Outline(NamedTuple):
    """A session without what was said. ``title`` is the first line of the first prompt, ``turn_count`` the number of
    messages, ``path`` a file that tells it; times are None where no line tells one."""

    id: str
    title: str
    begun: datetime | None
    ended: datetime | None
    turn_count: int
    path: str
    issue: int | None = None
    files: tuple[str, ...] = ()


class Unheard(NamedTuple):
    """Why there is no such session."""

    reason: str


class Logs:
    """The logs at ``path``, made when they are first looked at. Raises WorldError where the file cannot be used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._database = opened(path)

    def close(self) -> None:
        self._database.close()

    def refresh(self, files: Files, tick: Tick = lambda _: None) -> tuple[str, ...]:
        """Read what is new in these files, and forget all others; what was left out, in sentences.

        ``tick`` is told of every portion of lines that was read. A kill costs the portion that is being read.
        """
        try:
            return self._refreshed(files, tick)
        except sqlite3.Error as error:
            if not is_damage(error):
                unusable(self._path, error)
        self._anew()
        with self._asked():
            return self._refreshed(files, tick)

    def search(self, words: str, limit: int = 10, since: datetime | None = None) -> list[Passage]:
        """The messages that hold most of these words, best first and of equal ones the newest; none where all hold
        less than half of them by rarity. ``since`` leaves out what is older, and what tells no time."""
        with self._asked():
            ranking = ranked(self._database, terms(words[:MAX_WORDS]))
            return list(islice(self._passages(ranking, limit, since), max(0, limit)))

    @property
    def size(self) -> int:
        """Number of sessions in which something was said."""
        with self._asked():
            return int(self._database.execute("SELECT count(DISTINCT session) FROM passages").fetchone()[0])

    def sessions(self, since: datetime | None = None) -> list[Outline]:
        """All sessions in which something was said since then, the one that ended last first."""
        least = -1 if since is None else _number(since)
        with self._asked():
            rows = self._database.execute(
                "SELECT s.number, s.id, min(p.at), max(p.at), count(*), min(p.file) FROM passages p"
                " JOIN sessions s ON s.number = p.session GROUP BY p.session HAVING coalesce(max(p.at), 0) > ?"
                " ORDER BY coalesce(max(p.at), 0) DESC, s.id",
                (least - 1,),
            )
            return [self._outline(row) for row in rows.fetchall()]

    def session(self, id: str) -> Thread | Unheard:
        """What was said in a session, as a thread."""
        from bot.sources.transcripts.nouns import Session, Utterance
        from bot.sources.transcripts.threads import thread_of

        with self._asked():
            rows = self._database.execute(
                "SELECT p.type, t.text, p.at, t.files, f.path, f.issue FROM sessions s"
                " JOIN passages p ON p.session = s.number JOIN texts t ON t.number = p.number"
                " JOIN files f ON f.number = p.file WHERE s.id = ? ORDER BY p.number LIMIT ?",
                (id, MAX_MESSAGES),
            ).fetchall()
        if not rows:
            return Unheard("no session of this name is in the files that were read")
        told: dict[tuple[str, str], str] = {}
        said = []
        for kind, text, at, files, path, _ in rows:
            if not text or told.setdefault((kind, text), path) == path:  # another file tells the same once more
                said.append(Utterance(kind, text, _time(at), tuple(filter(None, files.split("\n")))))
        issue = next((row[5] for row in rows if row[5]), None)
        return thread_of(Session(id, rows[0][4], _in_time(said), issue))

    def broken(self) -> dict[str, int]:
        """How many lines of each file were skipped because they could not be read; files without such are not told."""
        with self._asked():
            return dict(
                self._database.execute(
                    "SELECT path, broken + unfinished FROM files WHERE broken + unfinished > 0 ORDER BY path"
                )
            )

    def _refreshed(self, files: Files, tick: Tick) -> tuple[str, ...]:
        if not is_behind(self._database, files) and not is_unmapped(self._database, files):
            return files.notes
        from bot.glance.logs.feed import Feed

        feed = Feed(self._database, files, tick)
        feed.run()
        failed = [f"{path} cannot be read: {reason}" for path, reason in sorted(feed.failed.items())]
        return (*files.notes, *failed)

    def _anew(self) -> None:
        self._database.close()
        remove(self._path)
        self._database = opened(self._path)

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Around everything that asks the database: a damaged one is gone afterwards."""
        try:
            yield
        except sqlite3.Error as error:
            if not is_damage(error):
                unusable(self._path, error)
            self._anew()
            raise WorldError(f"{self._path} was damaged and is made anew", "try once more") from error

    def _passages(self, ranking: Ranking, limit: int, since: datetime | None) -> Iterator[Passage]:
        least = None if since is None else _number(since)
        told: set[tuple[int, str, str]] = set()
        places = iter(ranking.found)
        while group := list(islice(places, limit + _AHEAD)):
            rows = [(score, *row) for number, score in group if (row := self._row(number, least))]
            rows.sort(key=lambda row: (-row[0], -(row[2] or 0)))
            for score, kind, at, session, name, path, text, files in rows:
                if (session, kind, text) not in told:
                    told.add((session, kind, text))
                    yield Passage(name, kind, excerpt(_seen(text), files, ranking.rarity), _time(at), score, path)

    def _row(self, number: int, least: int | None) -> tuple[str, int | None, int, str, str, str, str] | None:
        found = self._database.execute(
            "SELECT p.type, p.at, p.session, s.id, f.path, t.text, t.files FROM passages p"
            " JOIN sessions s ON s.number = p.session JOIN files f ON f.number = p.file"
            " JOIN texts t ON t.number = p.number WHERE p.number = ? AND (? IS NULL OR p.at >= ?)",
            (number, least, least),
        )
        row: tuple[str, int | None, int, str, str, str, str] | None = found.fetchone()
        return row

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
    """In order of time, as several files tell it; what tells no time stays behind what stands before it."""
    now = _EPOCH
    times: list[tuple[datetime, int, Utterance]] = []
    for each in said:
        now = each.at or now
        times.append((now, len(times), each))
    return tuple(each for *_, each in sorted(times, key=lambda one: one[:2]))


def _number(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def _time(number: int | None) -> datetime | None:
    return None if number is None else _EPOCH + number * _MICROSECOND


def _seen(text: str) -> str:
    """The text without comments of HTML, which nobody sees, before any of it is cut out."""
    return _HIDDEN.sub("", text) if "<!--" in text else text
