"""Adds what sessions say to the answers of a memory. Quick to import: their index is loaded only if there are any.

An index of sessions that cannot be read costs a note, never the answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bot.errors import WorldError
from bot.local_cache.session_sources import Found, SessionAnswer, SessionRecord, session_sources
from bot.questions.requests import WordSearch

if TYPE_CHECKING:
    from bot.domain.card import CardId, SessionHit, SessionOutline
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.local_cache.sessions import MemorySessions
    from bot.questions.requests import WorkRequest


def also_in_sessions(request: WordSearch, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """Find what sessions say about the words of a search of all kinds; nothing if no source is known."""
    if not request.takes_sessions:
        return SessionAnswer()
    return _ask(memory, lambda sessions: sessions.about(request), is_certain=bool(request.logs))


def also_at_work(request: WorkRequest, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """Find what sessions say about the words, as for any search; without words, the sessions on the work in the
    checkout. No session is about files."""
    by_words = WordSearch(request.words, request.choice, request.limit, query=request.query)
    if request.words.strip():
        return also_in_sessions(by_words, memory)
    if request.files or not by_words.takes_sessions:
        return SessionAnswer()
    return _ask(memory, lambda sessions: sessions.at_work(request))


def sessions_about(memory: LocalMemory, key: CardId) -> SessionAnswer[SessionOutline]:
    """Find the sessions that worked on a thread, the most recently ended first; none for one without a number."""
    return _ask(memory, lambda sessions: sessions.on_issue(key)) if isinstance(key, int) else SessionAnswer()


def records_about_issue(memory: LocalMemory, number: int) -> SessionAnswer[SessionRecord]:
    """As `sessions_about`, with their messages."""
    return _ask(memory, lambda sessions: sessions.records_on_issue(number))


def session_named(memory: LocalMemory, key: str) -> SessionAnswer[Thread]:
    """Find the session with this id in the checkout at hand, whatever its memory."""
    return _ask(memory, lambda sessions: sessions.named(key), is_certain=True)


def _ask(
    memory: LocalMemory, question: Callable[[MemorySessions], SessionAnswer[Found]], *, is_certain: bool = False
) -> SessionAnswer[Found]:
    """Ask the question if any source is known, or ``is_certain``."""
    if not is_certain and not session_sources(memory.session_top).are_known:
        return SessionAnswer()
    from bot.local_cache.sessions import MemorySessions

    try:
        return question(MemorySessions(memory))
    except WorldError as error:
        return SessionAnswer(notes=(f"Agents' sessions are left out: {error}",))
