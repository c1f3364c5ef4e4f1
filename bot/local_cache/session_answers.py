"""Adds what sessions say to the answers of a memory. Quick to import: their index is loaded only if there are any."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.local_cache.session_sources import session_sources

if TYPE_CHECKING:
    from bot.domain.card import SessionHit, SessionOutline, Worktree
    from bot.local_cache.local_memory import LocalMemory
    from bot.questions.requests import WordSearch


def also_in_sessions(request: WordSearch, memory: LocalMemory) -> Sequence[SessionHit]:
    """Find what sessions say about the words of a search of all kinds; nothing if no source is known."""
    if not request.takes_sessions or not (request.logs or session_sources(memory.session_top).are_known):
        return ()
    from bot.local_cache.sessions import find_sessions_about

    return find_sessions_about(request, memory)


def sessions_about_issue(memory: LocalMemory, number: int) -> Sequence[SessionOutline]:
    """Find the sessions that worked on an issue or pull request, the most recently ended first."""
    if not session_sources(memory.session_top).are_known:
        return ()
    from bot.local_cache.sessions import about_issue

    return about_issue(memory, number)


def sessions_about_work(memory: LocalMemory, worktree: Worktree) -> Sequence[SessionOutline]:
    """Find the sessions on the branch of the checkout, or on the issues that it names."""
    if not session_sources(memory.session_top).are_known:
        return ()
    from bot.local_cache.sessions import about_work

    return about_work(memory, worktree)
