"""Threads that report one thing."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from bot.domain.thread import ThreadId


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A thread of a cluster. ``why`` says in plain words what holds it there; the canonical thread needs no reason."""

    id: ThreadId
    why: tuple[str, ...]
    at: datetime
    author: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Threads that report one thing, oldest first.

    ``id`` stays the same as long as the oldest member does; ``people`` counts their authors; ``first`` and ``last`` are
    when the first and the last member were opened; ``name`` is the title of the canonical thread.
    """

    id: str
    canonical: ThreadId
    members: tuple[ClusterMember, ...]
    people: int
    first: datetime
    last: datetime
    name: str
