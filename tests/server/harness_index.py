"""An organisation's index for the server harness: the real engine in a folder, and the worker that updates it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import Path

from bot.domain.organisation import FoundThread
from bot.domain.thread import ThreadId
from bot.organisation.lance import open_candidates
from bot.reading.analyzer import terms
from bot.recall.candidates import Candidates
from bot.server.dependencies import RunDependencies
from bot.server.model import RepositoryKey
from bot.server.organisation.guard import OrganisationGuard
from bot.server.organisation.register import OrganisationRegister
from bot.server.storage.outbox import OrganisationChanges, queue_key
from bot.server.work.reconcile import reconcile
from tests.fakes.payloads import EventfulProject
from tests.server.harness import ServerHarness


@dataclass
class HarnessIndex:
    """An index in a folder; ``wrap`` wraps it when it is opened. ``notifications`` are the changes it reported.

    Replaced files are deleted after a millisecond.
    """

    harness: ServerHarness
    folder: Path
    installation: int
    wrap: Callable[[Candidates], Candidates] = lambda index: index
    notifications: list[tuple[RepositoryKey, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        inbox = self.harness.env.inbox
        self.changes = OrganisationChanges(inbox.database, self.harness.env.clock)
        self.reopen()

    def reopen(self) -> None:
        """Open it again, as another process does."""
        count, clock = self.harness.env.inbox.counters.add, self.harness.env.clock
        self.guard = OrganisationGuard(self._open, count, lambda: clock.now / 1000)

    def _open(self, installation: int) -> Candidates:
        return self.wrap(open_candidates(str(self.folder), str(installation), timedelta(milliseconds=1)))

    @property
    def dependencies(self) -> RunDependencies:
        options = replace(self.harness.dependencies.options, organisation=str(self.folder))

        def notify(repository: RepositoryKey, threads: Collection[int], gone: Collection[ThreadId]) -> None:
            self.notifications.append((repository, sorted(threads)))
            OrganisationRegister(self.harness.env.inbox).note_changed(repository, threads, gone)

        return replace(self.harness.dependencies, options=options, organisation=self.guard, indexed=notify)

    def align(self) -> int:
        """Align the index as a resync does."""
        return self.changes.align(str(self.folder), self.dependencies.options.scope)

    def work(self) -> None:
        """Work on the changes with one lease."""
        lease = self.harness.env.inbox.queue.claim_key(self.harness.env.inbox.worker, queue_key(self.installation))
        assert lease, "somebody works on it"
        reconcile(lease, self.dependencies)

    def waiting(self) -> int:
        backlog = self.changes.backlog()
        assert backlog is not None, "it is switched off"
        return backlog[0]

    def search(self, words: str, *projects: EventfulProject) -> list[FoundThread]:
        """Search the engine directly, without the guard."""
        index = open_candidates(str(self.folder), str(self.installation))
        return index.search(terms(words), {project.repo.id for project in projects})
