"""Rebuilds an installation's index from all its memory branches, while servers keep running.

It holds the lease of the key under which changes are indexed. Changes that come meanwhile wait in the outbox and are
brought into the new index afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bot.domain.organisation import OrganisationThread
from bot.errors import PrecedentError, WorldError
from bot.organisation.documents import all_threads
from bot.server.dependencies import RunDependencies
from bot.server.log import run_guarded
from bot.server.model import Lease, RepositoryKey
from bot.server.organisation.changes import OrganisationChanges
from bot.server.organisation.indexer import open_memory
from bot.server.storage.installations import Installations
from bot.server.storage.outbox import queue_key
from bot.server.storage.queue import RENEWAL_INTERVAL

ACQUIRE_INTERVAL = 1.0
"""Seconds between two tries to get the lease; a worker gives it back within a minute."""

ACQUIRE_TIMEOUT = 300.0
"""Seconds after which the rebuild gives up waiting for the lease."""


@dataclass(frozen=True, slots=True)
class RebuildResult:
    """What the new index holds. ``unread`` are repositories whose memory could not be read, with the reason: they are
    read again by the workers."""

    installation: int
    repositories: int = 0
    threads: int = 0
    unread: tuple[tuple[str, str], ...] = ()


@dataclass(slots=True)
class _Progress:
    repositories: int = 0
    threads: int = 0
    unread: dict[RepositoryKey, tuple[str, str]] = field(default_factory=dict)


def rebuild_installation(
    installation: int,
    run: RunDependencies,
    tick: Callable[[int], object] = lambda steps: None,  # noqa: ARG005
    renewal_interval: float = RENEWAL_INTERVAL,
) -> RebuildResult:
    """Make a new index of an installation; ``tick`` is called for each repository.

    Raises OrganisationUnavailable, also if the lease is lost, and WorldError if another process keeps it; then the old
    index stays.
    """
    assert run.organisation
    changes = OrganisationChanges(run.inbox.database, run.inbox.queue, run.now)
    progress = _Progress()
    with _hold_lease(installation, run, renewal_interval) as (lease, lost):
        keys = changes.indexed_repositories(installation)
        run.organisation.index(installation).rebuild(_read_threads(keys, run, progress, tick, lost))
        changes.request_reread(list(progress.unread))
        changes.finish(lease, installation)
    return RebuildResult(installation, progress.repositories, progress.threads, tuple(sorted(progress.unread.values())))


def _read_threads(
    keys: Sequence[RepositoryKey],
    run: RunDependencies,
    progress: _Progress,
    tick: Callable[[int], object],
    lost: threading.Event,
) -> Iterator[OrganisationThread]:
    """The documents of all these memories. One that cannot be read is left out."""
    for key in keys:
        tick(1)
        try:
            for thread in _read_memory(key, run):
                if lost.is_set():
                    break
                progress.threads += 1
                yield thread
            progress.repositories += 1
        except PrecedentError as error:
            name = Installations(run.inbox.database, run.inbox.now).repository(key).name or key.text
            progress.unread[key] = (name, str(error))
        if lost.is_set():
            raise WorldError("another process has started writing to this index: run the command again")


def _read_memory(key: RepositoryKey, run: RunDependencies) -> Iterator[OrganisationThread]:
    with open_memory(key, run) as (memory, source):
        yield from all_threads(memory, source)


@contextmanager
def _hold_lease(
    installation: int, run: RunDependencies, renewal_interval: float
) -> Iterator[tuple[Lease, threading.Event]]:
    """Hold the lease of an installation's changes within the block; the event is set when it may be lost."""
    queue, lost, ended = run.inbox.queue, threading.Event(), threading.Event()
    until = time.monotonic() + ACQUIRE_TIMEOUT
    while (lease := queue.claim_key(run.inbox.worker, queue_key(installation))) is None:
        if time.monotonic() > until or run.stop.wait(ACQUIRE_INTERVAL):
            raise WorldError("a worker still holds this index: check that the workers are healthy")

    def renew() -> None:
        while not ended.wait(renewal_interval):
            if run_guarded(lambda: lost.set() if queue.renew(run.inbox.worker, [lease.id]) else None):
                lost.set()

    thread = threading.Thread(target=renew, name="renewal", daemon=True)
    thread.start()
    try:
        yield lease, lost
    except BaseException:
        run_guarded(lambda: run.inbox.give_back(lease, 0))
        raise
    finally:
        ended.set()
        thread.join()
