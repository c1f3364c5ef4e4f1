"""Opens and searches transcripts of agents, as named by the settings of the checkout or by the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from bot.errors import UserError
from bot.local_cache.database import SESSIONS
from bot.local_cache.full_text import SessionIndex
from bot.local_cache.local_memory import (
    ProgressBar,
    Warn,
    cache_folder,
    cache_name,
    early_settings_at,
    no_progress,
    no_warning,
)
from bot.questions.requests import WordSearch
from bot.questions.search import SessionHits
from bot.sources.session_files import find_sessions

if TYPE_CHECKING:
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory


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
    named = _named(top, asked=asked) if top else ()
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
    """A path or glob, relative to the current folder."""
    try:
        return str(Path.cwd() / Path(given).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {given}: there is no such account") from error


def _named(top: Path, *, asked: bool) -> Sequence[str]:
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
        return SessionHits(tuple(logs.search(asked.words, asked.limit, asked.choice.since)), logs.size)


def _refuse_filters(asked: WordSearch, option: str) -> None:
    choice = asked.choice
    filters = {"state": choice.state != "all", "label": choice.labels, "author": choice.author, "expand": asked.expand}
    if wrong := [f"{option}{name}" for name, is_given in filters.items() if is_given]:
        raise UserError(
            f"{', '.join(wrong)}: sessions have none of these; "
            f"{option}since and {option}limit go with {option}kind session"
        )
