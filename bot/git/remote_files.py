"""Reads files of a remote's default branch, such as settings and pages, without cloning it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from bot.errors import UnreadableFile
from bot.files import MAX_FILES, check_path, is_safe_path
from bot.git.errors import AuthFailed, RefMissing
from bot.git.remote import Remote, as_remote
from bot.git.repository import (
    FOLDER_MODE,
    SUBMODULE_MODE,
    TIP_REF,
    Git,
    TreeEntry,
    TreeTooLarge,
    temporary_repository,
    walk,
)

MAX_ENTRIES = 100_000
"""Maximum number of names to check in one commit: a small tree may expand to billions of files."""

_ANY_NAMES = {"fetch.fsckObjects": "false"}
"""Git would refuse all files because of the name of one. Nothing is checked out, and `Head.files` leaves out such names
alone."""

_FILE_MODES = ("100644", "100755")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Head:
    """The default branch of a remote. Nothing is fetched until it is needed."""

    def __init__(self, git: Git, known_tip: str | None = None) -> None:
        self._git, self._known_tip = git, known_tip

    def tip(self) -> str:
        """Return the newest commit, as given or as it is now; "" without a repository or commit."""
        if self._known_tip is not None:
            return self._known_tip
        try:
            return self._git.remote_tip("HEAD")
        except AuthFailed as error:
            if "not found" in str(error):
                return ""
            raise

    def fetch(self) -> tuple[str, datetime]:
        """Fetch the newest commit with its folders, without files if the server can leave them out.

        Returns its id and time, which is 1970 if it is not a valid date.
        """
        self._git.fetch_tip("HEAD", ["blob:none"])
        commit = self._git.objects.commit(TIP_REF)
        return commit.oid, commit.at or _EPOCH

    def files(self, is_wanted: Callable[[str], bool], leads: Callable[[str], bool]) -> tuple[dict[str, str], list[str]]:
        """Return the ids of the wanted files of the fetched commit by path, and sentences about what was left out.

        ``leads`` decides which folders to look into. Symlinks, submodules and names with a special meaning on disk are
        left out, and so are repeated names and everything after MAX_ENTRIES.
        """
        oids: dict[str, str] = {}
        links, names, notes = [], 0, []
        try:
            for path, entry in walk(self._git, self._git.objects.commit(TIP_REF).tree, leads, MAX_ENTRIES):
                if entry.mode == FOLDER_MODE or not is_wanted(path):
                    continue
                if path in oids or not is_safe_path(path):
                    names += 1
                elif entry.mode in _FILE_MODES:
                    oids[path] = entry.oid
                else:
                    links.append(path)
        except TreeTooLarge:
            notes.append("there are too many files: some were not checked")
        notes += [f"{path} was left out: it is a symlink or a submodule" for path in links[:3]]
        notes += [f"{names} files were left out because of their names"] if names else []
        return oids, notes

    def contents(self, ids: Sequence[str], limit: int) -> dict[str, bytes]:
        """Return these files by id, fetched in one exchange, except those of more than ``limit`` bytes."""
        absent = self._git.objects.absent(ids)
        if absent:
            self._git.fetch_objects(absent, "blob:none")
        return dict(self._git.objects.read(ids, limit))


@contextmanager
def open_head(url: str | Remote, token: str | None, known_tip: str | None = None) -> Iterator[Head]:
    """Open the default branch of the repository at ``url``, in a temporary folder that is deleted afterwards.

    ``known_tip`` is its newest commit if already known, which saves a request.
    """
    with temporary_repository(as_remote(url, token), _ANY_NAMES) as git:
        yield Head(git, known_tip)


def read_head(
    url: str | Remote, token: str | None, paths: Iterable[str], *, limit: int = 65_536
) -> tuple[str, dict[str, bytes]]:
    """Return the commit of HEAD, and its files that match ``paths`` (``.github/precedent/*.j2``; no ``/`` in ``*``).

    Without a commit, these are "" and no files. Raises UnreadableFile for a symlink, a submodule or a file of more
    than ``limit`` bytes. This takes at most three exchanges: the commit; its top folder; everything below the first
    folder of each path, without large files. If the server cannot leave out trees, the names of all files are sent as
    well.
    """
    patterns = [check_path(path) for path in paths]
    with temporary_repository(as_remote(url, token)) as git:
        try:
            git.fetch_tip("HEAD", ["tree:0", "blob:none"])
        except RefMissing:
            return "", {}
        entries = _find_matching(git, patterns, limit)
        contents = dict(git.objects.read([entry.oid for entry in entries.values()], limit))
        files = {path: _check_size(limit, path, contents.get(entry.oid)) for path, entry in entries.items()}
        return git.objects.commit(TIP_REF).oid, files


def _find_matching(git: Git, patterns: list[str], limit: int) -> dict[str, TreeEntry]:
    root = git.objects.commit(TIP_REF).tree
    lacks_trees = bool(git.objects.absent([root]))
    if lacks_trees:
        git.fetch_objects([root], "tree:0")
    tops = {
        name: entry for name, entry in walk(git, root, lambda _: False, MAX_FILES) if _leads_to_match(name, patterns)
    }
    missing = git.objects.absent(entry.oid for entry in tops.values() if entry.mode != SUBMODULE_MODE)
    if missing:
        git.fetch_objects(missing, f"blob:limit={limit + 1}")
    entries = walk(git, root, lambda folder: _leads_to_match(folder, patterns), MAX_FILES)
    candidates = {
        path: entry for path, entry in entries if entry.mode != FOLDER_MODE and _leads_to_match(path, patterns)
    }
    regular = {path: entry for path, entry in candidates.items() if _is_file(path, entry, patterns)}
    if not lacks_trees and (absent := git.objects.absent(entry.oid for entry in regular.values())):
        git.fetch_objects(absent, "blob:none")
    return regular


def _leads_to_match(path: str, patterns: list[str]) -> bool:
    """Whether the path matches a pattern, or could be a folder on the way to a match."""
    parts = path.split("/")
    return any(
        len(parts) <= len(steps) and all(map(fnmatchcase, parts, steps))
        for steps in (pattern.split("/") for pattern in patterns)
    )


def _is_file(path: str, entry: TreeEntry, patterns: list[str]) -> bool:
    if entry.mode not in _FILE_MODES:
        raise UnreadableFile(f"{path} is a symlink or a submodule; put the file itself there", [path])
    depth = path.count("/")
    return any(pattern.count("/") == depth and _leads_to_match(path, [pattern]) for pattern in patterns)


def _check_size(limit: int, path: str, content: bytes | None) -> bytes:
    if content is None or len(content) > limit:
        raise UnreadableFile(f"{path} has more than {limit:,} bytes; make it shorter", [path])
    return content
