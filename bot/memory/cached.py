"""The branch as a clone on this machine that is kept: the whole tip, so that it can be read without a network."""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.memory.branch import CLONE, BranchSnapshot, BranchStore
from bot.memory.git import TIP, Git
from bot.memory.git_errors import GitError, RefMissing
from bot.memory.own_remote import OwnRemote
from bot.memory.store import StoreError
from bot.memory.trees import all_files

_MOST_PACKS = 40
"""Fetches, each of which leaves a pack, after which the clone is made anew: it is one commit, and soon fetched."""

_PATIENCE = 60.0
_FRESH = "fresh.git"


class CachedBranch(BranchStore):
    """The tip of a branch in the folder ``keep``. ``fetches`` False: as it was last fetched, whatever it is by now.

    Whoever opens one holds `alone`.
    """

    def __init__(self, remote: OwnRemote, branch: str, keep: Path, *, fetches: bool) -> None:
        if fetches and len(list((keep / CLONE / "objects" / "pack").glob("*.pack"))) > _MOST_PACKS:
            shutil.rmtree(keep / CLONE, ignore_errors=True)
        super().__init__(remote, branch, keep=keep)
        self._fetches, self._remote, self._place = fetches, remote, keep / CLONE

    def _fetched(self) -> BranchSnapshot:
        """What is here stays until something better has been fetched: only a clone that is made anew shows whether it
        was this one that was damaged, or the remote that failed. So is one whose past the branch has given up."""
        past = self._past()
        try:
            found = self._fetched_into()
            if past in (None, self._past()):
                return found
        except GitError:
            if not self._fetches:
                raise
        fresh = self._place.with_name(_FRESH)
        shutil.rmtree(fresh, ignore_errors=True)
        with Git(fresh, self._remote) as git:
            git.init()
            with suppress(RefMissing):
                git.fetch_tip(self._ref, [])
        self._git.close()
        shutil.rmtree(self._place, ignore_errors=True)
        fresh.rename(self._place)
        return self._fetched_into()

    def _fetched_into(self) -> BranchSnapshot:
        if not self._git.exists():
            if not self._fetches:
                raise StoreError("the memory was never fetched here")
            self._git.init()
        if self._fetches:
            try:
                self._git.fetch_tip(self._ref, [])
            except RefMissing:
                return BranchSnapshot(self, None, {})
        commit = self._git.objects.commit(TIP)
        return BranchSnapshot(self, commit, all_files(self._git, commit.tree))


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Have the folder for this process alone; StoreError after a minute of waiting."""
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be written: {error.strerror}", "name another folder in XDG_CACHE_HOME"
        ) from error
    try:
        _wait(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _wait(descriptor: int, folder: Path) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(f"another process keeps {folder}: wait for it, or end it") from None
            time.sleep(0.05)
        except OSError as error:
            told = f"{folder} cannot be locked: {error.strerror}"
            raise StoreError(told, "name a folder of this machine in XDG_CACHE_HOME") from error
        else:
            return
