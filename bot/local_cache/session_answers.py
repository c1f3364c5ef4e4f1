"""Adds what sessions say to the answers of a memory. Quick to import: their index is loaded only if there are any.

An index of sessions that cannot be read costs a note, never the answer. Only `session_named` finds sessions with
committed transcripts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bot.domain.card import SessionHit, SessionOutline
from bot.errors import WorldError
from bot.local_cache.session_sources import Found, SessionAnswer, SessionRecord, session_sources
from bot.questions.requests import WordSearch

if TYPE_CHECKING:
    from bot.domain.card import CardId, Worktree
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.local_cache.session_index import SessionIndex
    from bot.questions.requests import WorkRequest

MAX_SHOWN = 20
"""Sessions that are listed for an issue."""

MAX_AFTER_THREADS = 5
"""Sessions that a search of all kinds shows after the threads."""

Question = Callable[["SessionIndex"], Iterable[Found]]


def also_in_sessions(request: WordSearch, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """Find the sessions that best match the words of a search of all kinds, each with its best message."""

    def search(index: SessionIndex) -> Iterator[SessionHit]:
        words, limit = request.query.words, min(request.limit, MAX_AFTER_THREADS)
        for passage in index.search_each(words, limit, request.since):
            if outline := index.outline(passage.session):
                yield SessionHit(outline, passage)

    if not request.takes_sessions:
        return SessionAnswer()
    return _ask(memory, memory.session_top, search, request.logs)


def also_at_work(request: WorkRequest, memory: LocalMemory) -> SessionAnswer[SessionHit]:
    """Find what sessions say about the words, as for any search; without words, the sessions on the branch of the
    checkout, or on the issues that its name and its commits name, in a search each with its newest message. No session
    is about files."""
    by_words = WordSearch(request.words, request.query, request.limit)
    if request.words.strip():
        return also_in_sessions(by_words, memory)
    subjects = _subjects_of(request.worktree)
    if request.files or not by_words.takes_sessions or not any(subjects):
        return SessionAnswer()

    def search(index: SessionIndex) -> Iterator[SessionHit]:
        outlines = _outlines(index, memory, *subjects)
        if not request.is_search:
            from bot.questions.work import WORK_LIMIT  # a search does not need it

            yield from map(SessionHit, outlines[:WORK_LIMIT])
            return
        for outline in outlines[: min(request.limit, MAX_AFTER_THREADS)]:
            if passage := index.newest_message(outline.id):
                yield SessionHit(outline, passage)

    found = _ask(memory, memory.session_top, search)
    return found if request.is_search else found._replace(searched=())  # an overview does not say where it looked


def sessions_about(memory: LocalMemory, key: CardId) -> SessionAnswer[SessionOutline]:
    """Find the sessions that worked on a thread, or on the pull request that fixed it, the most recently ended first;
    none for one without a number."""
    if not isinstance(key, int):
        return SessionAnswer()
    numbers = _numbers(memory, key)
    return _ask(memory, memory.session_top, lambda index: _outlines(index, memory, numbers))


def records_about_issue(memory: LocalMemory, number: int) -> SessionAnswer[SessionRecord]:
    """As `sessions_about`, with their messages."""
    numbers = _numbers(memory, number)

    def read(index: SessionIndex) -> Iterator[SessionRecord]:
        for outline in _outlines(index, memory, numbers):
            if thread := index.session(outline.id, number):
                yield SessionRecord(outline, thread)

    return _ask(memory, memory.session_top, read)


def session_named(memory: LocalMemory, key: str) -> SessionAnswer[Thread]:
    """Find the session with this id in the checkout at hand, whatever its memory."""
    return _ask(memory, memory.top, lambda index: filter(None, [index.session(key)]))


def _ask(
    memory: LocalMemory, top: Path | None, question: Question[Found], transcripts: Sequence[str] = ()
) -> SessionAnswer[Found]:
    """Ask the sessions of the checkout at ``top`` and these transcripts; the question is not asked without any."""
    if not transcripts and not session_sources(top).are_known:
        return SessionAnswer()
    from bot.local_cache.sessions import SessionScope, ask_sessions

    try:
        return ask_sessions(SessionScope(top, transcripts, progress=memory.progress), question)
    except WorldError as error:
        return SessionAnswer(notes=(f"Agents' sessions are left out: {error}",))


def _numbers(memory: LocalMemory, number: int) -> list[int]:
    """An issue, and the pull requests that fixed it."""
    links = memory.local_cache.links([number])
    fixes = (link.target for link in links if link.kind == "fix" and link.source == number)
    return [number, *(each for each in fixes if isinstance(each, int))]


def _outlines(
    index: SessionIndex, memory: LocalMemory, numbers: Sequence[int], branch: str = ""
) -> list[SessionOutline]:
    outlines = index.find_by_subject(numbers, memory.repo, branch)[:MAX_SHOWN]
    return [outline for outline in outlines if index.committed.isdisjoint(index.paths(outline.id))]


def _subjects_of(worktree: Worktree) -> tuple[tuple[int, ...], str]:
    """The issues that the branch and the commits of a checkout name, and the branch."""
    from bot.questions.worktree_query import worktree_query

    signals = worktree_query(worktree)
    return (*signals.tickets, *signals.mentioned), worktree.branch
