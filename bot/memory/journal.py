"""The journal of a folder store: it makes a write of many files whole or nothing, and keeps what stood there before.

It lives in ``.store/`` beside the files: ``lock``; ``revision``, a counter; and ``changes/N/``, the write that led to
revision N, with ``plan.json``, ``new/I`` (what it brings, moved into place one by one) and ``old/I`` (what stood
there before). ``changes/N`` appears by one rename. From then on the write counts: where its writer died, the next one
finishes it first.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from bot.memory.bounds import MAX_FILES
from bot.memory.checkout_git import CheckoutGit, NoAnswer, top_of
from bot.memory.disk import flush, is_regular, on_disk, refuse_detour, regular_bytes, replace
from bot.memory.paths import checked
from bot.memory.store import Edits, Moved, StoreError

FOLDER = ".store"
_LOCK = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NUMBER = re.compile(r"0|[1-9][0-9]{0,14}", re.ASCII)
_MOST_REVISION = 15
_MOST_PLAN = 32_000_000
"""Bytes of a plan of as many files as there may be."""

_KEPT = 32
_PATIENCE = 60.0


class Journal:
    """The journal of the store in ``root``. Callers hold `locked` around everything else."""

    def __init__(self, root: Path, *, leaves_traces: bool = True) -> None:
        self._root, self._own = root, root / FOLDER
        self._changes = self._own / "changes"
        self._leaves_traces = leaves_traces

    @contextmanager
    def locked(self, *, alone: bool) -> Iterator[None]:
        """Keep writers out, and with ``alone`` readers too; StoreError after a minute of waiting.

        Where this account cannot write, it reads without a lock; and where no traces are left, unless there is one.
        """
        self._refuse_odd()
        may_lock = self._leaves_traces or (self._own / "lock").is_file()
        if not alone and not (self._root.is_dir() and may_lock):
            yield
            return
        try:
            self._own.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._own / "lock", _LOCK, 0o666)
        except OSError:
            if alone:
                with on_disk(f"write in {self._root}"):
                    raise
            yield
            return
        try:
            _wait(descriptor, fcntl.LOCK_EX if alone else fcntl.LOCK_SH, self._root)
            yield
        finally:
            os.close(descriptor)

    def revision(self) -> int | None:
        """The number of the newest state: 0 for files that this store never wrote, None where there are none."""
        told = regular_bytes(self._own / "revision", _MOST_REVISION)
        if told is None:
            return 0 if self._root.is_dir() and any(entry.name != FOLDER for entry in self._root.iterdir()) else None
        if not _NUMBER.fullmatch(os.fsdecode(told)):
            raise StoreError(f"cannot tell the revision of {self._root}; remove {self._own}")
        return int(told)

    def record(self, number: int, edits: Edits) -> None:
        """Make the state ``number`` of the one before it: all of ``edits`` or, if anything fails on the way, none."""
        with on_disk(f"write in {self._root}"):
            self._commit(number, edits)
            self._apply(number)

    def finish(self) -> None:
        """Complete a write whose writer died after it counted, and forget one that did not come so far."""
        with on_disk(f"write in {self._root}"):
            for leftover in self._changes.glob(".*"):
                _remove(leftover)
            for number in self._numbers():
                if number > (self.revision() or 0):
                    self._apply(number)

    def clear(self) -> None:
        """Keep no earlier state any more."""
        with on_disk(f"write in {self._root}"):
            for number in self._numbers():
                _remove(self._changes / str(number))

    def before(self, revision: int) -> dict[str, Path | None]:
        """Where the files that later writes touched are found as they were at ``revision``; None: they were not there.

        Moved, when so much was written since that the old files are not kept any more.
        """
        numbers = [number for number in self._numbers() if number > revision]
        if len(numbers) != max([revision, self.revision() or 0, *numbers]) - revision:
            raise Moved(f"state {revision} of {self._root} is not kept any more")
        found: dict[str, Path | None] = {}
        for number in numbers:
            for at, (path, brings) in enumerate(self._plan(number)):
                found.setdefault(path, self._earlier(number, at, path, brings=brings))
        return found

    def _earlier(self, number: int, at: int, path: str, *, brings: bool) -> Path | None:
        old, new = self._place(number, "old", at), self._place(number, "new", at)
        if _is_there(old):
            return old
        waits = not brings or _is_there(new)  # the writer died, or a deletion found nothing to delete
        return self._root / path if waits else None

    def _commit(self, number: int, edits: Edits) -> None:
        staged = self._changes / f".{number}"
        for folder in ("new", "old"):
            (staged / folder).mkdir(parents=True)
        for at, content in enumerate(edits.values()):
            if isinstance(content, bytes):
                (staged / "new" / str(at)).write_bytes(content)
            elif content is not None:
                shutil.copyfile(content, staged / "new" / str(at))
        plan = [[path, content is not None] for path, content in edits.items()]
        (staged / "plan.json").write_text(json.dumps(plan), "ascii")
        flush([*(staged / "new").iterdir(), staged / "plan.json", staged / "new", staged])
        staged.rename(self._changes / str(number))
        flush([self._changes])

    def _apply(self, number: int) -> None:
        steps = sorted(enumerate(self._plan(number)), key=lambda step: step[1][1])  # deletions first make room
        for at, (path, brings) in steps:
            target, new, old = self._root / path, self._place(number, "new", at), self._place(number, "old", at)
            if brings and not _is_there(new):
                continue
            refuse_detour(self._root, path)
            if is_regular(target) and not _is_there(old):
                os.link(target, old, follow_symlinks=False)
            if brings:
                target.parent.mkdir(parents=True, exist_ok=True)
                new.replace(target)
            else:
                target.unlink(missing_ok=True)
                self._prune(target.parent)
        replace(self._own / "revision", b"%d" % number)
        for kept in self._numbers():
            if kept <= number - _KEPT:
                _remove(self._changes / str(kept))

    def _prune(self, folder: Path) -> None:
        while folder != self._root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

    def _plan(self, number: int) -> list[tuple[str, bool]]:
        """What a write does: each path, and whether it brings a file. Others may have made it: StoreError for what this
        program never writes."""
        place = self._changes / str(number)
        for folder in (place, place / "new", place / "old"):
            self._refuse_unless(folder, stat.S_IFDIR)
        try:
            plan = json.loads(regular_bytes(place / "plan.json", _MOST_PLAN) or b"")
            steps = {checked(path): brings is True for path, brings in plan}
        except (ValueError, TypeError, AttributeError, RecursionError, StoreError) as error:
            raise StoreError(f"{place / 'plan.json'} is damaged ({error!s:.120}); {self._remedy}") from error
        if len(steps) != len(plan) or len(steps) > MAX_FILES:
            raise StoreError(f"{place / 'plan.json'} is damaged; {self._remedy}")
        return list(steps.items())

    @property
    def _remedy(self) -> str:
        return f"remove {self._own}"

    def _refuse_odd(self) -> None:
        """StoreError where the journal is not what this program makes, or came with a checkout."""
        for path in (self._own, self._changes):
            self._refuse_unless(path, stat.S_IFDIR)
        for name in ("lock", "revision"):
            self._refuse_unless(self._own / name, stat.S_IFREG)
        if self._is_tracked:
            raise StoreError(f"{self._own} is tracked by git, and may hold anybody's changes; {self._remedy}")

    def _refuse_unless(self, path: Path, kind: int) -> None:
        with suppress(OSError):
            if stat.S_IFMT(path.lstat().st_mode) != kind:
                what = "folder" if kind == stat.S_IFDIR else "regular file"
                raise StoreError(f"{path} is no {what}, as this program makes it; {self._remedy}")

    @cached_property
    def _is_tracked(self) -> bool:
        """Whether it is part of a checkout, as far as git says."""
        top = top_of(self._root) if self._own.is_dir() else None
        if top is None:
            return False
        try:
            return bool(CheckoutGit(top).run("ls-files", "-z", "--", str(self._root.resolve() / FOLDER)).stdout)
        except NoAnswer:
            return False

    def _place(self, number: int, kind: str, at: int) -> Path:
        return self._changes / str(number) / kind / str(at)

    def _numbers(self) -> list[int]:
        names = (entry.name for entry in self._changes.iterdir()) if self._changes.is_dir() else ()
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))


def _is_there(file: Path) -> bool:
    """Whether there is a file of the journal; StoreError for what is no regular file, such as a link."""
    if not os.path.lexists(file):
        return False
    if not is_regular(file):
        raise StoreError(f"{file} is no regular file, as this program makes it; remove {file.parents[3]}")
    return True


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def _wait(descriptor: int, kind: int, root: Path) -> None:
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise StoreError(f"another program keeps {root} locked; let it finish, then try again") from None
            time.sleep(0.005)
        else:
            return
