"""The transcripts of agents that somebody searches: where the settings of the checkout, or they themselves, say."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bot.comment.visible import one_line
from bot.doors.place import cache_folder, name_of
from bot.doors.progress import progress
from bot.errors import UserError
from bot.glance.logs import Logs
from bot.sources.transcripts.files import find

if TYPE_CHECKING:
    from bot.doors.located import Place
    from bot.model import Thread

_CONFIG = Path(".github/precedent.yml")


@contextmanager
def opened_logs(top: Path | None, given: Sequence[str] = ()) -> Iterator[Logs | None]:
    """What is in these transcripts and in those that the settings at ``top`` name; None where nobody names any.

    What could not be read is told of on stderr.
    """
    named = _named(top) if top else ()
    if not named and not given:
        yield None
        return
    folder = top if top and named else Path.cwd()
    patterns = [*named, *(str(Path.cwd() / Path(each).expanduser()) for each in given)]
    logs = Logs(cache_folder() / "logs" / f"{name_of(chr(10).join([str(folder), *patterns]))}.db")
    try:
        files = find(patterns, str(folder))
        with progress("Reading transcripts", None) as tick:
            notes = logs.refresh(files, tick)
        broken = sum(logs.broken().values())
        left_out = "1 broken line was left out." if broken == 1 else f"{broken:,} broken lines were left out."
        told = [*notes, left_out] if broken else notes
        for note in told:
            print(one_line(note), file=sys.stderr)
        yield logs
    finally:
        logs.close()


def sessions_of_issue(place: Place, number: int) -> list[Thread]:
    """The sessions that worked on an issue, of those that the settings of the checkout name."""
    from bot.model import Thread

    with opened_logs(place.top) as logs:
        if logs is None:
            return []
        ids = [one.id for one in logs.sessions() if one.issue == number]
        return [found for key in ids if isinstance(found := logs.session(key), Thread)]


def session_named(place: Place, key: str) -> Thread | None:
    """The session of this id, None where there is none."""
    from bot.model import Thread

    with opened_logs(place.top) as logs:
        found = logs.session(key) if logs else None
        return found if isinstance(found, Thread) else None


def _named(top: Path) -> Sequence[str]:
    """The globs of the settings; none where the settings cannot be read, which other commands say."""
    with suppress(OSError, UserError):
        data = (top / _CONFIG).read_bytes()
        if b"sessions" in data:  # else nothing of the settings has to be loaded
            from bot.config import load_settings

            return load_settings(data, str(_CONFIG)).sources.sessions
    return ()
