"""The contract of a store: a tree of files with one newest state, replaced by compare-and-swap.

`folder.py` (a plain folder) and `branch.py` (a git branch) are the two implementations; both pass
`tests/memory/test_store_contract.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from bot.errors import WorldError

Edits = Mapping[str, bytes | Path | None]
"""Path inside the store → new content (bytes, or a file to take it from), None to delete it."""


class StoreError(WorldError):
    """The store could not be read or written; the message says what to do."""


class UnreadableFile(StoreError):
    """There is something else where files of ours belong: a link, a pipe, a file of any size. ``paths`` says where."""

    def __init__(self, cause: str, paths: Iterable[str]) -> None:
        super().__init__(cause)
        self.paths = frozenset(paths)


class Clash(StoreError):
    """A write would make files that are the folders of others. ``paths`` says which."""

    def __init__(self, cause: str, paths: Iterable[str]) -> None:
        super().__init__(cause)
        self.paths = frozenset(paths)


class Moved(Exception):
    """Somebody else wrote first: take the newest snapshot, apply the changes again, and write again."""


class Snapshot(Protocol):
    """One state of the tree; reading it never sees later writes.

    Paths use ``/``, are relative, and hold no empty part, ``.`` or ``..``.
    """

    revision: str
    """Identifies the state (a commit id; a counter), empty when nothing has been stored yet."""

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files, fetched together; absent ones are left out. Raises UnreadableFile."""
        ...

    def paths(self, prefix: str) -> list[str]:
        """The files below the folder ``prefix`` ("" for all), sorted."""
        ...

    def strangers(self, prefix: str) -> list[str]:
        """What is at or below ``prefix`` and `checkout` refuses, sorted. Deleting it by its path mends that."""
        ...

    def checkout(self, prefix: str) -> Path:
        """A writable folder with the files below ``prefix`` as they are in this state, for programs that need files.

        Regular files only: a symlink or a sub-folder in the store raises StoreError. Writing there changes nothing
        in the store until the files are handed to ``Store.write``.
        """
        ...


class Store(Protocol):
    """Where the tree is kept."""

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        """The newest state; an empty one where nothing is stored yet.

        ``want`` names files or folders that will be read, so that a remote store can fetch them in one go.
        """
        ...

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """Replace ``base`` by itself plus ``edits``, or raise Moved when ``base`` is no longer the newest state.

        Raises Clash where a name would be that of a file and of a folder. With ``squash`` nothing of earlier states is
        kept, even where there is nothing to change; a server that forbids that raises a StoreError, and nothing is
        written.
        """
        ...

    def close(self) -> None:
        """Give back temporary files."""
        ...
