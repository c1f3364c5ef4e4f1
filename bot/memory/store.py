"""The contract of a store: a tree of files with one newest state, replaced by compare-and-swap.

`folder_store` (a plain folder) and `branch_store` (a git branch) implement it, and pass
`tests/memory/test_store_contract.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from bot.errors import StoreError
from bot.files import check_path

Edits = Mapping[str, bytes | Path | None]
"""Path inside the store → new content (bytes, or a file to copy it from), None to delete it."""


class Snapshot(Protocol):
    """One state of the tree; reading it never sees later writes.

    Paths use ``/``, are relative, and contain no empty part, ``.`` or ``..``.
    """

    revision: str
    """Identifies the state: a commit id or a counter, empty when nothing has been stored yet."""

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files, fetched together; missing ones are left out.

        Raises UnreadableFile for anything but a regular file of at most MAX_FILE_BYTES.
        """

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        """The bytes of each of these files that is a regular file, fetched together."""

    def twins(self, paths: Iterable[str]) -> frozenset[str]:
        """Those of these files that are known to have the content of another one of them, without reading any."""

    def paths(self, prefix: str) -> list[str]:
        """The regular files below the folder ``prefix`` ("" for all), sorted."""

    def foreign_files(self, prefix: str) -> list[str]:
        """The paths at or below ``prefix`` that `checkout` refuses, sorted. Deleting them fixes that."""

    def checkout(self, prefix: str) -> Path:
        """A writable copy of the files below ``prefix``, for programs that need files. It lasts until the store closes.

        A symlink or a sub-folder in the store raises StoreError. Changes reach the store when the files are passed to
        `Store.write`.
        """


class Store(Protocol):
    """Where the tree is kept."""

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        """The newest state, empty if nothing is stored yet.

        ``want`` names files or folders that will be read, so that a remote store can fetch them in one go.
        """

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        """Apply ``edits`` to ``base``. Raises TipMoved when ``base`` is no longer the newest state.

        Returns ``base`` itself when that would change nothing. Raises PathClash when a name would belong to both a file
        and a folder. With ``squash`` all earlier states are discarded, even when there is nothing to change; if the
        server forbids that, a StoreError is raised and nothing is written.
        """

    def close(self) -> None:
        """Remove temporary files."""


def relative_to(path: str, folder: str) -> str:
    """The path relative to a folder that contains it."""
    return path[len(folder) + 1 if folder else 0 :]


def check_flat(path: str, folder: str) -> str:
    """Return ``path`` if it is directly in the folder. Raises StoreError if it is deeper."""
    if "/" in relative_to(check_path(path), folder):
        raise StoreError(f"{path} lies in a sub-folder where only files belong; remove it from the store")
    return path
