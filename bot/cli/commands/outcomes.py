"""precedent outcomes: how the closed threads of a store ended."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from contextlib import closing
from pathlib import Path

from bot.cli.arguments import number
from bot.cli.commands.answer import outcome_json
from bot.cli.options import (
    MAX_COUNT,
    Alternatives,
    Arguments,
    header_option,
    json_option,
    option,
    repo_option,
    store_option,
)
from bot.cli.output import progress, show, table, warn
from bot.domain.thread import Outcome, OutcomeKind, Thread, ThreadId
from bot.domain.thread_json import storable
from bot.errors import UserError
from bot.local_cache.sync import open_store
from bot.local_cache.threads import record_named
from bot.memory.memory import Memory
from bot.questions.requests import MAX_NAME
from bot.reading.endings.outcome import outcome
from bot.recall.answer import known_endings

COLUMNS = "id\tending\tconfidence\tpoints at\tstated in\twords"


_SELECTION = Alternatives()


class OutcomesArguments(Arguments):
    store: Path = store_option()
    ids: str | None = option(
        "these threads, separated by commas (default: all closed)", among=_SELECTION, metavar="ID,…"
    )
    sample: int | None = option("N random closed threads", among=_SELECTION, type=number(1, MAX_COUNT), metavar="N")
    seed: int = option("random seed (default 1)", type=number(0, 999_999_999), default=1, metavar="S")
    repo: str | None = repo_option("the repository, for links and full references")
    json: bool = json_option("the outcomes")
    header: bool = header_option()


def run_outcomes(args: OutcomesArguments) -> object:
    """How closed threads ended, in the order of their ids or of ``--ids``.

    Unknown ids and open threads are reported on stderr, and the command fails after printing the others.
    """
    with closing(open_store(args.store)) as memory:
        repo = args.repo or memory.state.repo
        threads, faults = (
            (_closed_threads(memory), []) if args.ids is None else _named_threads(memory, args.ids, repo or "")
        )
        if args.sample is not None:
            threads = _sample(threads, args.sample, args.seed)
        with progress("Reading endings", len(threads)) as tick:
            own_outcomes = {thread.id: _read_outcome(thread, repo, tick) for thread in threads}
        endings = known_endings(own_outcomes, memory, repo)
    pairs = [(thread, endings[thread.id]) for thread in threads]
    result: object = table(COLUMNS, _rows(pairs), header=args.header)
    if args.json:
        result = [{"id": thread.id, "outcome": outcome_json(ending, thread.closed_at)} for thread, ending in pairs]
    if not faults:
        return result
    show(result)
    for fault in faults[:-1]:
        warn(f"precedent outcomes: {fault}")
    raise UserError(faults[-1])


def _read_outcome(thread: Thread, repo: str | None, tick: Callable[[int], None]) -> Outcome:
    tick(1)
    return outcome(thread, repo)


def _closed_threads(memory: Memory) -> list[Thread]:
    with progress("Reading threads", memory.state.manifest.threads) as tick:
        closed = (one for one in memory.state.every_record(tick) if isinstance(one, Thread) and one.is_closed)
        return [thread.without(memory.hidden_people) for thread in closed]


def _named_threads(memory: Memory, ids: str, repo: str) -> tuple[list[Thread], list[str]]:
    """The closed threads with these ids, and one error line for each other id."""
    names = [text for text in map(str.strip, ids.split(",")) if text]
    if not names:
        raise UserError("--ids names no thread: give ids with commas between them, such as 12,15")
    threads: dict[ThreadId, Thread] = {}
    faults = []
    for text in names:
        thread = record_named(memory, text, repo)
        if thread is None:
            faults.append(f"no thread {storable(text)[:MAX_NAME]} in this store")
        elif not thread.is_closed:
            faults.append(f"{thread.id} is open: it has no ending")
        else:
            threads[thread.id] = thread
    return list(threads.values()), faults


def _sample(threads: list[Thread], size: int, seed: int) -> list[Thread]:
    """A random sample in the original order, reproducible by the seed."""
    indices = random.Random(seed).sample(range(len(threads)), min(size, len(threads)))
    return [threads[index] for index in sorted(indices)]


def _rows(pairs: Iterable[tuple[Thread, Outcome]]) -> Iterable[tuple[object, ...]]:
    """One row per thread: id, kind, confidence, target, the comment that states it, its words."""
    for thread, ending in pairs:
        duplicate = f"#{ending.duplicate_of}" if isinstance(ending.duplicate_of, int) else ending.duplicate_of
        target = duplicate or ending.fix or ending.release or "-"
        source = "-" if ending.comment is None else f"comment {ending.comment}"
        kind = "-" if ending.kind is OutcomeKind.UNKNOWN else ending.kind.value
        words = ending.quote or ", ".join(ending.evidence) or "-"
        yield thread.id, kind, f"{ending.confidence:.2f}", target, source, words
