"""The transcripts of agents that somebody searches: where the settings of the checkout, or they themselves, say."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bot.comment.visible import one_line
from bot.doors.cache import cache_folder, name_of
from bot.doors.located import Progress, no_progress
from bot.doors.own_settings import early_at
from bot.doors.remotes import tracked
from bot.errors import UserError
from bot.glance.logs import Logs
from bot.glance.logs.file import FORMAT
from bot.sources.transcripts.files import find
from bot.sources.zone import local_key

if TYPE_CHECKING:
    from bot.doors.located import Place
    from bot.model import Thread


@contextmanager
def opened_logs(
    top: Path | None, given: Sequence[str] = (), *, asked: bool = False, progress: Progress = no_progress
) -> Iterator[Logs | None]:
    """What is in these transcripts and in those that the settings at ``top`` name; None where nobody names any.

    What could not be read is told of on stderr. UserError where one of those ``given`` names no transcript.
    """
    named = _named(top, asked=asked) if top else ()
    if not named and not given:
        yield None
        return
    folder = top if top and named else Path.cwd()
    asked_for = {_whole(each): each for each in given}
    patterns = [*named, *asked_for]
    name = name_of("\n".join([str(folder), *patterns, local_key()]))  # what is kept of times is as of one zone
    logs = Logs(cache_folder() / "logs" / f"{name}.{FORMAT.replace(' ', '-')}.db")  # other versions have their own
    try:
        files = find(patterns, str(folder))
        for pattern, reason in files.unmatched.items():
            if pattern in asked_for:
                raise UserError(f"--logs {asked_for[pattern]}: {reason}")
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
    """The sessions that worked on an issue, of those that the settings of the checkout name.

    Not those that were committed: whoever may open a pull request could put words into the agent's mouth.
    """
    from bot.model import Thread

    with opened_logs(place.top, progress=place.progress) as logs:
        if logs is None:
            return []
        working = [one for one in logs.sessions() if one.issue == number]
        committed = tracked(place.top, [one.path for one in working]) if place.top else set()
        told = (logs.session(one.id) for one in working if one.path not in committed)
        return [one for one in told if isinstance(one, Thread)]


def session_named(place: Place, key: str) -> Thread | None:
    """The session of this id, None where there is none."""
    from bot.model import Thread

    with opened_logs(place.top, progress=place.progress) as logs:
        found = logs.session(key) if logs else None
        return found if isinstance(found, Thread) else None


def _whole(given: str) -> str:
    """A path or glob as somebody gave it, from where they stand."""
    try:
        return str(Path.cwd() / Path(given).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {given}: there is no such account") from error


def _named(top: Path, *, asked: bool) -> Sequence[str]:
    """The globs of the settings. Where the settings cannot be read, none; UserError where that was ``asked`` for."""
    try:
        return early_at(top).sessions
    except UserError:
        if asked:
            raise
    return ()
