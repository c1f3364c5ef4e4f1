"""The organisation's index of a town: its real engine in a folder, and the worker that brings changes there."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from pathlib import Path

from bot.domain.organisation import FoundThread
from bot.domain.thread import ThreadId
from bot.organisation.lance import open_candidates
from bot.reading.analyzer import terms
from bot.recall.candidates import Candidates
from bot.server.dispatch import work_on
from bot.server.model import RepositoryKey
from bot.server.organisation_changes import OrganisationChanges, queue_key
from bot.server.organisation_guard import OrganisationGuard
from bot.server.organisation_register import OrganisationRegister
from bot.server.worker import RunDependencies
from tests.fakes.payloads import EventfulProject
from tests.server.town import Town


@dataclass
class TownIndex:
    """An index in a folder; ``wrap`` stands between it and whoever opens it. ``told``: the changes it told of."""

    town: Town
    folder: Path
    installation: int
    wrap: Callable[[Candidates], Candidates] = lambda index: index
    told: list[tuple[RepositoryKey, list[int]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        inbox = self.town.here.inbox
        self.changes = OrganisationChanges(inbox.database, inbox.queue, self.town.here.clock)
        self.guard = OrganisationGuard(self._open, inbox.count_up, lambda: self.town.here.clock.now / 1000)

    def _open(self, installation: int) -> Candidates:
        return self.wrap(open_candidates(str(self.folder), str(installation)))

    @property
    def dependencies(self) -> RunDependencies:
        options = replace(self.town.dependencies.options, organisation=str(self.folder))

        def told(repository: RepositoryKey, threads: Collection[int], gone: Collection[ThreadId]) -> None:
            self.told.append((repository, sorted(threads)))
            OrganisationRegister(self.town.here.inbox).note_changed(repository, threads, gone)

        return replace(self.town.dependencies, options=options, organisation=self.guard, indexed=told)

    def align(self) -> int:
        """What a resync does for the index."""
        return self.changes.align(str(self.folder), self.dependencies.options.scope)

    def work(self) -> None:
        """One lease of the changes."""
        lease = self.town.here.inbox.queue.claim_key(self.town.here.inbox.worker, queue_key(self.installation))
        assert lease, "somebody works on it"
        work_on(lease, self.dependencies)

    def waiting(self) -> int:
        found = self.changes.backlog()
        assert found is not None, "it is switched off"
        return found[0]

    def search(self, words: str, *projects: EventfulProject) -> list[FoundThread]:
        """What the engine has, asked without the guard."""
        index = open_candidates(str(self.folder), str(self.installation))
        return index.search(terms(words), {project.repo.id for project in projects})
