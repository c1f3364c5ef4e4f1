"""Everything that a run needs, and how it reaches a repository."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection
from dataclasses import dataclass

from bot.domain.thread import ThreadId
from bot.github.budget import WRITE_GAP
from bot.pipeline.site import RepositorySite
from bot.server.model import Grant, Instant, Lease, RepositoryKey
from bot.server.options import ServerOptions
from bot.server.organisation.guard import OrganisationGuard
from bot.server.organisation.search import Ranking
from bot.server.storage.clones import CloneCache
from bot.server.storage.disk import DiskGuard
from bot.server.storage.inbox import Inbox
from bot.server.storage.tokens import TokenCache
from bot.server.work.pushes import RateLimiter

READING_SECONDS = 60.0
"""Seconds for which one run reads a history. Then it gives back its lease, so that a new issue need not wait longer."""


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
    now: Callable[[], Instant]
    disk: DiskGuard
    write_gap: float = WRITE_GAP
    ranking: Callable[[int], Ranking] | None = None
    organisation: OrganisationGuard | None = None
    indexed: Callable[[RepositoryKey, Collection[int], Collection[ThreadId]], object] = lambda *_: None
    reading_seconds: float = READING_SECONDS


Run = Callable[[Lease, RunDependencies], None]
"""Runs a repository, and never raises."""


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
