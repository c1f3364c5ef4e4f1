"""Asks the sessions of agents: those that the settings of a checkout or the user name, and those in the usual folders.

Of the transcripts in the usual folders, only those that belong to the checkout are read. A transcript begins with the
folder that its agent worked in; of others only this beginning is read, once.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bot.domain.card import SessionHit, SessionOutline
from bot.errors import UserError
from bot.local_cache.database import SESSIONS_SCHEMA, is_damage, is_replaced, raise_unusable, remove
from bot.local_cache.local_memory import ProgressBar, cache_folder, cache_name, no_progress
from bot.local_cache.session_index import SessionIndex, TranscriptHead
from bot.local_cache.session_sources import Found, SessionAnswer, SessionRecord, SessionSources, session_sources
from bot.questions.requests import WordSearch
from bot.questions.search import SessionHits
from bot.sources.sessions.files import SessionFile, SessionFiles, find_sessions
from bot.sources.sessions.worktrees import Worktrees

if TYPE_CHECKING:
    from bot.domain.card import Worktree
    from bot.domain.thread import Thread
    from bot.local_cache.local_memory import LocalMemory
    from bot.questions.requests import WorkRequest

MAX_SHOWN = 20
"""Sessions that are listed for an issue."""

MAX_AFTER_THREADS = 5
"""Sessions that a search of all kinds shows after the threads."""


class SessionScope(NamedTuple):
    """The sessions to ask: those that the settings at ``top`` name, those in the usual folders of coding agents, and
    these ``transcripts``. ``required``: wrong settings raise UserError, instead of naming none."""

    top: Path | None
    transcripts: Sequence[str] = ()
    required: bool = False
    progress: ProgressBar = no_progress


_DAMAGE = (sqlite3.Error, ValueError, TypeError, AttributeError, ArithmeticError, LookupError)
"""What a damaged file may raise: SQLite has no checksums, so it may also return values that were never stored."""


def ask_sessions(scope: SessionScope, question: Callable[[SessionIndex], Iterable[Found]]) -> SessionAnswer[Found]:
    """Bring the index up to date and ask it; without sessions, the question is not asked.

    A damaged index is replaced. Raises UserError if one of ``transcripts`` names none, and WorldError if the index
    cannot be read, such as when another process keeps it locked.
    """
    sources = session_sources(scope.top, required=scope.required)
    if not sources.are_known and not scope.transcripts:
        return SessionAnswer()
    path = _index_path(scope, sources)
    try:
        return _ask(path, scope, sources, question)
    except _DAMAGE as error:
        _discard(path, error)
    try:
        return _ask(path, scope, sources, question)
    except sqlite3.Error as error:
        raise_unusable(path, error)


def _discard(path: Path, error: Exception) -> None:
    """Remove a damaged file. Raises WorldError if the error has another reason, or the file cannot be removed."""
    if isinstance(error, sqlite3.Error) and not is_damage(error):
        if not is_replaced(error):
            raise_unusable(path, error)
        return
    try:
        remove(path)
    except OSError as failure:
        raise_unusable(path, failure)


def _index_path(scope: SessionScope, sources: SessionSources) -> Path:
    from bot.sources.sessions.times import local_key  # not needed for a search of the memory

    patterns = [*sources.patterns, *map(_absolute_path, scope.transcripts)]
    usual = ["the usual folders"] if sources.folders else []
    folder = str(_folder_of(scope, sources))
    name = cache_name("\n".join([folder, *patterns, *usual, local_key()]))  # stored times depend on the zone
    version = SESSIONS_SCHEMA.format.replace(" ", "-")  # other versions use other files
    return cache_folder() / "logs" / f"{name}.{version}.db"


def _folder_of(scope: SessionScope, sources: SessionSources) -> Path:
    return scope.top if scope.top and sources.are_known else Path.cwd()


def _ask(
    path: Path, scope: SessionScope, sources: SessionSources, question: Callable[[SessionIndex], Iterable[Found]]
) -> SessionAnswer[Found]:
    with closing(SessionIndex(path)) as index:
        typed = {_absolute_path(transcript): transcript for transcript in scope.transcripts}
        wanted = find_sessions(typed, str(_folder_of(scope, sources)))
        for pattern, reason in wanted.unmatched.items():
            raise UserError(f"--logs {typed[pattern]}: {reason}")
        files = wanted.merge(_known_sessions(index, sources, {file.path for file in wanted.sessions}))
        with scope.progress("Reading transcripts", None) as tick:
            notes = index.refresh(files, tick)
        unreadable = tuple(_unreadable_notes(files))
        if not (files.sessions or sources.patterns or typed):
            return SessionAnswer(notes=notes, searched=unreadable)
        with index.unchanged():
            found, notes = tuple(question(index)), (*notes, *_broken_note(index))
            return SessionAnswer(found, notes, (*_folders_note(index, sources, files), *unreadable))


def _known_sessions(index: SessionIndex, sources: SessionSources, wanted: Container[str]) -> SessionFiles:
    """The sessions that the settings name, and those in the usual folders that did not come with a checkout. Tells the
    index which are committed, except for the ``wanted`` ones."""
    named, usual = find_sessions(sources.patterns, str(sources.top)), _usual_sessions(index, sources)
    committed = _committed_paths(sources.top, named.merge(usual))
    index.committed = frozenset(path for path in committed if path not in wanted)
    return named.merge(usual.without(committed))


def _usual_sessions(index: SessionIndex, sources: SessionSources) -> SessionFiles:
    """The sessions of the checkout in the usual folders."""
    inside = find_sessions([each.path for each in sources.folders if each.is_in_checkout], str(sources.top))
    patterns = [f"{each.path}/{glob}" for each in sources.folders if not each.is_in_checkout for glob in each.patterns]
    if not patterns:
        return inside
    files = find_sessions(patterns, str(sources.top), with_notes=False)
    return inside.merge(files._replace(sessions=own_sessions(index, files, sources)))


def _committed_paths(top: Path | None, files: SessionFiles) -> set[str]:
    stored_in = {file.path: file.database or file.path for file in (*files.sessions, *files.mappings)}
    if not stored_in:
        return set()
    from bot.git.checkout import tracked_files

    tracked = tracked_files(top, dict.fromkeys(stored_in.values()))
    return {path for path, stored in stored_in.items() if stored in tracked}


def _broken_note(index: SessionIndex) -> Iterator[str]:
    if broken := sum(index.broken_lines().values()):
        yield "1 broken line was left out." if broken == 1 else f"{broken:,} broken lines were left out."


def _unreadable_notes(files: SessionFiles) -> Iterator[str]:
    """What is in the usual folders in a format that is not read; other checkouts may have some of it."""
    for name, count in files.unreadable.items():
        yield f"{count:,} file{'s' * (count != 1)} cannot be read: {name}."


def _folders_note(index: SessionIndex, sources: SessionSources, files: SessionFiles) -> Iterator[str]:
    """A note on the default folders that were searched."""
    paths = [file.path for file in files.sessions]
    used = [folder for folder in sources.folders if any(path.startswith(f"{folder.path}/") for path in paths)]
    if not used:
        return
    count, prefixes = index.size, tuple(f"{folder.path}/" for folder in used)
    others = "" if all(path.startswith(prefixes) for path in paths) else ", some of them"
    folders = " and ".join(dict.fromkeys(folder.shown for folder in used))
    yield (
        f"Searched {count:,} session{'s' * (count != 1)}{others} in {folders} "
        "(sources.default_sessions: false leaves these out)."
    )


class MemorySessions:
    """The sessions of the checkout that a memory is of. Only `named` finds those with committed transcripts."""

    def __init__(self, memory: LocalMemory) -> None:
        self._memory = memory

    def about(self, request: WordSearch) -> SessionAnswer[SessionHit]:
        """Find the sessions that best match the words, each with its best message."""

        def search(index: SessionIndex) -> Iterator[SessionHit]:
            words, limit = request.parsed_query.words, min(request.limit, MAX_AFTER_THREADS)
            for passage in index.search_each(words, limit, request.since):
                if outline := index.outline(passage.session):
                    yield SessionHit(outline, passage)

        return self._ask(search, request.logs)

    def on_issue(self, number: int) -> SessionAnswer[SessionOutline]:
        """Return the sessions that worked on an issue or pull request, or on the pull request that fixed it, the most
        recently ended first."""
        subjects = self._numbers(number), ""
        return self._ask(lambda index: self._outlines(index, *subjects))

    def records_on_issue(self, number: int) -> SessionAnswer[SessionRecord]:
        """As `on_issue`, with the messages."""

        def read(index: SessionIndex) -> Iterator[SessionRecord]:
            for outline in self._outlines(index, *subjects):
                if thread := index.session(outline.id, number):
                    yield SessionRecord(outline, thread)

        subjects = self._numbers(number), ""
        return self._ask(read)

    def at_work(self, request: WorkRequest) -> SessionAnswer[SessionHit]:
        """Return the sessions on the branch of a checkout, or on the issues that its name and its commits name; in a
        search, each with its newest message."""

        from bot.questions.work import WORK_LIMIT  # a search by words does not need it

        def search(index: SessionIndex) -> Iterator[SessionHit]:
            outlines = self._outlines(index, *subjects)
            if not request.is_search:
                yield from map(SessionHit, outlines[:WORK_LIMIT])
                return
            for outline in outlines[: min(request.limit, MAX_AFTER_THREADS)]:
                if passage := index.newest_message(outline.id):
                    yield SessionHit(outline, passage)

        subjects = _subjects_of(request.worktree)
        found = self._ask(search) if any(subjects) else SessionAnswer[SessionHit]()
        return found if request.is_search else found._replace(searched=())  # an overview does not say where it looked

    def named(self, id: str) -> SessionAnswer[Thread]:
        """Return the session with this id, whatever the memory of the checkout at hand."""
        scope = SessionScope(self._memory.top, progress=self._memory.progress)
        return ask_sessions(scope, lambda index: filter(None, [index.session(id)]))

    def _ask(
        self, question: Callable[[SessionIndex], Iterable[Found]], transcripts: Sequence[str] = ()
    ) -> SessionAnswer[Found]:
        scope = SessionScope(self._memory.session_top, transcripts, progress=self._memory.progress)
        return ask_sessions(scope, question)

    def _numbers(self, number: int) -> list[int]:
        """An issue, and the pull requests that fixed it."""
        links = self._memory.local_cache.links([number])
        fixes = (link.target for link in links if link.kind == "fix" and link.source == number)
        return [number, *(each for each in fixes if isinstance(each, int))]

    def _outlines(self, index: SessionIndex, numbers: Sequence[int], branch: str) -> list[SessionOutline]:
        outlines = index.find_by_subject(numbers, self._memory.repo, branch)[:MAX_SHOWN]
        return [outline for outline in outlines if index.committed.isdisjoint(index.paths(outline.id))]


def _subjects_of(worktree: Worktree) -> tuple[tuple[int, ...], str]:
    """The issues that the branch and the commits of a checkout name, and the branch."""
    from bot.questions.worktree_query import worktree_query

    signals = worktree_query(worktree)
    return (*signals.tickets, *signals.mentioned), worktree.branch


def _absolute_path(path: str) -> str:
    try:
        return str(Path.cwd() / Path(path).expanduser())
    except RuntimeError as error:
        raise UserError(f"--logs {path}: no such account") from error


def search_sessions(
    request: WordSearch, folder: Path, option: str, progress: ProgressBar = no_progress
) -> SessionAnswer[SessionHits]:
    """Search the transcripts named by the query or by the settings of the checkout around ``folder``, and those in
    the usual folders of coding agents.

    Raises UserError if there are none, and for filters that sessions do not have; WorldError if the index cannot be
    read. ``option`` is the prefix of parameters in messages: ``--``, or nothing.
    """
    from bot.git.checkout import find_top

    def search(index: SessionIndex) -> Iterator[SessionHits]:
        passages = index.search(request.parsed_query.words, request.limit, request.since)
        yield SessionHits(tuple(passages), index.size)

    _refuse_filters(request, option)
    answer = ask_sessions(SessionScope(find_top(folder), request.logs, required=True, progress=progress), search)
    if not answer.found:
        give = "give --logs PATH, or " if option else ""
        left_out = "; ".join(note.rstrip(".") for note in (*answer.notes, *answer.searched))
        raise UserError(
            f"no sessions found for this checkout{f' ({left_out})' if left_out else ''}: "
            f"{give}set sources.sessions in the settings"
        )
    return answer


def _refuse_filters(request: WordSearch, option: str) -> None:
    if unsupported := [f"{option}{name}" for name in request.filters_without_sessions]:
        raise UserError(
            f"{', '.join(unsupported)}: not supported for sessions; "
            f"{option}kind session accepts {option}since and {option}limit"
        )


# -- which transcripts belong to the checkout --------------------------------------------------------------------------


def own_sessions(index: SessionIndex, files: SessionFiles, sources: SessionSources) -> tuple[SessionFile, ...]:
    """Return the transcripts of the checkout and of the other worktrees of its repository.

    One that names no folder counts only in the checkout's own. One whose folder is gone counts if it was in a worktree
    when it was first seen, or names the repository.
    """
    trees = Worktrees(str(sources.top))
    heads = index.heads(files.sessions, trees)
    own = tuple(f"{each.path}/" for each in sources.folders if each.is_own)
    is_inside = {head: _is_inside(head, trees) for head in set(heads.values()) if head.folder}
    return tuple(file for file in files.sessions if is_inside.get(heads[file.path], file.path.startswith(own)))


def _is_inside(head: TranscriptHead, trees: Worktrees) -> bool:
    if trees.holds(head.folder):
        return True
    return trees.is_owner(head.owner) and not os.path.isdir(head.folder)  # noqa: PTH112
