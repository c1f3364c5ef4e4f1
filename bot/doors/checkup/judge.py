"""All checks in the order in which they are told: from what everything else needs to what memory holds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from bot.doors.checkup import forge, memory, workflow
from bot.doors.checkup.finding import Finding
from bot.doors.checkup.forge import Forge
from bot.doors.checkup.held import Held
from bot.doors.checkup.place import Place
from bot.memory.git_errors import RemoteUnreachable
from bot.memory.store import StoreError
from bot.memory.tip import Tip
from bot.settings import Settings


@dataclass(frozen=True, slots=True)
class Setup:
    """What the repository says of itself: ``told`` are the findings that reading it made.

    ``fault`` is why the default branch could not be read, and ``checkout`` that the checkout was read in its place.
    """

    settings: Settings = field(default_factory=Settings)
    told: tuple[Finding, ...] = ()
    steps: tuple[workflow.Step, ...] = ()
    fault: StoreError | None = None
    checkout: bool = False


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that was looked at. None stands for what was not: ``setup`` in a folder, the API's part where it was
    not to be asked. ``tip`` and ``held`` are errors where they could not be read."""

    place: Place
    now: datetime
    setup: Setup | None = None
    tip: Tip | StoreError | None = None
    held: Held | StoreError | None = None
    forge: Forge | None = None


def judge(seen: Gathered) -> list[Finding]:
    """What all checks find."""
    if seen.place.store:
        return [*_setup(seen), *_memory(seen)]
    return [*_forge(seen), *_setup(seen), _branch(seen), *_memory(seen)]


def _forge(seen: Gathered) -> Iterator[Finding]:
    told, place = seen.forge, seen.place
    if told is None:
        says = "the API was not asked: what it knows of token, repository and limits was left out"
        yield Finding("repository", "note", says, "leave out --offline")
        return
    yield forge.repository(told, place, git_reads=not isinstance(seen.tip, StoreError))
    if told.limits is not None or told.repository is not None:
        yield from forge.limits(told, seen.now)


def _setup(seen: Gathered) -> Iterator[Finding]:
    setup, place = seen.setup, seen.place
    if setup is None:
        return
    if setup.fault and not isinstance(seen.tip, StoreError):
        remedy = "put the file itself in its place on the default branch"
        outside = isinstance(setup.fault, RemoteUnreachable)
        yield Finding("settings", "error", f"the default branch cannot be read: {setup.fault.cause}", remedy, outside)
    elif setup.fault and not setup.checkout:
        yield Finding("settings", "note", "settings and workflow were left out: they cannot be reached")
    elif setup.checkout:
        yield Finding("settings", "note", "those of this checkout were read, as the default branch cannot be reached")
    yield from setup.told
    if not place.store and (setup.checkout or not setup.fault):
        comments = setup.settings.mode == "comment"
        unread = any(told.check == "workflow" for told in setup.told)
        yield from workflow.checks(setup.steps, comments=comments, is_checkout=setup.checkout, unread=unread)


def _branch(seen: Gathered) -> Finding:
    used = seen.setup.settings if seen.setup else Settings()
    has_token = seen.forge is not None and seen.forge.has_token
    return memory.branch(seen.tip, seen.place, used, seen.now, token=has_token)


def _memory(seen: Gathered) -> Iterator[Finding]:
    held, place = seen.held, seen.place
    if isinstance(held, RemoteUnreachable):
        yield Finding("memory", "error", f"git cannot reach the server: {held.cause}", "run it again later", True)
    elif isinstance(held, StoreError):
        yield Finding("memory", "error", f"it cannot be read: {held.cause}", place.by_hand())
    elif held:
        yield from memory.manifest(held, place)
        yield from memory.index(held, place)
