"""Files of a remote's default branch, such as settings and pages, without a clone of it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from pathlib import Path

from bot.errors import StoreError
from bot.files import MAX_FILES, checked, is_fit, on_disk
from bot.git.errors import AuthFailed, RefMissing
from bot.git.remote import Remote, at
from bot.git.repository import TIP, Git, TreeEntry
from bot.git.trees import FOLDER, SUBMODULE, TooMany, walk

MAX_ENTRIES = 100_000
"""Names that are looked at in one commit: a tree may be small, and unfold into billions of files."""

_FILES = ("100644", "100755")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Head:
    """The default branch of a remote. Nothing is fetched before it is asked for."""

    def __init__(self, git: Git, seen: str | None = None) -> None:
        self._git, self._seen = git, seen

    def tip(self) -> str:
        """The commit that it stands at, as it was seen before or now; empty where there is no repository or commit."""
        if self._seen is not None:
            return self._seen
        try:
            return self._git.remote_tip("HEAD")
        except AuthFailed as error:
            if "not found" in str(error):
                return ""
            raise

    def fetch(self) -> tuple[str, datetime]:
        """Bring the newest commit with its folders; of the files only those that the server cannot leave out.

        Its id and time, that of 1970 where it has none that a calendar knows.
        """
        self._git.fetch_tip("HEAD", ["blob:none"])
        commit = self._git.objects.commit(TIP)
        return commit.oid, commit.at or _EPOCH

    def files(self, is_wanted: Callable[[str], bool], leads: Callable[[str], bool]) -> tuple[dict[str, str], list[str]]:
        """Of the fetched commit the ids of the wanted files by path, and in words what was left out.

        ``leads`` says of a folder whether to look into it. Symlinks, submodules and names that mean something else on
        a disk are left out, and all that comes after MAX_ENTRIES.
        """
        found: dict[str, str] = {}
        links, names, told = [], 0, []
        try:
            for path, entry in walk(self._git, self._git.objects.commit(TIP).tree, leads, MAX_ENTRIES):
                if entry.mode == FOLDER or not is_wanted(path):
                    continue
                if not is_fit(path):
                    names += 1
                elif entry.mode in _FILES:
                    found[path] = entry.oid
                else:
                    links.append(path)
        except TooMany:
            told.append("there are too many files: not all were looked at")
        told += [f"{path} was left out: it is a symlink or a submodule" for path in links[:3]]
        told += [f"{names} files were left out for their names"] if names else []
        return found, told

    def contents(self, ids: Sequence[str], limit: int) -> dict[str, bytes]:
        """These files by id, without those of more than ``limit`` bytes, brought in one exchange."""
        absent = self._git.objects.absent(ids)
        if absent:
            self._git.fetch_objects(absent, "blob:none")
        return dict(self._git.objects.read(ids, limit))


@contextmanager
def open_head(url: str | Remote, token: str | None, seen: str | None = None) -> Iterator[Head]:
    """The default branch of the repository at ``url``, fetched into a temporary folder that goes with the context.

    ``seen``: the commit that it stood at a moment ago, which saves asking where it stands.
    """
    with _repository(url, token) as git:
        yield Head(git, seen)


def read_head(
    url: str | Remote, token: str | None, paths: Iterable[str], *, limit: int = 65_536
) -> tuple[str, dict[str, bytes]]:
    """The commit of HEAD, and its files that match ``paths`` (``.github/precedent/*.j2``; ``*`` is within a folder).

    What is absent is not among them; without a commit there is "" and nothing.
    A symlink or submodule among them, or a file of more than ``limit`` bytes, raises StoreError. Three exchanges at
    most: the commit; its top folder; all below the first folder of each path, of which the server leaves out what is
    large. Where the server cannot leave out trees, the names of all files come along, contents never.
    """
    patterns = [checked(path) for path in paths]
    with _repository(url, token) as git:
        try:
            git.fetch_tip("HEAD", ["tree:0", "blob:none"])
        except RefMissing:
            return "", {}
        found = _matching(git, patterns, limit)
        contents = dict(git.objects.read([entry.oid for entry in found.values()], limit))
        files = {path: _within(limit, path, contents.get(entry.oid)) for path, entry in found.items()}
        return git.objects.commit(TIP).oid, files


@contextmanager
def _repository(url: str | Remote, token: str | None) -> Iterator[Git]:
    with (
        on_disk("make a temporary folder"),
        tempfile.TemporaryDirectory(prefix="precedent-") as folder,
        Git(Path(folder) / "head.git", at(url, token)) as git,
    ):
        git.init()
        yield git


def _matching(git: Git, patterns: list[str], limit: int) -> dict[str, TreeEntry]:
    root = git.objects.commit(TIP).tree
    bare = bool(git.objects.absent([root]))
    if bare:
        git.fetch_objects([root], "tree:0")
    tops = {name: entry for name, entry in walk(git, root, lambda _: False, MAX_FILES) if _leads(name, patterns)}
    wanted = git.objects.absent(entry.oid for entry in tops.values() if entry.mode != SUBMODULE)
    if wanted:
        git.fetch_objects(wanted, f"blob:limit={limit + 1}")
    everything = walk(git, root, lambda folder: _leads(folder, patterns), MAX_FILES)
    on_the_way = {path: entry for path, entry in everything if entry.mode != FOLDER and _leads(path, patterns)}
    regular = {path: entry for path, entry in on_the_way.items() if _is_file(path, entry, patterns)}
    if not bare and (absent := git.objects.absent(entry.oid for entry in regular.values())):
        git.fetch_objects(absent, "blob:none")
    return regular


def _leads(path: str, patterns: list[str]) -> bool:
    """Whether it matches a pattern, or could be a folder on the way to something that does."""
    parts = path.split("/")
    return any(
        len(parts) <= len(steps) and all(map(fnmatchcase, parts, steps))
        for steps in (pattern.split("/") for pattern in patterns)
    )


def _is_file(path: str, entry: TreeEntry, patterns: list[str]) -> bool:
    if entry.mode not in _FILES:
        raise StoreError(f"{path} is a symlink or a submodule; put the file itself there")
    depth = path.count("/")
    return any(pattern.count("/") == depth and _leads(path, [pattern]) for pattern in patterns)


def _within(limit: int, path: str, content: bytes | None) -> bytes:
    if content is None or len(content) > limit:
        raise StoreError(f"{path} has more than {limit:,} bytes; make it shorter")
    return content
