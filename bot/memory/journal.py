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
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bot.memory.disk import flush, on_disk, replace
from bot.memory.store import Edits, Moved, StoreError

FOLDER = ".store"
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
        may_lock = self._leaves_traces or (self._own / "lock").is_file()
        if not alone and not (self._root.is_dir() and may_lock):
            yield
            return
        try:
            self._own.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._own / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
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
        try:
            return int((self._own / "revision").read_text("ascii"))
        except (FileNotFoundError, NotADirectoryError):
            return 0 if self._root.is_dir() and any(entry.name != FOLDER for entry in self._root.iterdir()) else None
        except (OSError, ValueError) as error:
            raise StoreError(f"cannot tell the revision of {self._root}: {error}; remove {self._own}") from error

    def record(self, number: int, edits: Edits) -> None:
        """Make the state ``number`` of the one before it: all of ``edits`` or, if anything fails on the way, none."""
        with on_disk(f"write in {self._root}"):
            self._commit(number, edits)
            self._apply(number)

    def finish(self) -> None:
        """Complete a write whose writer died after it counted, and forget one that did not come so far."""
        with on_disk(f"write in {self._root}"):
            for leftover in self._changes.glob(".*"):
                shutil.rmtree(leftover)
            for number in self._numbers():
                if number > (self.revision() or 0):
                    self._apply(number)

    def before(self, revision: int) -> dict[str, Path | None]:
        """Where the files that later writes touched are found as they were at ``revision``; None: they were not there.

        Moved, when so much was written since that the old files are not kept any more.
        """
        numbers = [number for number in self._numbers() if number > revision]
        if numbers != list(range(revision + 1, max([revision, self.revision() or 0, *numbers]) + 1)):
            raise Moved(f"state {revision} of {self._root} is not kept any more")
        found: dict[str, Path | None] = {}
        for number in numbers:
            for at, (path, brings) in enumerate(self._plan(number)):
                found.setdefault(path, self._earlier(number, at, path, brings=brings))
        return found

    def _earlier(self, number: int, at: int, path: str, *, brings: bool) -> Path | None:
        old, new = self._place(number, "old", at), self._place(number, "new", at)
        if old.exists():
            return old
        waits = not brings or new.exists()  # the writer died, or a deletion found nothing to delete
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
            if brings and not new.exists():
                continue
            if target.exists() and not target.is_symlink() and not old.exists():
                os.link(target, old)
            if brings:
                target.parent.mkdir(parents=True, exist_ok=True)
                new.replace(target)
            else:
                target.unlink(missing_ok=True)
                self._prune(target.parent)
        replace(self._own / "revision", b"%d" % number)
        for kept in self._numbers():
            if kept <= number - _KEPT:
                shutil.rmtree(self._changes / str(kept))

    def _prune(self, folder: Path) -> None:
        while folder != self._root and folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()
            folder = folder.parent

    def _plan(self, number: int) -> list[tuple[str, bool]]:
        plan = json.loads((self._changes / str(number) / "plan.json").read_text("ascii"))
        return [(path, brings) for path, brings in plan]

    def _place(self, number: int, kind: str, at: int) -> Path:
        return self._changes / str(number) / kind / str(at)

    def _numbers(self) -> list[int]:
        names = (entry.name for entry in self._changes.iterdir()) if self._changes.is_dir() else ()
        return sorted(int(name) for name in names if name.isdecimal())


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
