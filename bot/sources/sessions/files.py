"""Finds the transcripts and mapping files that the settings or the user name."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

from bot.files import Globs
from bot.sources.sessions.formats import unread_name
from bot.sources.sessions.head import head_of, holds_messages
from bot.sources.sessions.opencode import is_database, stored_sessions

MAX_FILES = 10_000
MAX_BYTES = 2 << 30
"""Maximum bytes of all files together; the newest are read."""

MAX_MAPPINGS = 2_000
MAX_TOTAL_MAPPING_BYTES = 32 << 20
"""Maximum bytes of all mapping files together; the least deeply nested are read."""

MAX_DEPTH = 20
MAX_ENTRIES = 200_000
"""Maximum directory entries to check for one pattern."""


_DEFAULT_GLOBS = ("**/*.jsonl", "**/*.log", "**/*.json")
_MAPPING_SUFFIX = ".json"
_ISSUES_FOLDER = "issues"
"""The folder next to the sessions where issue agents record which session belongs to which issue."""

_GLOB_CHARS = frozenset("*?[")
_MAX_INT64 = (1 << 63) - 1


class SessionFile(NamedTuple):
    """A regular file as it was when found. ``name`` is its path below ``top``, or the whole path elsewhere.

    A session in a ``database`` is like a file: its path is that of the database, ``#`` and its id, its size the number
    of messages, and both times are the one that the database gives. ``folder`` is its working folder, "" if only the
    content says it.
    """

    path: str
    name: str
    top: str
    size: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    database: str = ""
    folder: str = ""

    @property
    def mark(self) -> str:
        """A text that changes whenever the file does, even if its size and its time of modification stay the same:
        nobody can set ``ctime_ns``.

        It misses an edit that keeps the size within the same tick of the file system's clock (a few milliseconds) as
        the change before it and, on file systems without such a time, one that also puts back ``mtime_ns``. In a
        ``database``, it misses an edit that changes neither the number of messages nor the time of the session.
        """
        return f"{self.size}-{self.mtime_ns}-{self.ctime_ns}-{self.inode}"


class SessionFiles(NamedTuple):
    """The sessions found, newest first, and the mapping files; a ``.json`` may be either and is in both lists.

    ``notes`` say what was left out; ``unmatched`` maps each pattern without a session to the reason, ``unreadable``
    each format that cannot be read to the number of files in it.
    """

    sessions: tuple[SessionFile, ...]
    mappings: tuple[SessionFile, ...] = ()
    notes: tuple[str, ...] = ()
    unmatched: Mapping[str, str] = {}
    unreadable: Mapping[str, int] = {}

    def without(self, paths: Container[str]) -> SessionFiles:
        """Return all but the files with these paths."""
        sessions = tuple(file for file in self.sessions if file.path not in paths)
        return self._replace(
            sessions=sessions, mappings=tuple(file for file in self.mappings if file.path not in paths)
        )

    def merge(self, other: SessionFiles) -> SessionFiles:
        """Return the files of both, without repeats."""
        sessions = {file.path: file for file in (*self.sessions, *other.sessions)}
        mappings = {file.path: file for file in (*self.mappings, *other.mappings)}
        return self._replace(
            sessions=tuple(sessions.values()),
            mappings=tuple(mappings.values()),
            notes=(*self.notes, *other.notes),
            unreadable=Counter(self.unreadable) + Counter(other.unreadable),
        )


def find_sessions(patterns: Iterable[str], top: str, *, with_notes: bool = True) -> SessionFiles:
    """Find the files that match these patterns: below the folder ``top``, or anywhere after a leading ``/`` or ``~``.

    A folder stands for all ``.jsonl``, ``.log`` and ``.json`` files in it. ``with_notes``: also find the mapping files
    next to the sessions. Symlinks are not followed; other kinds of files, and unreadable ones, are left out.
    """
    top = os.path.normpath(Path(top).absolute())
    files_by_path: dict[str, SessionFile] = {}
    notes: list[str] = []
    unmatched: dict[str, str] = {}
    unreadable = Counter[str]()
    for pattern in dict.fromkeys(patterns):
        before = len(notes)
        matches = {file.path: file for file in _match_pattern(pattern, top, notes)}
        refused = _take_unreadable(matches, unreadable)
        if refused and not matches:
            unmatched[pattern] = f"{_printable(pattern)} matches only {' and '.join(refused)}, which cannot be read"
        elif all(path.endswith(_MAPPING_SUFFIX) for path in matches) and not any(map(_is_session, matches)):
            unmatched[pattern] = "; ".join(notes[before:]) or f"{_printable(pattern)} matches no .jsonl or .log file"
        files_by_path |= matches
    sessions = [file for file in files_by_path.values() if not file.path.endswith(_MAPPING_SUFFIX)]
    mappings = {file.path: file for file in files_by_path.values() if file.path.endswith(_MAPPING_SUFFIX)}
    if with_notes:
        mappings |= {file.path: file for file in _adjacent_mappings(sessions, top)}
    sessions.sort(key=lambda file: (-file.mtime_ns, file.path))
    kept = _within_limits(sessions, MAX_FILES, MAX_BYTES)
    if len(kept) < len(sessions):
        notes.append(
            f"the oldest {len(sessions) - len(kept)} of {len(sessions)} session files are not read: "
            f"the limit is {MAX_FILES:,} files and {MAX_BYTES >> 30} GiB"
        )
    shallow = sorted(mappings.values(), key=lambda file: (file.path.count("/"), file.path))
    notes_of_issues = _within_limits(shallow, MAX_MAPPINGS, MAX_TOTAL_MAPPING_BYTES)
    objects = tuple(file for file in notes_of_issues if file.path in files_by_path)
    return SessionFiles((*kept, *objects), notes_of_issues, tuple(notes), unmatched, +unreadable)


def _take_unreadable(matches: dict[str, SessionFile], unreadable: Counter[str]) -> list[str]:
    """Take the files that cannot be read out of the matches, and count them; return the names of their formats.

    A compressed file next to the plain one is the same session.
    """
    found: dict[str, None] = {}
    for path in list(matches):
        if name := unread_name(path):
            del matches[path]
            found[name] = None
            unreadable[name] += not (path.endswith(".zst") and Path(path.removesuffix(".zst")).exists())
    return list(found)


def _is_session(path: str) -> bool:
    return holds_messages(head_of(path))


def _within_limits(files: Sequence[SessionFile], count: int, max_bytes: int) -> tuple[SessionFile, ...]:
    sizes = accumulate(file.size for file in files[:count])
    return tuple(file for file, total in zip(files, sizes, strict=False) if total <= max_bytes)


def _match_pattern(pattern: str, top: str, notes: list[str]) -> Iterator[SessionFile]:
    if not pattern or "\0" in pattern:
        return
    expanded = str(Path.home()) + pattern[1:] if pattern == "~" or pattern.startswith("~/") else pattern
    parts, above = Path(os.path.normpath(Path(top) / expanded)).parts, Path(top).parts
    first = len(above) if parts[: len(above)] == above else 0  # the path of ``top`` itself is not a pattern
    first_glob = next(
        (position for position in range(first, len(parts)) if _GLOB_CHARS & set(parts[position])), len(parts)
    )
    root, rest = str(Path(*parts[:first_glob])), parts[first_glob:]
    if _through_link(root, top):
        notes.append(f"{_printable(root)} is a symlink, and is not followed")
        return
    if not rest and (file := _stat_file(root, top)):
        yield from _sessions_of(file, notes)
        return
    if not rest and not Path(root).is_dir():
        notes.append(f"{_printable(root)} is neither a folder nor a regular file")
    globs = Globs(["/".join(rest)] if rest else _DEFAULT_GLOBS)
    for path, name in _walk(root, globs, notes):
        if globs.match(name) and (file := _stat_file(path, top)):
            yield from _sessions_of(file, notes)


def _sessions_of(file: SessionFile, notes: list[str]) -> Iterator[SessionFile]:
    """The file, or the sessions in it if it is a database."""
    if not is_database(file.path):
        yield file
        return
    try:
        sessions = stored_sessions(file.path)
    except OSError as error:
        notes.append(f"{_printable(file.path)}: {error}")
        return
    for session in sessions:
        path, name = f"{file.path}#{session.id}", f"{file.name}#{session.id}"
        updated_ns = session.updated_ms * 1_000_000
        size, times = session.messages, (updated_ns, updated_ns)
        yield SessionFile(path, name, file.top, size, *times, file.inode, file.path, session.folder)


def _walk(root: str, globs: Globs, notes: list[str]) -> Iterator[tuple[str, str]]:
    """The files below a folder: path and relative name. Folders in which nothing can match are not entered."""
    waiting, count = [(root, "")], 0
    while waiting:
        folder, prefix = waiting.pop()
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except (OSError, ValueError):
            continue
        count += len(entries)
        if count > MAX_ENTRIES:
            notes.append(f"{_printable(root)} was not searched completely: it has more than {MAX_ENTRIES:,} entries")
            return
        for entry in entries:
            name = f"{prefix}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if name.count("/") < MAX_DEPTH and entry.name != ".git" and globs.may_match_below(name):
                    waiting.append((entry.path, f"{name}/"))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path, name


def _through_link(path: str, top: str) -> bool:
    """Whether a folder between ``top`` and the path is a symlink. Symlinks elsewhere are the user's own."""
    location = Path(path)
    if Path(top) not in location.parents:
        return path != top and location.is_symlink()
    return any(folder.is_symlink() for folder in (location, *location.parents) if Path(top) in folder.parents)


def _adjacent_mappings(sessions: Iterable[SessionFile], top: str) -> Iterator[SessionFile]:
    """The mapping files of issue agents: ``issues/*.json`` in the folder of a session or, below ``top``, next to it."""
    folders = {Path(file.path).parent for file in sessions}
    folders |= {folder.parent for folder in folders if Path(top) in folder.parents}
    globs = Globs([f"*{_MAPPING_SUFFIX}"])
    for folder in sorted(folders):
        root = str(folder / _ISSUES_FOLDER)
        if not _through_link(root, top):
            files = (_stat_file(path, top) for path, name in _walk(root, globs, []) if globs.match(name))
            yield from filter(None, files)


def _stat_file(path: str, top: str) -> SessionFile | None:
    try:
        path.encode()  # a name that is not valid text cannot be shown
        status = os.lstat(path)
    except (OSError, ValueError):
        return None
    if not stat.S_ISREG(status.st_mode):
        return None
    name = path[len(top) + 1 :] if path.startswith(f"{top}{os.sep}") else path
    times = status.st_mtime_ns, status.st_ctime_ns
    return SessionFile(path, name, top, status.st_size, *times, status.st_ino & _MAX_INT64)


def _printable(path: str) -> str:
    return "".join(character if character.isprintable() else "?" for character in path)[:300]
