"""Finds and opens a memory: a folder, or the branch of the repository of the checkout."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.git.checkout import remote_of_checkout, remote_of_repository, top_of
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS, empty_database, open_database
from bot.local_cache.local_memory import (
    CACHE_FILE,
    FETCHED_FILE,
    LocalMemory,
    MemoryOptions,
    cache_folder,
    cache_name,
    early_settings_at,
)
from bot.reading.analyzer import ANALYSER_VERSION

FRESH = 60.0
"""Minimum seconds between fetches."""

_MANIFEST = "manifest.json"


@contextmanager
def open_memory(where: MemoryOptions) -> Iterator[LocalMemory]:
    """Open a memory and bring its cache up to date. Raises UserError for a wrong argument, WorldError for faults."""
    place = _of_store(where, where.store) if where.store else _of_repository(where)
    place = place._replace(progress=where.progress, warn=where.warn)
    try:
        yield place
    finally:
        place.local_cache.close()


def no_memory(missing: str, top: Path | None = None) -> LocalMemory:
    """Return an empty memory with the reason why there is none."""
    return LocalMemory(LocalCache(empty_database(CARDS)), top=top, missing=missing)


def _of_store(where: MemoryOptions, store: Path) -> LocalMemory:
    manifest = store / _MANIFEST
    cache = cache_folder() / "stores" / cache_name(str(store.absolute()))
    stamp = _stamp(manifest)
    cards = None if where.refresh or not stamp else _known(cache / CACHE_FILE, stamp)
    if cards is None:
        from bot.local_cache.sync import fill_from_store

        cards = fill_from_store(store, cache / CACHE_FILE, lambda: _stamp(manifest), where.progress)
    top = top_of(where.folder)
    return LocalMemory(cards, where.repo or cards.fact("repo"), "", top, cards.fact("notes"), "", cache, store)


def _stamp(manifest: Path) -> str:
    """A text that changes with the store: each write replaces its manifest."""
    with suppress(OSError):
        found = manifest.stat()
        return f"{found.st_ino}-{found.st_size}-{found.st_mtime_ns}"
    return ""


def _of_repository(where: MemoryOptions) -> LocalMemory:
    top = top_of(where.folder)
    found = remote_of_repository(where.repo) if where.repo else remote_of_checkout(top)
    if isinstance(found, str):
        return no_memory(found, top)
    branch = where.branch or early_settings_at(None if where.repo else top).branch
    cache = cache_folder() / "repositories" / cache_name(f"{found.url} {branch}")
    note = _told(cache)
    if not where.offline and (where.refresh or _age(cache) > FRESH):
        from bot.local_cache.sync import fill_from_branch

        note = fill_from_branch(found.url, branch, cache, where.progress)
    cards = _known(cache / CACHE_FILE)
    if cards is None:
        missing = note or f"the memory of {found.url} was never fetched here: leave out --offline once"
        whose = "" if found.name in ("", "origin") else f"; the remote {found.name} counts in this checkout"
        return no_memory(f"{missing}{whose}", top)
    told = "\n".join(filter(None, (note, cards.fact("notes"))))
    return LocalMemory(cards, found.repo, found.home, top, told, "", cache, is_of_checkout=not where.repo)


def _known(path: Path, stamp: str = "") -> LocalCache | None:
    """The existing cache, or None if it is not of this version and state (any state if ``stamp`` is empty)."""
    if not path.exists():
        return None
    cards = LocalCache(open_database(path, CARDS))
    if cards.fact("analyser") == ANALYSER_VERSION and cards.fact("stamp") and stamp in ("", cards.fact("stamp")):
        return cards
    cards.close()
    return None


def _told(cache: Path) -> str:
    """The note of the last fetch, or attempt: it still applies."""
    try:
        return (cache / FETCHED_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _age(cache: Path) -> float:
    try:
        return abs(time.time() - (cache / FETCHED_FILE).stat().st_mtime)
    except OSError:
        return float("inf")
