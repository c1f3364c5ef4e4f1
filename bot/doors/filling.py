"""Brings what this machine keeps of a memory up to date, and opens all of it where a glance is too little."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path

from bot.doors.located import FETCHED, GLANCE, Place, Progress, no_progress
from bot.doors.stores import open_store
from bot.glance.file import fact, made, note
from bot.glance.fill import fill, steps
from bot.glance.glance import Glance
from bot.memory.cached import CachedBranch, alone
from bot.memory.disk import on_disk
from bot.memory.formats import ForeignFormat
from bot.memory.git_errors import GitError
from bot.memory.memory import Memory
from bot.memory.own_remote import OwnRemote
from bot.memory.readonly import ReadOnlyStore
from bot.memory.store import StoreError
from bot.reading.words import ANALYSER_VERSION


def fill_from_store(store: Path, path: Path, stamp: Callable[[], str], progress: Progress = no_progress) -> Glance:
    """The glance of a store, as it is now. UserError where there is no store, or nothing in it."""
    now = stamp()
    with closing(open_store(store, leaves_traces=False)) as memory, alone(path.parent):
        return _filled(path, memory, now, progress)


def fill_from_branch(url: str, branch: str, cache: Path, progress: Progress = no_progress) -> str:
    """Fetch the branch and make the glance in ``cache`` hold it; says what somebody should know of that.

    Where the remote cannot be reached, the glance stays as it is, and that is said.
    """
    with alone(cache):
        try:
            told = _fetch(url, branch, cache, progress)
        except ForeignFormat:
            raise  # what was fetched before is not what there is to know
        except StoreError as error:
            if not (cache / GLANCE).exists():
                if isinstance(error, GitError):
                    return f"the memory could not be fetched: {error}"
                raise
            told = f"The memory is as it was last fetched: {error}"
        with on_disk(f"write in {cache}"):
            (cache / FETCHED).write_text(told, encoding="utf-8", errors="replace")
        return told


def _fetch(url: str, branch: str, cache: Path, progress: Progress) -> str:
    with closing(CachedBranch(OwnRemote(url), branch, cache, fetches=True)) as store:
        snapshot = store.open()
        if not snapshot.revision:
            (cache / GLANCE).unlink(missing_ok=True)
            return (
                f"there is no branch {branch!r} at {url}: the Action makes it when it first runs"
                " (docs/getting-started.md); --store names a folder instead"
            )
        database = made(cache / GLANCE)
        is_known = fact(database, "stamp") == snapshot.revision and fact(database, "analyser") == ANALYSER_VERSION
        database.close()
        if not is_known:
            memory = Memory(ReadOnlyStore(store)).open()
            _filled(cache / GLANCE, memory, snapshot.revision, progress).close()
    with closing(made(cache / GLANCE)) as database:
        note(database, "fetched", datetime.now(UTC).isoformat(timespec="seconds"))
    return ""


def _filled(path: Path, memory: Memory, stamp: str, progress: Progress) -> Glance:
    database = made(path)
    if fact(database, "analyser") not in ("", ANALYSER_VERSION):
        database.close()
        path.unlink(missing_ok=True)
        database = made(path)
    try:
        with progress("Reading the memory", steps(memory)) as tick:
            fill(database, memory, stamp, tick)
    except BaseException:
        database.close()
        raise
    return Glance(database)


@contextmanager
def memory_of(place: Place) -> Iterator[Memory]:
    """The memory that a place was made of, to be read: nothing is fetched for it, and nothing written."""
    if place.store:
        with closing(open_store(place.store, leaves_traces=False)) as memory:
            yield memory
        return
    if place.cache is None:
        raise StoreError(place.missing or "there is no memory")
    with alone(place.cache), closing(CachedBranch(OwnRemote("/"), "precedent", place.cache, fetches=False)) as store:
        yield Memory(ReadOnlyStore(store), repo=place.repo or None).open()
