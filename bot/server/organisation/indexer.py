"""Brings the changes of runs into the organisation's index, under one queue key for each installation.

lease → rows of the outbox → the memory branch → the index → the rows are deleted. Each step may be repeated.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from bot.domain.organisation import OrganisationThread
from bot.domain.thread import Thread, ThreadId
from bot.errors import PrecedentError, WorldError
from bot.github.errors import NotInstalled, Unauthorised
from bot.memory.memory import Memory
from bot.memory.paths import RECORD_FOLDER
from bot.organisation.documents import MemorySource, all_threads, changed_threads
from bot.pipeline.setup import branch_store, read_settings
from bot.pipeline.site import fetch_settings
from bot.recall.candidates import OrganisationUnavailable
from bot.server.dependencies import RunDependencies, RunLog, repository_site
from bot.server.log import catch_error, run_guarded
from bot.server.model import Lease, RepositoryKey
from bot.server.organisation.guard import COOLDOWN_SECONDS, GuardedCandidates
from bot.server.storage.branches import thread_numbers
from bot.server.storage.outbox import MAX_ROW_THREADS, IndexChange, installation_of, queue_key
from bot.server.storage.queue import RENEWAL_INTERVAL
from bot.settings.yaml_file import CONFIG_PATH

WORK_SECONDS = 30.0
"""Seconds of work after which the lease is given back: other installations wait too."""

HANDOVER_SECONDS = 60.0
"""Seconds until another worker may take over, if this one has no index because its options differ."""

COMPACT_AFTER = 20
"""Writes of this process to an index after which it is compacted."""

log = logging.getLogger(__name__)


def index_changes(lease: Lease, run: RunDependencies) -> None:
    """Work on the changes of an installation whose key is leased."""
    if run.organisation is None:
        run.inbox.give_back(lease, HANDOVER_SECONDS)
    else:
        OrganisationIndexer(installation_of(lease.key), run).work(lease)


class OrganisationIndexer:
    """Works on the changes of one installation, in one lease."""

    def __init__(self, installation: int, run: RunDependencies) -> None:
        assert run.organisation
        self._installation = installation
        self._run = run
        self._guard = run.organisation
        self._changes = run.inbox.changes

    @property
    def _index(self) -> GuardedCandidates:
        return self._guard.index(self._installation)

    def work(self, lease: Lease) -> None:
        """Take changes until none is due or the time is over. Raises WorldError without the database."""
        until, pause = time.monotonic() + WORK_SECONDS, 0.0
        self._repair()
        while time.monotonic() < until and not self._run.stop.is_set():
            changes = self._changes.take(self._installation)
            if not changes:
                break
            error = catch_error(lambda changes=changes: self._apply(changes))  # type: ignore[misc]
            if isinstance(error, OrganisationUnavailable):  # the guard reports it
                pause = COOLDOWN_SECONDS
                break
            if error:
                log.warning(
                    "a memory could not be read for the organisation's index; it will be read again: %s",
                    error,
                    extra={"repository": changes[0].repository.text},
                )
        pause = pause or self._compact()
        self._run.inbox.finish_changes(lease, self._installation, round(1000 * pause))

    def _compact(self) -> float:
        """Compact the index if much was written, or its files hold what was forgotten. Returns how long to rest."""
        is_purge = self._changes.is_purge_due(self._installation)
        if not is_purge and self._guard.write_count(self._installation) < COMPACT_AFTER:
            return 0.0
        failed = catch_error(lambda: self._index.compact(purges=is_purge)) is not None
        if is_purge:
            self._changes.note_purged(self._installation, failed=failed)
        return COOLDOWN_SECONDS if failed else 0.0

    def _repair(self) -> None:
        """Replace a damaged or missing index with an empty one; its content is read again, part by part."""
        is_damaged = self._guard.is_damaged(self._installation)
        is_wanted = self._changes.claim_repair(self._installation) if is_damaged else self._is_missing()
        if is_wanted and catch_error(lambda: self._index.rebuild(())) is None:
            self._changes.note_repaired(self._installation)
            if is_damaged:
                log.warning("the organisation's index was damaged: it is being rebuilt from the memory branches")
            else:
                log.info("the organisation's index is missing: it is being built from the memory branches")

    def _is_missing(self) -> bool:
        """Whether there is certainly no index."""
        try:
            return not self._index.exists()
        except OrganisationUnavailable:  # the guard reports it
            return False

    def _apply(self, changes: Sequence[IndexChange]) -> None:
        repository = changes[0].repository
        if self._changes.is_gone(repository) or not self._is_included(repository):
            self._changes.note_forgotten(self._installation)
            self._index.delete(repository.number)
            self._changes.mark_done(changes)
            return
        with open_memory(repository, self._run) as (memory, source):
            if any(each.threads is None for each in changes):
                self._index.delete(repository.number)
                self._changes.divide(changes, all_thread_numbers(memory))
                return
            ids = sorted({number for each in changes for number in each.threads or ()})
            gone: list[ThreadId] = []
            for start in range(0, len(ids), MAX_ROW_THREADS):
                threads = list(changed_threads(ids[start : start + MAX_ROW_THREADS], memory, source))
                gone_ids = [each.id for each in threads if each.is_gone]
                stored = memory.state.records(gone_ids)  # a hidden thread is not forgotten
                if any(not isinstance(stored.get(each), Thread) for each in gone_ids):  # more than unvouched for
                    self._changes.note_forgotten(self._installation)
                self._index.upsert(threads)
                gone += gone_ids
        self._run.indexed(repository, ids, gone)
        self._changes.mark_done(changes)

    def _is_included(self, repository: RepositoryKey) -> bool:
        return self._run.options.scope.includes(self._run.inbox.installations.repository(repository).name)


def all_thread_numbers(memory: Memory) -> list[int]:
    """The numbers of all threads in a memory, including those that are gone."""
    return sorted(thread_numbers(memory.state.base.all_paths(RECORD_FOLDER)))


@contextmanager
def open_memory(repository: RepositoryKey, run: RunDependencies) -> Iterator[tuple[Memory, MemorySource]]:
    """Open a repository's memory as it is on its branch now, read-only. Raises WorldError and other expected errors.

    Its revision is a time before the branch is fetched: a later revision has read a newer state.
    """
    revision = run.inbox.now()
    try:
        grant = run.tokens.grant(repository, revision)
        site = repository_site(grant, run)
        loaded = read_settings(site, fetch_settings(site, CONFIG_PATH), RunLog())
    except (NotInstalled, Unauthorised):
        run.tokens.forget(repository)
        raise
    source = MemorySource(repository.number, grant.name, revision, run.options.server_url)
    with run.clones.borrow(repository) as keep:
        memory = Memory(branch_store(site, loaded, keep), repo=grant.name)
        memory.hidden = loaded.settings.ignore.hidden
        try:
            yield memory.open(), source
        finally:
            memory.close()


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
    changes = run.inbox.changes
    progress = _Progress()
    with _hold_lease(installation, run, renewal_interval) as (lease, lost):
        keys = changes.indexed_repositories(installation)
        run.organisation.index(installation).rebuild(_read_threads(keys, run, progress, tick, lost))
        changes.request_reread(list(progress.unread))
        run.inbox.finish_changes(lease, installation)
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
            name = run.inbox.installations.repository(key).name or key.text
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
