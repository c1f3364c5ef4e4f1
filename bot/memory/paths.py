"""Which names a file of the store may have, and which of them lie below a folder."""

from __future__ import annotations

import re
from collections.abc import Iterable

from bot.memory.store import Clash, StoreError

_UNFIT = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")
_RESERVED = frozenset({"", ".", "..", ".git", ".store"})
LONGEST = 1024
"""Characters of a path."""

_LONGEST_NAME = 255
"""Bytes of one name in it, which is what file systems take."""


def checked(path: str) -> str:
    """``path`` itself, when it is relative, normal, and means the same file in git and on a disk; else StoreError."""
    parts = path.split("/")
    is_fit = len(path) <= LONGEST and not _UNFIT.search(path)
    if not is_fit or any(part.lower() in _RESERVED or len(part.encode()) > _LONGEST_NAME for part in parts):
        raise StoreError(f"not a path inside the store: {path[:80]!r}; use relative names with '/' and no '..'")
    return path


def is_fit(path: str) -> bool:
    """Whether ``path`` could be the path of a file of ours."""
    try:
        return checked(path) == path
    except StoreError:
        return False


def checked_all(paths: Iterable[str]) -> list[str]:
    """Each path once, in order, all of them checked."""
    return [checked(path) for path in dict.fromkeys(paths)]


def checked_folder(prefix: str) -> str:
    """``prefix`` without a slash at its end; "" is the whole store."""
    trimmed = prefix.rstrip("/")
    return checked(trimmed) if trimmed else ""


def below(path: str, folder: str) -> bool:
    """Whether the file lies in ``folder`` at any depth; everything lies below ""."""
    return not folder or path.startswith(folder + "/")


def refuse_clashes(files: Iterable[str]) -> None:
    """Clash when one of these files would have to be the folder of another one."""
    names = frozenset(files)
    folders: set[str] = set()
    waiting = {name.rpartition("/")[0] for name in names}
    while waiting := waiting - folders - {""}:
        folders |= waiting
        waiting = {folder.rpartition("/")[0] for folder in waiting}
    if clashes := folders & names:
        raise Clash(f"{min(clashes)!r} would be a file and a folder at once; choose another name", clashes)
