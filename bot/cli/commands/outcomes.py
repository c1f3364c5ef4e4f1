"""precedent outcomes: how the closed threads of a store ended."""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Callable, Iterable
from contextlib import closing

from bot.cli.commands.answer import outcome_json
from bot.cli.output import progress, show, table
from bot.domain.thread import Outcome, OutcomeKind, Thread, ThreadId
from bot.domain.thread_json import clean
from bot.errors import UserError
from bot.local_cache.sync import open_store
from bot.memory.memory import Memory
from bot.questions.requests import MAX_NAME, keys_of
from bot.reading.endings.outcome import outcome
from bot.recall.answer import known_endings

COLUMNS = "id\tending\tconfidence\tpoints at\tstated in\twords"


def run_outcomes(given: argparse.Namespace) -> object:
    """How closed threads ended, in the order of their ids or in that of ``--ids``.

    Ids that are unknown or open are told on stderr, and make the command fail once the others are printed.
    """
    with closing(open_store(given.store)) as memory:
        repo = given.repo or memory.state.repo
        threads, faults = (_closed(memory), []) if given.ids is None else _named(memory, given.ids, repo or "")
        if given.sample is not None:
            threads = _sampled(threads, given.sample, given.seed)
        with progress("Reading endings", len(threads)) as tick:
            read = {thread.id: _read(thread, repo, tick) for thread in threads}
        endings = known_endings(read, memory)
    found = [(thread, endings[thread.id]) for thread in threads]
    result: object = table(COLUMNS, _lines(found), header=given.header)
    if given.json:
        result = [{"id": thread.id, "outcome": outcome_json(ending, thread.closed_at)} for thread, ending in found]
    if not faults:
        return result
    show(result)
    for fault in faults[:-1]:
        print(f"precedent outcomes: {fault}", file=sys.stderr)
    raise UserError(faults[-1])


def _read(thread: Thread, repo: str | None, tick: Callable[[int], None]) -> Outcome:
    tick(1)
    return outcome(thread, repo)


def _closed(memory: Memory) -> list[Thread]:
    with progress("Reading threads", memory.state.manifest.threads) as tick:
        return [one for one in memory.state.every_record(tick) if isinstance(one, Thread) and one.is_closed]


def _named(memory: Memory, ids: str, repo: str) -> tuple[list[Thread], list[str]]:
    """The closed threads with these ids, and a line on each of the others."""
    asked = [text for text in map(str.strip, ids.split(",")) if text]
    if not asked:
        raise UserError("--ids names no thread: give ids with commas between them, such as 12,15")
    keys = {text: keys_of(text, repo) for text in asked}
    records = memory.records({key for each in keys.values() for key in each})
    threads: dict[ThreadId, Thread] = {}
    faults = []
    for text in asked:
        found = next((record for record in map(records.get, keys[text]) if isinstance(record, Thread)), None)
        if found is None:
            faults.append(f"no thread {clean(text)[:MAX_NAME]} in this store")
        elif not found.is_closed:
            faults.append(f"{found.id} is open: it has no ending")
        else:
            threads[found.id] = found
    return list(threads.values()), faults


def _sampled(threads: list[Thread], size: int, seed: int) -> list[Thread]:
    """So many of them at random, in their own order; the same ones for the same seed."""
    chosen = random.Random(seed).sample(range(len(threads)), min(size, len(threads)))
    return [threads[index] for index in sorted(chosen)]


def _lines(found: Iterable[tuple[Thread, Outcome]]) -> Iterable[str]:
    """A line for each: id, kind, confidence, what it points at, the comment that states it, its words."""
    for thread, ending in found:
        other = f"#{ending.duplicate_of}" if isinstance(ending.duplicate_of, int) else ending.duplicate_of
        pointed = other or ending.fix or ending.release or "-"
        place = "-" if ending.comment is None else f"comment {ending.comment}"
        kind = "-" if ending.kind is OutcomeKind.UNKNOWN else ending.kind.value
        words = " ".join(ending.quote.split()) or ", ".join(ending.evidence) or "-"
        yield f"{thread.id}\t{kind}\t{ending.confidence:.2f}\t{pointed}\t{place}\t{words}"
