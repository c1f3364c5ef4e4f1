"""A few files of the remote's default branch, such as the settings, without a clone of it."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from bot.memory.disk import on_disk
from bot.memory.git import TIP, Entry, Git, Remote
from bot.memory.git_errors import RefMissing
from bot.memory.paths import checked
from bot.memory.store import StoreError

_FOLDER = "040000"
_FILES = ("100644", "100755")


def read_head_files(url: str, token: str | None, paths: Iterable[str], *, limit: int = 65_536) -> dict[str, bytes]:
    """The files of HEAD that match ``paths`` (``.github/precedent/*.j2``; ``*`` is within a folder); no absent ones.

    A symlink or submodule among them, or a file of more than ``limit`` bytes, raises StoreError. Three exchanges at
    most: the commit; its top folder; all below the first folder of each path, of which the server leaves out what is
    large. Where the server cannot leave out trees, the names of all files come along, contents never.
    """
    patterns = [checked(path) for path in paths]
    with on_disk("make a temporary folder"), tempfile.TemporaryDirectory(prefix="precedent-") as folder:
        git = Git(Path(folder) / "head.git", Remote(url, token))
        git.init()
        try:
            git.fetch_tip("HEAD", ["tree:0", "blob:none"])
        except RefMissing:
            return {}
        found = _matching(git, patterns, limit)
        contents = dict(git.objects([entry.oid for entry in found.values()]))
        return {path: _within(limit, path, contents.get(entry.oid)) for path, entry in found.items()}


def _matching(git: Git, patterns: list[str], limit: int) -> dict[str, Entry]:
    """The wanted files, and of each the content where it is small enough for the server to send it."""
    root = git.commit(TIP).tree
    bare = bool(git.absent([root]))
    if bare:
        git.fetch_objects([root], "tree:0")
    tops = {name: entry for name, entry in git.files(root, deep=False).items() if _leads(name, patterns)}
    wanted = git.absent(entry.oid for entry in tops.values() if entry.mode != "160000")
    if wanted:
        git.fetch_objects(wanted, f"blob:limit={limit + 1}")
    found: dict[str, Entry] = {}
    for name, entry in tops.items():
        inner = git.files(entry.oid) if entry.mode == _FOLDER else {}
        found |= {f"{name}/{path}": below for path, below in inner.items()} or {name: entry}
    on_the_way = {path: entry for path, entry in found.items() if _leads(path, patterns)}
    regular = {path: entry for path, entry in on_the_way.items() if _is_file(path, entry, patterns)}
    if not bare and (absent := git.absent(entry.oid for entry in regular.values())):
        git.fetch_objects(absent, "blob:none")
    return regular


def _leads(path: str, patterns: list[str]) -> bool:
    """Whether it matches a pattern, or could be a folder on the way to something that does."""
    parts = path.split("/")
    return any(
        len(parts) <= len(steps) and all(map(fnmatchcase, parts, steps))
        for steps in (pattern.split("/") for pattern in patterns)
    )


def _is_file(path: str, entry: Entry, patterns: list[str]) -> bool:
    if entry.mode not in _FILES:
        raise StoreError(f"{path} is a symlink or a submodule; put the file itself there")
    depth = path.count("/")
    return any(pattern.count("/") == depth and _leads(path, [pattern]) for pattern in patterns)


def _within(limit: int, path: str, content: bytes | None) -> bytes:
    if content is None or len(content) > limit:
        raise StoreError(f"{path} has more than {limit:,} bytes; make it shorter")
    return content
