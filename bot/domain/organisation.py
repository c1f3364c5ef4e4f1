"""Threads of all repositories of an organisation, and who may see them: the values used by searches across them."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from bot.domain.bounds import Name, Quote, Signals, Title
from bot.domain.post import OrganisationKey
from bot.domain.thread import Kind, Outcome, ThreadId


class Visibility(StrEnum):
    """Who may read a repository, by GitHub's own names; a repository of unknown visibility counts as private."""

    PUBLIC = "public"
    INTERNAL = "internal"
    PRIVATE = "private"


@dataclass(frozen=True, slots=True)
class OrganisationThread:
    """A thread as the index of an organisation holds it, without its conversation.

    ``name`` is "owner/name" at the time of writing; ``revision`` is the time, in milliseconds since 1970, of the memory
    it was read from: of two versions the later one wins. ``terms`` are the analysed terms of title and opening text
    with their repetitions, as the engine counts them; ``errors``, ``files`` and ``names`` are its signals
    (`bot.reading.signals`). ``is_gone``: it was deleted, transferred or forgotten, and no search finds it.
    """

    repository: int
    id: ThreadId
    revision: int
    name: Name
    kind: Kind
    title: Title
    author: Name
    created_at: datetime
    closed_at: datetime | None = None
    state_reason: Name = ""
    terms: tuple[str, ...] = ()
    errors: Signals = ()
    files: Signals = ()
    names: Signals = ()
    outcome: Outcome = field(default_factory=Outcome)
    url: Quote = ""
    is_gone: bool = False

    @property
    def key(self) -> OrganisationKey:
        return OrganisationKey(self.repository, self.id)


@dataclass(frozen=True, slots=True)
class FoundThread:
    """A thread that the engine found; ``score`` is in BM25 units (> 0)."""

    thread: OrganisationThread
    score: float
