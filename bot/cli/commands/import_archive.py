"""precedent import: reads thread archives into a store."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any

from bot.cli.commands.learn import taught
from bot.cli.output import progress
from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.errors import UserError
from bot.local_cache.sync import text_model
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.learn import EVENT_SECONDS, is_due
from bot.sources.archive_file import read_archive

IMPORTED = 20_000
"""Threads that are written at a time: an archive of any size takes the memory of so many."""


def run_import(given: argparse.Namespace) -> object:
    started = time.monotonic()
    if given.store.exists() and not given.store.is_dir():
        raise UserError(f"{given.store} is a file: --store takes a folder")
    memory = Memory(FolderStore(given.store), repo=given.repo, embedder=text_model(given.semantic)).open()
    with progress("Checking the archives", None):  # all is read once before any is written
        last = {thread.id: place for place, thread in _in_archives(given.files)}
    comments = 0
    with progress("Reading threads", len(last)) as tick:
        fit = (thread for place, thread in _in_archives(given.files) if last[thread.id] == place)
        while batch := tuple(islice(fit, IMPORTED)):
            memory.stage(Changes(records=batch), tick)
            memory.commit(f"Import {len(batch)} threads")
            comments += sum(len(thread.comments) for thread in batch)
    if memory.index.lacks_vectors:
        with progress("Reading with the text model", memory.state.manifest.threads) as tick:
            memory.rebuild_index(tick)
            memory.commit("Index with a text model")
    counts: dict[str, Any] = {
        "threads": len(last),
        "comments": comments,
        "in_store": memory.state.manifest.threads,
        "seconds": round(time.monotonic() - started, 2),
    }
    counts |= {"learned_from": _learned_from(memory, given)}
    has_learned = memory.has_learned
    memory.close()
    if given.json:
        return counts
    told = "{threads:,} threads with {comments:,} comments read in {seconds} s; {in_store:,} in the store\n"
    longer = f"`precedent learn --store {quote(str(given.store))}` takes more time for it"
    learned = f"learned from {counts['learned_from']:,} threads; {longer}\n" if has_learned else ""
    return told.format(**counts) + learned


def _learned_from(memory: Memory, given: argparse.Namespace) -> int:
    """Learn if it is due and wanted; from how many threads the store has learned."""
    if given.learn and is_due(memory, calm=True):
        taught(memory, given.repo or memory.state.repo, EVENT_SECONDS)
    return memory.state.manifest.learned_from


def _in_archives(files: Iterable[Path]) -> Iterator[tuple[int, Thread]]:
    return enumerate(chain.from_iterable(map(read_archive, files)))
