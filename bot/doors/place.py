"""Where the memory is that somebody asks: a folder, or the branch of the repository that they work in."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from bot.doors.cache import cache_folder, name_of
from bot.doors.located import FETCHED, GLANCE, Place, Where
from bot.doors.own_settings import early_at
from bot.glance.file import TABLES, Damaged, connect
from bot.glance.glance import Glance
from bot.memory.checkout_git import top_of
from bot.reading.words import ANALYSER_VERSION

if TYPE_CHECKING:
    from bot.memory.memory import Memory

FRESH = 60.0
"""Seconds after a fetch in which nobody fetches again."""

_MANIFEST = "manifest.json"


@contextmanager
def opened(where: Where) -> Iterator[Place]:
    """The memory there, brought up to date. Raises UserError for what was named wrongly, WorldError for faults."""
    place = _of_store(where, where.store) if where.store else _of_repository(where)
    place = place._replace(progress=where.progress)
    try:
        yield place
    finally:
        place.glance.close()


@contextmanager
def whole(place: Place) -> Iterator[Memory]:
    """All of this memory, with its records, as it was when the place was opened. Loads what a glance does without."""
    from bot.doors.filling import memory_of

    with memory_of(place) as memory:
        yield memory


def nowhere(missing: str, top: Path | None = None) -> Place:
    """A place without a memory, and why."""
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.executescript(TABLES)
    return Place(Glance(database), top=top, missing=missing)


def _of_store(where: Where, store: Path) -> Place:
    manifest = store / _MANIFEST
    cache = cache_folder() / "stores" / name_of(str(store.absolute()))
    stamp = _stamp(manifest)
    glance = None if where.refresh or not stamp else _known(cache / GLANCE, stamp)
    if glance is None:
        from bot.doors.filling import fill_from_store

        glance = fill_from_store(store, cache / GLANCE, lambda: _stamp(manifest), where.progress)
    top = top_of(where.folder)
    return Place(glance, where.repo or glance.fact("repo"), "", top, glance.fact("notes"), "", cache, store)


def _stamp(manifest: Path) -> str:
    """Tells two states of a store apart: each write replaces its manifest."""
    with suppress(OSError):
        found = manifest.stat()
        return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
    return ""


def _of_repository(where: Where) -> Place:
    from bot.doors import remotes  # starts git, which a store needs not

    top = top_of(where.folder)
    found = remotes.of_repository(where.repo) if where.repo else remotes.of_checkout(top)
    if isinstance(found, str):
        return nowhere(found, top)
    branch = where.branch or early_at(None if where.repo else top).branch
    cache = cache_folder() / "repositories" / name_of(f"{found.url} {branch}")
    note = _told(cache)
    if not where.offline and (where.refresh or _age(cache) > FRESH):
        from bot.doors.filling import fill_from_branch

        note = fill_from_branch(found.url, branch, cache, where.progress)
    glance = _known(cache / GLANCE)
    if glance is None:
        missing = note or f"the memory of {found.url} was never fetched here: leave out --offline once"
        whose = "" if found.name in ("", "origin") else f"; the remote {found.name} counts in this checkout"
        return nowhere(f"{missing}{whose}", top)
    told = "\n".join(filter(None, (note, glance.fact("notes"))))
    return Place(glance, found.repo, found.home, top, told, "", cache, is_of_checkout=not where.repo)


def _known(path: Path, stamp: str = "") -> Glance | None:
    """The glance that is here, None where it cannot be used, or is not of this state (any, where that is empty)."""
    if not path.exists():
        return None
    try:
        glance = Glance(connect(path))
    except Damaged:
        return None
    try:
        if glance.fact("analyser") == ANALYSER_VERSION and glance.fact("stamp") and stamp in ("", glance.fact("stamp")):
            return glance
    except sqlite3.DatabaseError:
        pass
    glance.close()
    return None


def _told(cache: Path) -> str:
    """What was to be said when the memory was last fetched, or tried to be: it still holds."""
    try:
        return (cache / FETCHED).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _age(cache: Path) -> float:
    """Seconds since the memory was last fetched into this folder, or tried to be."""
    try:
        return abs(time.time() - (cache / FETCHED).stat().st_mtime)
    except OSError:
        return float("inf")
