"""Threads that report the same thing, and the signs that tie them together."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated

from bot.domain.bounds import MaxChars, Pattern
from bot.domain.thread import ThreadId

MAX_LINKS = 20
"""Maximum number of signs stored for one thread, which also limits what one thread's own words can add."""

MAX_LINK_CHARS = 120
"""Characters stored of an error, file or name that two threads share."""


@dataclass(frozen=True, slots=True)
class ClusterLink:
    """A sign that a thread reports the same thing as thread ``to``.

    ``sign`` is a key of `bot.recall.clusters.WEIGHTS`; ``words`` is what both share, such as an error.
    """

    to: ThreadId
    sign: Annotated[str, Pattern(re.compile(r"[a-z]{1,20}", re.ASCII))]
    words: Annotated[str, MaxChars(MAX_LINK_CHARS)] = ""


@dataclass(frozen=True, slots=True)
class ClusterLinks:
    """The signs found for thread ``id`` as of ``at``, the time of its newest change, by the run of ``found_at``."""

    id: ThreadId
    at: datetime
    links: tuple[ClusterLink, ...] = ()
    found_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClusterMember:
    """A thread of a cluster. ``why`` says in plain words what ties it in; the canonical thread needs no reason."""

    id: ThreadId
    why: tuple[str, ...]
    at: datetime
    author: str


@dataclass(frozen=True, slots=True)
class Cluster:
    """Threads that report the same thing, oldest first.

    ``id`` stays the same as long as the oldest thread does; ``name`` is the title of the canonical thread. ``members``
    are the canonical thread and the newest ones, but ``people`` counts all authors, and ``times`` are the opening times
    of all threads.
    """

    id: str
    canonical: ThreadId
    members: tuple[ClusterMember, ...]
    people: int
    times: tuple[datetime, ...]
    name: str

    @property
    def total(self) -> int:
        return len(self.times)

    @property
    def first(self) -> datetime:
        return self.times[0]

    @property
    def last(self) -> datetime:
        return self.times[-1]
