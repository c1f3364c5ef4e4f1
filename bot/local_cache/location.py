"""Finds and opens a memory: a folder, or the branch of the repository of the checkout."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bot.domain.hidden_people import HiddenPeople
from bot.git.checkout import find_top, remote_of_checkout, remote_of_repository
from bot.local_cache.cache import LocalCache
from bot.local_cache.database import CARDS_SCHEMA, empty_database, open_database
from bot.local_cache.local_memory import (
    CACHE_FILE,
    FETCHED_FILE,
    LocalMemory,
    MemoryOptions,
    cache_folder,
    cache_name,
    early_settings_at,
)

FETCH_INTERVAL = 60.0
"""Minimum seconds between fetches."""

_MANIFEST = "manifest.json"


@contextmanager
def open_memory(options: MemoryOptions) -> Iterator[LocalMemory]:
    """Open a memory and bring its cache up to date. Raises UserError for a wrong argument, WorldError for faults."""
    memory = _open_store(options, options.store) if options.store else _open_repository(options)
    memory = _with_settings(memory)._replace(progress=options.progress, warn=options.warn)
    try:
        yield memory
    finally:
        memory.local_cache.close()


def no_memory(missing: str, top: Path | None = None) -> LocalMemory:
    """Return an empty memory with the reason why there is none."""
    return LocalMemory(LocalCache(empty_database(CARDS_SCHEMA)), top=top, missing=missing)


def _open_store(options: MemoryOptions, store: Path) -> LocalMemory:
    manifest = store / _MANIFEST
    cache = cache_folder() / "stores" / cache_name(str(store.absolute()))
    stamp = _store_stamp(manifest)
    cards = None if options.refresh or not stamp else _existing_cache(cache / CACHE_FILE, stamp)
    if cards is None:
        from bot.local_cache.sync import fill_from_store

        cards = fill_from_store(store, cache / CACHE_FILE, lambda: _store_stamp(manifest), options.progress)
    top = find_top(options.folder)
    return LocalMemory(cards, options.repo or cards.fact("repo"), "", top, cache=cache, store=store)


def _with_settings(memory: LocalMemory) -> LocalMemory:
    """The memory with the hidden people and the phrases of questions in the settings of the checkout whose memory this
    is, else in those stored with it."""
    if memory.is_of_checkout:
        settings = early_settings_at(memory.top)
        people, questions = settings.people, settings.questions
    else:
        people, questions = tuple(memory.local_cache.fact("hidden").split()), ()
        with suppress(ValueError, TypeError):
            questions = tuple(map(str, json.loads(memory.local_cache.fact("questions"))))
    memory.local_cache.hidden = HiddenPeople(people)
    return memory._replace(questions=questions)


def _store_stamp(manifest: Path) -> str:
    """A text that changes with each write to the store, which replaces the manifest."""
    with suppress(OSError):
        status = manifest.stat()
        return f"{status.st_ino}-{status.st_size}-{status.st_mtime_ns}"
    return ""


def _open_repository(options: MemoryOptions) -> LocalMemory:
    top = find_top(options.folder)
    remote = remote_of_repository(options.repo) if options.repo else remote_of_checkout(top)
    if isinstance(remote, str):
        return no_memory(remote, top)
    branch = options.branch or early_settings_at(None if options.repo else top).branch
    cache = cache_folder() / "repositories" / cache_name(f"{remote.url} {branch}")
    note = _last_fetch_note(cache)
    if not options.offline and (options.refresh or _fetch_age(cache) > FETCH_INTERVAL):
        from bot.local_cache.sync import Checkout, fill_from_branch

        checkout = Checkout(top, remote.name) if top and remote.name and not options.repo else None
        note = fill_from_branch(remote.url, branch, cache, options.progress, checkout)
    cards = _existing_cache(cache / CACHE_FILE)
    if cards is None:
        missing = note or f"the memory of {remote.url} was never fetched here: leave out --offline once"
        remote_hint = "" if remote.name in ("", "origin") else f"; this checkout uses the remote {remote.name}"
        return no_memory(f"{missing}{remote_hint}", top)
    return LocalMemory(cards, remote.repo, remote.home, top, note, cache=cache, is_of_checkout=not options.repo)


def _existing_cache(path: Path, stamp: str = "") -> LocalCache | None:
    """The existing cache, or None if it is not of this state (any state if ``stamp`` is empty)."""
    if not path.exists():
        return None
    cards = LocalCache(open_database(path, CARDS_SCHEMA))
    if cards.fact("stamp") and stamp in ("", cards.fact("stamp")):
        return cards
    cards.close()
    return None


def _last_fetch_note(cache: Path) -> str:
    """The note of the last fetch or attempt, which still applies."""
    try:
        return (cache / FETCHED_FILE).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _fetch_age(cache: Path) -> float:
    try:
        return abs(time.time() - (cache / FETCHED_FILE).stat().st_mtime)
    except OSError:
        return float("inf")
