"""The store in a plain folder: the files as anyone can read them, and a journal beside them."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Self

from bot.memory.bounds import MAX_CHECKOUT, MAX_DEPTH, MAX_FILES
from bot.memory.disk import copy_regular, detour, is_regular, on_disk, refuse_detour, regular_bytes
from bot.memory.journal import FOLDER, Journal
from bot.memory.paths import below, checked_all, checked_folder, refuse_clashes
from bot.memory.store import Edits, Moved, Snapshot, StoreError, UnreadableFile

_HIDDEN = frozenset({FOLDER, ".git"})


class FolderSnapshot:
    """One state of the folder; what later writes replaced is read from the journal.

    Many writes later the journal keeps it no more; reading then raises Moved.
    """

    def __init__(self, store: FolderStore, revision: str) -> None:
        self.revision = revision
        self._store = store

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        """The contents of these files; a symlink or a pipe among them, or one of more than MAX_FILE bytes, raises
        UnreadableFile."""
        return self._store.contents(self.revision, checked_all(paths))

    def paths(self, prefix: str) -> list[str]:
        """The regular files below ``prefix``, sorted."""
        return sorted(self._store.names(self.revision, checked_folder(prefix)))

    def strangers(self, prefix: str) -> list[str]:
        """What `checkout` refuses of ``prefix``, as it is now: all but regular files directly in it."""
        return self._store.strangers(checked_folder(prefix))

    def checkout(self, prefix: str) -> Path:
        """A folder with copies of the files of ``prefix``; it lasts until the store is closed.

        Copies, not hard links: a program that writes into a linked file would change the store behind everybody's
        back, and 30 MB are copied in about 15 ms.
        """
        return self._store.copied(self.revision, checked_folder(prefix))


class FolderStore:
    """The tree in the folder ``root``, which need not exist yet, and may hold files already: a clone of the branch.

    ``leaves_traces`` False: reading makes no file to lock, and so sees half a write where it is somebody's first one.
    """

    def __init__(self, root: Path, *, leaves_traces: bool = True) -> None:
        self._root = Path(root).absolute()
        self._journal = Journal(self._root, leaves_traces=leaves_traces)
        self._checkouts: list[Path] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folders that were checked out."""
        while self._checkouts:
            shutil.rmtree(self._checkouts.pop(), ignore_errors=True)

    def open(self, want: Iterable[str] = ()) -> FolderSnapshot:
        """The newest state; ``want`` costs and saves nothing here."""
        for name in want:
            checked_folder(name)
        with self._journal.locked(alone=False):
            return FolderSnapshot(self, self._revision())

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> FolderSnapshot:  # noqa: ARG002 - a folder has no history
        """``base`` plus ``edits`` as the newest state; ``base`` itself when that would change nothing.

        With ``squash`` what stood there before goes from the journal too.
        """
        assert isinstance(base, FolderSnapshot)
        checked_all(edits)
        with self._journal.locked(alone=True):
            self._journal.finish()
            if self._revision() != base.revision:
                raise Moved(f"{self._root} is at revision {self._revision()!r}, not at {base.revision!r}")
            changes = {path: content for path, content in edits.items() if self._differs(path, content)}
            number = int(base.revision or 0) + bool(changes)
            if changes:
                added = {path for path, content in changes.items() if content is not None}
                refuse_clashes(added.union(path for path in self._files("") if path not in changes))
                self._journal.record(number, changes)
            if squash:
                self._journal.clear()
        return FolderSnapshot(self, str(number)) if changes else base

    def contents(self, revision: str, paths: list[str]) -> dict[str, bytes]:
        """What these files held at ``revision``."""
        with self._journal.locked(alone=False):
            return _read_all(self._places(revision, paths))

    def names(self, revision: str, folder: str) -> set[str]:
        """The regular files below ``folder`` at ``revision``."""
        if not revision:
            return set()
        with self._journal.locked(alone=False):
            earlier = self._journal.before(int(revision))
            now = {path for path in self._files(folder) if path not in earlier}
            return now | {path for path, file in earlier.items() if file and is_regular(file) and below(path, folder)}

    def copied(self, revision: str, folder: str) -> Path:
        """A new folder with the files that ``folder`` held at ``revision``, those that fit into MAX_CHECKOUT bytes."""
        names = sorted(self.names(revision, folder))
        nested = next((path for path in names if "/" in path[len(folder) + 1 if folder else 0 :]), None)
        if nested:
            raise StoreError(f"{nested} lies in a sub-folder where only files belong; remove it from the store")
        with on_disk("write a working copy"):
            target = Path(tempfile.mkdtemp(prefix="precedent-"))
            self._checkouts.append(target)
            with self._journal.locked(alone=False):
                self._refuse_odd(folder)
                left = MAX_CHECKOUT
                for path, file in self._places(revision, names).items():
                    left -= copy_regular(file, target / path.rpartition("/")[2], left)
        return target

    def _places(self, revision: str, paths: Iterable[str]) -> dict[str, Path]:
        if not revision:
            return {}
        earlier = self._journal.before(int(revision))
        places = {path: earlier.get(path, self._root / path) for path in paths}
        for path in {path.rpartition("/")[0]: path for path in places}.values():
            refuse_detour(self._root, path)
        return {path: file for path, file in places.items() if file}

    def _differs(self, path: str, content: bytes | Path | None) -> bool:
        refuse_detour(self._root, path)
        target = self._root / path
        if content is None:
            return os.path.lexists(target)
        if isinstance(content, Path) and not is_regular(content):
            raise StoreError(f"the new content of {path} is not there: it must be a regular file")
        size = len(content) if isinstance(content, bytes) else content.lstat().st_size
        if not is_regular(target) or target.lstat().st_size != size:
            return True
        new = content if isinstance(content, bytes) else regular_bytes(content, size)
        return regular_bytes(target, size) != new

    def strangers(self, folder: str) -> list[str]:
        """The paths of what is no regular file directly in ``folder``; that of ``folder`` when it is no folder."""
        top = self._root / folder
        if top.is_symlink() or (top.exists() and not top.is_dir()):
            return [folder]
        start = len(folder) + 1 if folder else 0
        return sorted(path for path, is_file in self._entries(folder) if not is_file or "/" in path[start:])

    def _refuse_odd(self, folder: str) -> None:
        refuse_detour(self._root, f"{folder}/")
        if not (self._root / folder).is_dir():
            return
        entries = (self._root / folder).iterdir()
        odd = [file for file in entries if file.is_symlink() or not (file.is_file() or file.is_dir())]
        if odd:
            raise StoreError(f"{min(odd)} is not a regular file; remove it from the store")

    def _files(self, folder: str) -> Iterator[str]:
        return (path for path, is_file in self._entries(folder) if is_file)

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        """The paths below ``folder`` of all but folders, and whether each is a regular file; no link is followed."""
        waiting, count = [] if detour(self._root, folder) else [folder], 0
        while waiting:
            where = waiting.pop()
            with suppress(OSError), os.scandir(self._root / where) as entries:
                for entry in entries:
                    path, count = f"{where}/{entry.name}" if where else entry.name, count + 1
                    if count > MAX_FILES:
                        raise StoreError(
                            f"{self._root} has more than {MAX_FILES:,} files; this program never wrote that"
                        )
                    if not entry.is_dir(follow_symlinks=False):
                        yield path, entry.is_file(follow_symlinks=False)
                    elif path not in _HIDDEN and path.count("/") < MAX_DEPTH:
                        waiting.append(path)

    def _revision(self) -> str:
        number = self._journal.revision()
        return "" if number is None else str(number)


def _read_all(places: Mapping[str, Path]) -> dict[str, bytes]:
    found: dict[str, bytes | None] = {}
    faults: dict[str, str] = {}
    for path, file in places.items():
        try:
            found[path] = regular_bytes(file)
        except UnreadableFile as error:
            faults[path] = str(error)
    if faults:
        raise UnreadableFile(next(iter(faults.values())), faults)
    return {path: content for path, content in found.items() if content is not None}
