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
from typing import NamedTuple

from bot.errors import UserError
from bot.local_cache.database import SESSIONS_SCHEMA, is_damage, is_replaced, raise_unusable, remove
from bot.local_cache.local_memory import ProgressBar, cache_folder, cache_name, no_progress
from bot.local_cache.session_index import SessionIndex, TranscriptHead
from bot.local_cache.session_sources import Found, SessionAnswer, SessionSources, session_sources
from bot.questions.requests import WordSearch
from bot.questions.search import SessionHits
from bot.sources.sessions.files import SessionFile, SessionFiles, find_sessions
from bot.sources.sessions.worktrees import Worktrees


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
        passages = index.search(request.query.words, request.limit, request.since)
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
