"""The store in a plain folder: the files themselves, readable by anyone, and a journal next to them."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from bot.errors import StoreError, TipMoved, UnreadableFile
from bot.files import (
    MAX_CHECKOUT_BYTES,
    MAX_DEPTH,
    MAX_FILES,
    check_folder,
    check_path,
    check_paths,
    copy_regular,
    find_symlink,
    flush,
    is_below,
    is_regular,
    lock_within,
    on_disk,
    read_regular,
    refuse_clashes,
    refuse_symlinks,
    replace,
)
from bot.git.checkout import CheckoutGit, NoAnswer, find_top
from bot.memory.store import Edits, Snapshot, check_flat, relative_to

STORE_FOLDER = ".store"
_LOCK_FLAGS = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}", re.ASCII)
_MAX_REVISION_BYTES = 15
_MAX_PLAN_BYTES = 32_000_000
"""Maximum size of a plan of MAX_FILES files."""

_HIDDEN = frozenset({STORE_FOLDER, ".git"})
_KEPT_REVISIONS = 32
_LOCK_TIMEOUT = 60.0


class Journal:
    """The journal of the store in ``root``. Callers hold `lock` around everything else."""

    def __init__(self, root: Path) -> None:
        self._root, self._folder = root, root / STORE_FOLDER
        self._changes = self._folder / "changes"

    @contextmanager
    def lock(self, *, exclusive: bool) -> Iterator[None]:
        """Keep writers out, and with ``exclusive`` readers too. Raises StoreError after waiting one minute.

        Reading makes no lock file: it goes on without a lock if there is none yet, or if this account cannot write.
        """
        self._refuse_foreign()
        if not exclusive and not (self._folder / "lock").is_file():
            yield
            return
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._folder / "lock", _LOCK_FLAGS, 0o666)
        except OSError:
            if exclusive:
                with on_disk(f"write in {self._root}"):
                    raise
            yield
            return
        try:
            if not lock_within(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH, _LOCK_TIMEOUT):
                raise StoreError(f"another program keeps {self._root} locked; let it finish, then try again")
            yield
        finally:
            os.close(descriptor)

    def revision(self) -> int | None:
        """The number of the newest state: 0 for files that this store never wrote, None if there are no files."""
        stored = read_regular(self._folder / "revision", _MAX_REVISION_BYTES)
        if stored is None:
            return (
                0 if self._root.is_dir() and any(entry.name != STORE_FOLDER for entry in self._root.iterdir()) else None
            )
        if not _NUMBER.fullmatch(os.fsdecode(stored)):
            raise StoreError(f"cannot tell the revision of {self._root}; remove {self._folder}")
        return int(stored)

    def record(self, number: int, edits: Edits) -> None:
        """Turn the newest state into state ``number``, with all of ``edits`` or, if anything fails, none of them."""
        with on_disk(f"write in {self._root}"):
            self._commit(number, edits)
            self._apply(number)

    def finish(self) -> None:
        """Complete a write whose writer died after the commit, and remove one that was not committed."""
        with on_disk(f"write in {self._root}"):
            for leftover in self._changes.glob(".*"):
                _remove(leftover)
            for number in self._numbers():
                if number > (self.revision() or 0):
                    self._apply(number)

    def clear(self) -> None:
        """Discard all earlier states."""
        with on_disk(f"write in {self._root}"):
            for number in self._numbers():
                _remove(self._changes / str(number))

    def files_at(self, revision: int) -> dict[str, Path | None]:
        """Where to find the files that later writes changed, as they were at ``revision``; None for absent files.

        Raises TipMoved when the old files are gone after many later writes.
        """
        numbers = [number for number in self._numbers() if number > revision]
        if len(numbers) != max([revision, self.revision() or 0, *numbers]) - revision:
            raise TipMoved(f"state {revision} of {self._root} is no longer kept")
        files: dict[str, Path | None] = {}
        for number in numbers:
            for index, (path, brings) in enumerate(self._plan(number)):
                files.setdefault(path, self._earlier_file(number, index, path, brings=brings))
        return files

    def _earlier_file(self, number: int, index: int, path: str, *, brings: bool) -> Path | None:
        old, new = self._path(number, "old", index), self._path(number, "new", index)
        if _has_file(old):
            return old
        is_in_place = not brings or _has_file(new)  # the writer died, or there was nothing to delete
        return self._root / path if is_in_place else None

    def _commit(self, number: int, edits: Edits) -> None:
        staged = self._changes / f".{number}"
        for folder in ("new", "old"):
            (staged / folder).mkdir(parents=True)
        for index, content in enumerate(edits.values()):
            if isinstance(content, bytes):
                (staged / "new" / str(index)).write_bytes(content)
            elif content is not None:
                shutil.copyfile(content, staged / "new" / str(index))
        plan = [[path, content is not None] for path, content in edits.items()]
        (staged / "plan.json").write_text(json.dumps(plan), "ascii")
        flush([*(staged / "new").iterdir(), staged / "plan.json", staged / "new", staged])
        staged.rename(self._changes / str(number))
        flush([self._changes])

    def _apply(self, number: int) -> None:
        steps = sorted(enumerate(self._plan(number)), key=lambda step: step[1][1])  # deletions first make room
        for index, (path, brings) in steps:
            target, new, old = self._root / path, self._path(number, "new", index), self._path(number, "old", index)
            if brings and not _has_file(new):
                continue
            refuse_symlinks(self._root, path)
            if is_regular(target) and not _has_file(old):
                os.link(target, old, follow_symlinks=False)
            if brings:
                target.parent.mkdir(parents=True, exist_ok=True)
                new.replace(target)
            else:
                target.unlink(missing_ok=True)
                self._prune(target.parent)
        replace(self._folder / "revision", b"%d" % number)
        for old_number in self._numbers():
            if old_number <= number - _KEPT_REVISIONS:
                _remove(self._changes / str(old_number))

    def _prune(self, folder: Path) -> None:
        while folder != self._root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

    def _plan(self, number: int) -> list[tuple[str, bool]]:
        """The steps of a write: each path, and whether it gets a new file. Raises StoreError for a plan that
        this program would never write, as anybody may have put it there."""
        write_folder = self._changes / str(number)
        for folder in (write_folder, write_folder / "new", write_folder / "old"):
            self._refuse_unless(folder, stat.S_IFDIR)
        try:
            plan = json.loads(read_regular(write_folder / "plan.json", _MAX_PLAN_BYTES) or b"")
            steps = {check_path(path): brings is True for path, brings in plan}
        except (ValueError, TypeError, AttributeError, RecursionError, StoreError) as error:
            raise StoreError(f"{write_folder / 'plan.json'} is damaged ({error!s:.120}); {self._remedy}") from error
        if len(steps) != len(plan) or len(steps) > MAX_FILES:
            raise StoreError(f"{write_folder / 'plan.json'} is damaged; {self._remedy}")
        return list(steps.items())

    @property
    def _remedy(self) -> str:
        return f"remove {self._folder}"

    def _refuse_foreign(self) -> None:
        """Raise StoreError for a journal that this program did not make, or that came with a checkout."""
        for path in (self._folder, self._changes):
            self._refuse_unless(path, stat.S_IFDIR)
        for name in ("lock", "revision"):
            self._refuse_unless(self._folder / name, stat.S_IFREG)
        if self._is_tracked:
            raise StoreError(f"{self._folder} is tracked by git, and may hold anybody's changes; {self._remedy}")

    def _refuse_unless(self, path: Path, kind: int) -> None:
        with suppress(OSError):
            if stat.S_IFMT(path.lstat().st_mode) != kind:
                expected = "folder" if kind == stat.S_IFDIR else "regular file"
                raise StoreError(f"{path} is not the {expected} that this program makes; {self._remedy}")

    @cached_property
    def _is_tracked(self) -> bool:
        top = find_top(self._root) if self._folder.is_dir() else None
        if top is None:
            return False
        try:
            return bool(CheckoutGit(top).run("ls-files", "-z", "--", str(self._root.resolve() / STORE_FOLDER)).stdout)
        except NoAnswer:
            return False

    def _path(self, number: int, kind: str, index: int) -> Path:
        return self._changes / str(number) / kind / str(index)

    def _numbers(self) -> list[int]:
        names = (entry.name for entry in self._changes.iterdir()) if self._changes.is_dir() else ()
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def _has_file(file: Path) -> bool:
    """Whether the journal has this file. Raises StoreError for anything but a regular file, such as a link."""
    if not os.path.lexists(file):
        return False
    if not is_regular(file):
        raise StoreError(f"{file} is not the regular file that this program makes; remove {file.parents[3]}")
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


class FolderSnapshot:
    """One state of the folder. Files that later writes replaced are read from the journal.

    After many writes the journal no longer keeps them; reading then raises TipMoved.
    """

    def __init__(self, root: Path, journal: Journal, revision: int | None, checkouts: list[Path]) -> None:
        self.revision = "" if revision is None else str(revision)
        self._root, self._journal, self._number, self._checkouts = root, journal, revision, checkouts

    def read(self, paths: Iterable[str]) -> dict[str, bytes]:
        checked_paths = check_paths(paths)
        contents: dict[str, bytes | None] = {}
        faults: dict[str, str] = {}
        with self._journal.lock(exclusive=False):
            for path, file in self._file_paths(checked_paths).items():
                try:
                    contents[path] = read_regular(file)
                except UnreadableFile as error:
                    faults[path] = str(error)
        if faults:
            raise UnreadableFile(next(iter(faults.values())), faults)
        return {path: content for path, content in contents.items() if content is not None}

    def sizes(self, paths: Iterable[str]) -> dict[str, int]:
        with self._journal.lock(exclusive=False):
            files = self._file_paths(check_paths(paths))
            return {path: file.lstat().st_size for path, file in files.items() if is_regular(file)}

    def twins(self, paths: Iterable[str]) -> frozenset[str]:  # noqa: ARG002 - only reading would show them
        return frozenset()

    def paths(self, prefix: str) -> list[str]:
        folder = check_folder(prefix)
        if self._number is None:
            return []
        with self._journal.lock(exclusive=False):
            earlier = self._journal.files_at(self._number)
            unchanged = {path for path in _files(self._root, folder) if path not in earlier}
            restored = {path for path, file in earlier.items() if file and is_regular(file) and is_below(path, folder)}
            return sorted(unchanged | restored)

    def foreign_files(self, prefix: str) -> list[str]:
        """In the present state: all but regular files directly in ``prefix``, or ``prefix`` itself if not a folder."""
        folder = check_folder(prefix)
        top = self._root / folder
        if top.is_symlink() or (top.exists() and not top.is_dir()):
            return [folder]
        entries = _entries(self._root, folder)
        return sorted(path for path, is_file in entries if not is_file or "/" in relative_to(path, folder))

    def checkout(self, prefix: str) -> Path:
        """A folder with copies of the files of ``prefix`` that fit into MAX_CHECKOUT_BYTES.

        Copies, not hard links: a program that writes to a linked file would silently change the store, and copying
        30 MB takes about 15 ms.
        """
        folder = check_folder(prefix)
        names = [check_flat(path, folder) for path in self.paths(prefix)]
        with on_disk("write a working copy"):
            target = Path(tempfile.mkdtemp(prefix="precedent-"))
            self._checkouts.append(target)
            with self._journal.lock(exclusive=False):
                self._refuse_foreign(folder)
                remaining = MAX_CHECKOUT_BYTES
                for path, file in self._file_paths(names).items():
                    remaining -= copy_regular(file, target / relative_to(path, folder), remaining)
        return target

    def _file_paths(self, paths: Iterable[str]) -> dict[str, Path]:
        if self._number is None:
            return {}
        earlier = self._journal.files_at(self._number)
        files = {path: earlier.get(path, self._root / path) for path in paths}
        for path in {path.rpartition("/")[0]: path for path in files}.values():
            refuse_symlinks(self._root, path)
        return {path: file for path, file in files.items() if file}

    def _refuse_foreign(self, folder: str) -> None:
        refuse_symlinks(self._root, f"{folder}/")
        if (self._root / folder).is_dir():
            entries = (self._root / folder).iterdir()
            irregular = [file for file in entries if file.is_symlink() or not (file.is_file() or file.is_dir())]
            if irregular:
                raise StoreError(f"{min(irregular)} is not a regular file; remove it from the store")


class FolderStore:
    """The tree in the folder ``root``. It need not exist yet, and may already contain files: a clone of the branch.

    Reading leaves no traces, so it may see part of the folder's very first write.
    """

    def __init__(self, root: Path) -> None:
        self._root = Path(root).absolute()
        self._journal = Journal(self._root)
        self._checkouts: list[Path] = []

    def close(self) -> None:
        while self._checkouts:
            shutil.rmtree(self._checkouts.pop(), ignore_errors=True)

    def open(self, want: Iterable[str] = ()) -> FolderSnapshot:
        """The newest state; ``want`` makes no difference here."""
        for name in want:
            check_folder(name)
        with self._journal.lock(exclusive=False):
            return self._snapshot(self._journal.revision())

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> FolderSnapshot:  # noqa: ARG002 - a folder has no history
        assert isinstance(base, FolderSnapshot)
        check_paths(edits)
        with self._journal.lock(exclusive=True):
            self._journal.finish()
            newest = self._snapshot(self._journal.revision())
            if newest.revision != base.revision:
                raise TipMoved(f"{self._root} is at revision {newest.revision!r}, not at {base.revision!r}")
            changes = {path: content for path, content in edits.items() if self._differs(path, content)}
            number = int(base.revision or 0) + bool(changes)
            if changes:
                added = {path for path, content in changes.items() if content is not None}
                refuse_clashes(added.union(path for path in _files(self._root, "") if path not in changes))
                self._journal.record(number, changes)
            if squash:
                self._journal.clear()
        return self._snapshot(number) if changes else base

    def _snapshot(self, revision: int | None) -> FolderSnapshot:
        return FolderSnapshot(self._root, self._journal, revision, self._checkouts)

    def _differs(self, path: str, content: bytes | Path | None) -> bool:
        refuse_symlinks(self._root, path)
        target = self._root / path
        if content is None:
            return os.path.lexists(target)
        if isinstance(content, Path) and not is_regular(content):
            raise StoreError(f"the new content of {path} is not there: it must be a regular file")
        size = len(content) if isinstance(content, bytes) else content.lstat().st_size
        if not is_regular(target) or target.lstat().st_size != size:
            return True
        new = content if isinstance(content, bytes) else read_regular(content, size)
        return read_regular(target, size) != new


def _files(root: Path, folder: str) -> Iterator[str]:
    return (path for path, is_file in _entries(root, folder) if is_file)


def _entries(root: Path, folder: str) -> Iterator[tuple[str, bool]]:
    """The paths of all entries below ``folder`` except folders, and whether each is a regular file. Links are not
    followed."""
    waiting, count = [] if find_symlink(root, folder) else [folder], 0
    while waiting:
        parent = waiting.pop()
        with suppress(OSError), os.scandir(root / parent) as entries:
            for entry in entries:
                path, count = f"{parent}/{entry.name}" if parent else entry.name, count + 1
                if count > MAX_FILES:
                    raise StoreError(f"{root} has more than {MAX_FILES:,} files; this program never writes that many")
                if not entry.is_dir(follow_symlinks=False):
                    yield path, entry.is_file(follow_symlinks=False)
                elif path not in _HIDDEN and path.count("/") < MAX_DEPTH:
                    waiting.append(path)
