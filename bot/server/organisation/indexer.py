"""Brings the changes of runs into the organisation's index, under one queue key for each installation.

lease → rows of the outbox → the memory branch → the index → the rows are deleted. Each step may be repeated.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bot.domain.thread import Thread, ThreadId
from bot.github.errors import NotInstalled, Unauthorised
from bot.memory.memory import Memory
from bot.memory.paths import RECORD_FOLDER
from bot.organisation.documents import MemorySource, changed_threads
from bot.pipeline.setup import branch_store, read_settings
from bot.pipeline.site import fetch_settings
from bot.recall.candidates import OrganisationUnavailable
from bot.server.dependencies import RunDependencies, repository_site
from bot.server.log import catch_error, run_guarded
from bot.server.model import Lease, RepositoryKey
from bot.server.organisation.changed_threads import thread_numbers
from bot.server.organisation.changes import IndexChange, OrganisationChanges
from bot.server.organisation.guard import COOLDOWN_SECONDS, GuardedCandidates
from bot.server.run_log import RunLog
from bot.server.storage.installations import Installations
from bot.server.storage.outbox import MAX_ROW_THREADS
from bot.settings.yaml_file import CONFIG_PATH

WORK_SECONDS = 30.0
"""Seconds of work after which the lease is given back: other installations wait too."""

RETRY_SECONDS = 15.0
"""Seconds until a retry, after rows could not be read or deleted."""

HANDOVER_SECONDS = 60.0
"""Seconds until another worker may take over, if this one has no index because its options differ."""

COMPACT_AFTER = 20
"""Writes of this process to an index after which it is compacted."""

log = logging.getLogger(__name__)


def index_changes(installation: int, lease: Lease, run: RunDependencies) -> None:
    """Work on the changes of an installation whose key is leased. Never raises."""
    if run.organisation is None:
        run_guarded(lambda: run.inbox.give_back(lease, HANDOVER_SECONDS))
        return
    line = run_guarded(lambda: OrganisationIndexer(installation, run).work(lease))
    if line:
        log.error("changes could not be applied to the organisation's index: %s", line, extra={"key": lease.key})
        if line := run_guarded(lambda: run.inbox.give_back(lease, RETRY_SECONDS)):
            log.error("their lease could not be released; it will expire: %s", line, extra={"key": lease.key})


class OrganisationIndexer:
    """Works on the changes of one installation, in one lease."""

    def __init__(self, installation: int, run: RunDependencies) -> None:
        assert run.organisation
        self._installation = installation
        self._run = run
        self._guard = run.organisation
        self._changes = OrganisationChanges(run.inbox.database, run.inbox.queue, run.now)

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
        self._changes.finish(lease, self._installation, round(1000 * pause))

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
        return self._run.options.scope.includes(
            Installations(self._run.inbox.database, self._run.inbox.now).repository(repository).name
        )


def all_thread_numbers(memory: Memory) -> list[int]:
    """The numbers of all threads in a memory, including those that are gone."""
    return sorted(thread_numbers(memory.state.base.all_paths(RECORD_FOLDER)))


@contextmanager
def open_memory(repository: RepositoryKey, run: RunDependencies) -> Iterator[tuple[Memory, MemorySource]]:
    """Open a repository's memory as it is on its branch now, read-only. Raises WorldError and other expected errors.

    Its revision is a time before the branch is fetched: a later revision has read a newer state.
    """
    revision = run.now()
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
