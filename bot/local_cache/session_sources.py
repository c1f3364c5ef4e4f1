"""Finds where the sessions of a checkout are."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from bot.errors import UserError
from bot.local_cache.local_memory import early_settings_at
from bot.sources.sessions.formats import SessionFolder, default_folders


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
