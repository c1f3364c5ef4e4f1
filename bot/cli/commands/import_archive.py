"""precedent import: reads thread archives into a store."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from shlex import quote
from typing import Any

from bot.cli.commands.learn import learn_and_commit
from bot.cli.options import Arguments, json_option, option, path_argument, repo_option, semantic_option, store_option
from bot.cli.output import progress
from bot.domain.changes import Changes
from bot.domain.thread import Thread
from bot.errors import UserError
from bot.local_cache.sync import text_model
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.learn import LEARN_SECONDS, is_due
from bot.sources.archive_file import read_archive

BATCH_SIZE = 20_000
"""Threads per batch, which bounds the memory use for archives of any size."""


class ImportArguments(Arguments):
    files: list[Path] = path_argument("an archive", nargs="+")
    store: Path = store_option()
    repo: str | None = repo_option("the repository that the threads come from")
    semantic: Path | None = semantic_option()
    learn: bool = option("do not learn from them at the end", name="--no-learn", action="store_false")
    json: bool = json_option("counts")


def run_import(args: ImportArguments) -> object:
    started = time.monotonic()
    if args.store.exists() and not args.store.is_dir():
        raise UserError(f"{args.store} is a file: --store takes a folder")
    memory = Memory(FolderStore(args.store), repo=args.repo, embedder=text_model(args.semantic)).open()
    with progress("Checking the archives", None):  # read everything once before the first write
        last_positions = {thread.id: position for position, thread in _read_archives(args.files)}
    comments = 0
    with progress("Reading threads", len(last_positions)) as tick:
        latest = (thread for position, thread in _read_archives(args.files) if last_positions[thread.id] == position)
        while batch := tuple(islice(latest, BATCH_SIZE)):
            memory.stage(Changes(records=batch), tick)
            memory.commit(f"Import {len(batch)} threads")
            comments += sum(len(thread.comments) for thread in batch)
    if memory.embedder:
        with progress("Reading with the text model", memory.state.manifest.threads) as tick:
            memory.read_with_model(math.inf, tick)
            memory.commit("Index with a text model")
    counts: dict[str, Any] = {
        "threads": len(last_positions),
        "comments": comments,
        "in_store": memory.state.manifest.threads,
        "seconds": round(time.monotonic() - started, 2),
    }
    counts |= {"learned_from": _learn_if_due(memory, args)}
    has_learned = memory.has_learned
    memory.close()
    if args.json:
        return counts
    summary = "{threads:,} threads with {comments:,} comments read in {seconds} s; {in_store:,} in the store\n"
    hint = f"`precedent learn --store {quote(str(args.store))}` spends more time on it"
    learned = f"learned from {counts['learned_from']:,} threads; {hint}\n" if has_learned else ""
    return summary.format(**counts) + learned


def _learn_if_due(memory: Memory, args: ImportArguments) -> int:
    """Learn if it is due and wanted. Returns how many threads the store has learned from."""
    if args.learn and is_due(memory, unattended=True):
        learn_and_commit(memory, args.repo or memory.state.repo, LEARN_SECONDS)
    return memory.state.manifest.learned_from


def _read_archives(files: Iterable[Path]) -> Iterator[tuple[int, Thread]]:
    return enumerate(chain.from_iterable(map(read_archive, files)))
