"""What a run is given, and the log that it keeps."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

from bot.domain.thread import ThreadId
from bot.errors import PrecedentError
from bot.github.app import App
from bot.github.budget import WRITE_GAP
from bot.github.errors import app_remedy
from bot.pipeline.site import RepositorySite
from bot.reading.text_edges import cut_at_edge
from bot.recall.candidates import Candidates
from bot.recall.other_repositories import elsewhere_to_show
from bot.server.model import Grant, Lease, RepositoryKey
from bot.server.options import ServerOptions
from bot.server.organisation.guard import OrganisationGuard
from bot.server.organisation.register import OrganisationRegister
from bot.server.organisation.search import Ranking
from bot.server.storage.branches import CloneCache, DiskGuard, RateLimiter
from bot.server.storage.github_access import TokenCache
from bot.server.storage.inbox import Inbox

if TYPE_CHECKING:
    from bot.pipeline.setup import ApiUsage  # it loads the search index

READING_SECONDS = 60.0
"""Seconds for which one run reads a history. Then it gives back its lease, so that a new issue need not wait longer."""

MAX_NOTES = 20
MAX_NOTE_CHARS = 300
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunDependencies:
    """Everything that runs need. ``stop`` is set when the process ends.

    ``write_gap``: seconds between two writes to GitHub. ``organisation``: the indexes, None without; ``indexed`` is
    called with the threads of a repository that changed in one, and those that are gone. ``ranking`` returns the search
    in the index of an installation; without it, no other repository is searched. ``reading_seconds``: for which one
    run reads a history.
    """

    options: ServerOptions
    inbox: Inbox
    tokens: TokenCache
    clones: CloneCache
    pace: RateLimiter
    own_login: str
    stop: threading.Event
    disk: DiskGuard
    write_gap: float = WRITE_GAP
    ranking: Callable[[int], Ranking] | None = None
    organisation: OrganisationGuard | None = None
    indexed: Callable[[RepositoryKey, Collection[int], Collection[ThreadId]], object] = lambda *_: None
    reading_seconds: float = READING_SECONDS


Run = Callable[[Lease, RunDependencies], None]
"""Runs a repository, and never raises."""


def run_dependencies(
    options: ServerOptions, inbox: Inbox, app: App, login: str, stop: threading.Event
) -> RunDependencies:
    """What the runs of a process need; ``login`` is ours at GitHub."""
    guard = None
    if options.organisation:
        guard = OrganisationGuard(partial(open_index, options.organisation), inbox.counters.add)
    return RunDependencies(
        options=options,
        inbox=inbox,
        tokens=TokenCache(app),
        clones=CloneCache(options.data / "clones", options.clones_mb),
        disk=DiskGuard(options.data),
        pace=RateLimiter(options.pushes_per_minute, inbox.now),
        own_login=login,
        stop=stop,
        organisation=guard,
        ranking=(lambda installation: partial(elsewhere_to_show, guard.index(installation))) if guard else None,
        indexed=OrganisationRegister(inbox).note_changed,
    )


def open_index(address: str, installation: int) -> Candidates:
    from bot.organisation.lance import open_candidates

    return open_candidates(address, str(installation))


def repository_site(grant: Grant, run: RunDependencies) -> RepositorySite:
    """The repository that the token is for, and how to reach it."""
    return RepositorySite(
        repository=grant.name,
        token=grant.token,
        api_url=run.options.api_url,
        server_url=run.options.server_url,
        own_login=run.own_login,
        instance=run.options.instance,
        workspace=run.clones.empty,
        write_gap=run.write_gap,
    )


@dataclass(slots=True)
class RunLog:
    """The `RunListener` of one run. ``clock`` is in seconds.

    ``met`` are faults after which the run continued; ``failed`` is what the repository has to fix.
    """

    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)
    met: list[PrecedentError] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    reads: int = 0
    writes: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    _began: float = field(init=False)
    _stage: str = ""
    _since: float = 0.0

    def __post_init__(self) -> None:
        self._began = self.clock()

    def note(self, line: str) -> None:
        line = cut_at_edge(app_remedy(" ".join(line.split())), MAX_NOTE_CHARS)
        if line not in self.notes:
            log.info("%s", line, extra={"seconds": round(self.clock() - self._began, 2)})
            self.notes = [*self.notes, line][:MAX_NOTES]

    def show(self, line: str) -> None:
        """Show nothing."""

    def report_fault(self, error: PrecedentError) -> None:
        self.met.append(error)
        self.note(str(error))

    def fail(self, line: str, code: int) -> None:  # noqa: ARG002 - a server goes on
        self.failed.append(line)
        self.note(line)

    def note_api_usage(self, used: ApiUsage) -> None:
        self.reads += used.reads + used.graphql
        self.writes += used.writes

    def on_stage(self, stage: str) -> None:
        """End the current stage, and start another; "" for none."""
        now = self.clock()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
