"""What lies in a tree of git, level by level and within bounds: a small tree may unfold into billions of files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from itertools import chain

from bot.memory.bounds import MAX_DEPTH, MAX_FILES
from bot.memory.git import FILE_MODE, Entry, Git
from bot.memory.paths import LONGEST
from bot.memory.store import StoreError

LARGEST_TREE = 16_000_000
"""Bytes of one folder's list of names, near 400,000 of them."""

FOLDER = "040000"
SUBMODULE = "160000"
_ENTRY = re.compile(rb"([0-7]{5,6}) ([^\0]+)\0(.{20})", re.DOTALL)


class TooMany(StoreError):
    """A tree has more names than anybody would look through."""


def walk(git: Git, tree: str, leads: Callable[[str], bool], most: int) -> Iterator[tuple[str, Entry]]:
    """Path and entry of all in ``tree``; TooMany comes after ``most`` of them, or where a folder alone is too large.

    ``leads`` says of a folder whether to look into it; one whose path is longer than that of any file is left out.
    One list of names is in memory at a time, and a name longer than any path of ours counts as several.
    """
    level, count = {tree: [""]}, 0
    for _ in range(MAX_DEPTH):
        below: dict[str, list[str]] = {}
        for oid, data in git.objects.read(level, LARGEST_TREE):
            folders = level.pop(oid)
            for found in _ENTRY.finditer(data):
                bits, name, raw = found.groups()
                count += len(folders) * (1 + len(name) // LONGEST)
                if count > most:
                    raise TooMany(f"there are more than {most:,} files")
                entry = Entry(_kind(bits), raw.hex())
                for folder in folders:
                    path = folder + name.decode("utf-8", "surrogateescape")
                    yield path, entry
                    if entry.mode == FOLDER and len(path) < LONGEST and leads(path):
                        below.setdefault(entry.oid, []).append(f"{path}/")
        for folder in chain.from_iterable(level.values()):
            raise TooMany(f"the folder {folder[:80]!r} is not there, or too large to be looked through")
        level = below


def all_files(git: Git, tree: str) -> dict[str, Entry]:
    """Path → entry of all files, symlinks and submodules in ``tree``; StoreError when there are more than MAX_FILES."""
    try:
        entries = walk(git, tree, lambda _: True, MAX_FILES)
        return {path: entry for path, entry in entries if entry.mode != FOLDER}
    except TooMany as error:
        raise TooMany(f"{error}: this program never wrote that branch; delete it, and run with `rebuild`") from None


@cache
def _kind(mode: bytes) -> str:
    """The mode as git itself takes it: of a regular file only whether its owner may run it counts."""
    number = int(mode, 8)
    match number & 0o170000:
        case 0o100000:
            return "100755" if number & 0o100 else FILE_MODE
        case 0o040000:
            return FOLDER
        case 0o120000:
            return "120000"
    return SUBMODULE
