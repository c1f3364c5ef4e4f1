"""Finds where the sessions of a checkout are, and says what a question about them returns. Quick to import."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from bot.errors import UserError
from bot.local_cache.local_memory import early_settings_at
from bot.sources.sessions.formats import SessionFolder, default_folders

if TYPE_CHECKING:
    from bot.domain.card import SessionOutline
    from bot.domain.thread import Thread


class SessionSources(NamedTuple):
    """The ``patterns`` of the settings of the checkout at ``top``, and the usual ``folders`` of coding agents."""

    top: Path | None = None
    patterns: tuple[str, ...] = ()
    folders: tuple[SessionFolder, ...] = ()

    @property
    def are_known(self) -> bool:
        return bool(self.patterns or self.folders)


def session_sources(top: Path | None, *, required: bool = False) -> SessionSources:
    """Return the sources of sessions; none for wrong settings, which raise UserError if sessions are ``required``."""
    if top is None:
        return SessionSources()
    try:
        settings = early_settings_at(top)
    except UserError:
        if required:
            raise
        return SessionSources(top)
    return SessionSources(top, settings.sessions, default_folders(top) if settings.default_sessions else ())


Found = TypeVar("Found")


class SessionAnswer(NamedTuple, Generic[Found]):
    """What was found in sessions, and sentences for the user: ``notes`` on what was left out, and ``searched``, the
    usual folders of agents that were searched, and the files in them that cannot be read."""

    found: tuple[Found, ...] = ()
    notes: tuple[str, ...] = ()
    searched: tuple[str, ...] = ()


class SessionRecord(NamedTuple):
    """A session, and its messages as a thread."""

    outline: SessionOutline
    thread: Thread
