"""The contract of a store: a tree of files with one newest state, replaced by compare-and-swap.

`folder_store` (a plain folder) and `branch_store` (a git branch) implement it, and pass
`tests/memory/test_store_contract.py`. `ReadOnlyStore`, for dry runs, shows what would be written and writes nothing.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

from bot.errors import StoreError
from bot.files import check_folder, check_path, is_below, on_disk

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


class EditedSnapshot:
    """A snapshot as if these edits had been written."""

    def __init__(self, base: Snapshot, edits: Mapping[str, bytes | None]) -> None:
        self.revision = base.revision
        self._base, self._edits = base, edits

    def edited(self, edits: Mapping[str, bytes | None]) -> EditedSnapshot:
        """This state with more edits: still one layer, as a read goes through all layers and a long run saves often."""
        return EditedSnapshot(self._base, {**self._edits, **edits})

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        requested = list(paths)
        contents = self._base.read(path for path in requested if path not in self._edits)
        return contents | {path: new for path in requested if (new := self._edits.get(path)) is not None}

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        requested = list(paths)
        sizes = self._base.sizes(path for path in requested if path not in self._edits)
        return sizes | {path: len(new) for path in requested if (new := self._edits.get(path)) is not None}

    def twins(self, paths: Iterable[str]) -> frozenset[str]:
        return self._base.twins(path for path in paths if path not in self._edits)

    def paths(self, prefix: str) -> list[str]:
        folder = check_folder(prefix)
        kept = {path for path in self._base.paths(prefix) if path not in self._edits}
        return sorted(kept | {path for path, new in self._edits.items() if new is not None and is_below(path, folder)})

    def foreign_files(self, prefix: str) -> list[str]:
        return [path for path in self._base.foreign_files(prefix) if path not in self._edits]

    def checkout(self, prefix: str) -> Path:
        target = self._base.checkout(f"empty-{secrets.token_hex(8)}")
        with on_disk("write a working copy"):
            for path, content in self.read(self.paths(prefix)).items():
                (target / path.rpartition("/")[2]).write_bytes(content)
        return target


class ReadOnlyStore:
    """Reads from another store and writes nothing; only the snapshots that `write` returns show the edits."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self._store.open(want)

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:  # noqa: ARG002 - nothing is written
        contents = {path: new.read_bytes() if isinstance(new, Path) else new for path, new in edits.items()}
        return base.edited(contents) if isinstance(base, EditedSnapshot) else EditedSnapshot(base, contents)

    def close(self) -> None:
        self._store.close()
