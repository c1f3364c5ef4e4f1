"""Adds what sessions say to the answers of a memory. Quick to import: their index is loaded only if there are any.

An index of sessions that cannot be read costs a note, never the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.errors import WorldError
from bot.local_cache.session_results import Found, SessionAnswer, SessionRecord
from bot.local_cache.session_sources import session_sources
from bot.questions.requests import SearchFilter, WordSearch

if TYPE_CHECKING:
    from bot.domain.card import SessionHit, SessionOutline, Worktree
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.questions.requests import SmartSearch


_NO_FILTER = SearchFilter()


def also_in_sessions(request: WordSearch, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """Find what sessions say about the words of a search of all kinds; nothing if no source is known."""

    def search() -> SessionAnswer[SessionHit]:
        from bot.local_cache.sessions import find_sessions_about

        return find_sessions_about(request, memory)

    if not request.takes_sessions or not (request.logs or _are_known(memory)):
        return SessionAnswer()
    return _or_note(search)


def also_at_work(
    request: SmartSearch, memory: LocalMemory, choice: SearchFilter = _NO_FILTER
) -> SessionAnswer[SessionHit]:
    """Find what sessions say about the words of a smart search, as for any search; without words, the sessions on the
    work in the checkout, each with its newest message. ``choice`` is the filter of the threads."""

    def search() -> SessionAnswer[SessionHit]:
        from bot.local_cache.sessions import find_at_work

        return find_at_work(request, memory)

    by_words = WordSearch(request.words, choice, request.limit, query=request.query)
    if request.words.strip() or not by_words.takes_sessions:
        return also_in_sessions(by_words, memory)
    return _or_note(search) if _are_known(memory) else SessionAnswer()


def sessions_about_issue(memory: LocalMemory, number: int) -> SessionAnswer[SessionOutline]:
    """Find the sessions that worked on an issue or pull request, the most recently ended first."""

    def search() -> SessionAnswer[SessionOutline]:
        from bot.local_cache.sessions import about_issue

        return about_issue(memory, number)

    return _or_note(search) if _are_known(memory) else SessionAnswer()


def records_about_issue(memory: LocalMemory, number: int) -> SessionAnswer[SessionRecord]:
    """As `sessions_about_issue`, with their messages."""

    def search() -> SessionAnswer[SessionRecord]:
        from bot.local_cache.sessions import read_about_issue

        return read_about_issue(memory, number)

    return _or_note(search) if _are_known(memory) else SessionAnswer()


def sessions_about_work(memory: LocalMemory, worktree: Worktree) -> SessionAnswer[SessionOutline]:
    """Find the sessions on the branch of the checkout, or on the issues that it names."""

    def search() -> SessionAnswer[SessionOutline]:
        from bot.local_cache.sessions import about_work

        return about_work(memory, worktree)

    return _or_note(search) if _are_known(memory) else SessionAnswer()


def session_named(memory: LocalMemory, key: str) -> SessionAnswer[Thread]:
    """Find the session with this id in the checkout at hand, whatever its memory."""

    def search() -> SessionAnswer[Thread]:
        from bot.local_cache.sessions import read_session

        return read_session(memory, key)

    return _or_note(search)


def _are_known(memory: LocalMemory) -> bool:
    return session_sources(memory.session_top).are_known


def _or_note(search: Callable[[], SessionAnswer[Found]]) -> SessionAnswer[Found]:
    try:
        return search()
    except WorldError as error:
        return SessionAnswer(notes=(f"Agents' sessions are left out: {error}",))
