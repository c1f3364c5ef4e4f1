"""All checks in the order in which they are told: from what everything else needs to what memory has learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from bot.config import CONFIG_PATH
from bot.doors.checkup import forge, memory, settings, workflow
from bot.doors.checkup.finding import Finding
from bot.doors.checkup.forge import Forge
from bot.doors.checkup.held import Held
from bot.doors.checkup.place import Place
from bot.doors.checkup.runs import Runs
from bot.memory.git_errors import RemoteUnreachable
from bot.memory.store import StoreError
from bot.memory.tip import Tip
from bot.settings import Settings

TEMPLATES = ".github/precedent"


@dataclass(frozen=True, slots=True)
class Setup:
    """What the repository says of itself: ``told`` are the findings that reading it made.

    ``config`` is the name of the settings' file; ``fault`` why the default branch could not be read, and ``checkout``
    that the checkout was read in its place.
    """

    settings: Settings = field(default_factory=Settings)
    config: str = ""
    told: tuple[Finding, ...] = ()
    steps: tuple[workflow.Step, ...] = ()
    templates: Mapping[str, str] = field(default_factory=dict)
    fault: StoreError | None = None
    checkout: bool = False


@dataclass(frozen=True, slots=True)
class Gathered:
    """Everything that was looked at. None stands for what was not: ``git`` and ``setup`` in a folder, the API's part
    where it was not to be asked. ``tip`` and ``held`` are errors where they could not be read."""

    place: Place
    now: datetime
    git: str | None = None
    setup: Setup | None = None
    tip: Tip | StoreError | None = None
    held: Held | StoreError | None = None
    forge: Forge | None = None


def judge(seen: Gathered) -> list[Finding]:
    """What all checks find."""
    if seen.place.store:
        return [*_setup(seen), *_memory(seen)]
    return [settings.git(seen.git), *_forge(seen), *_setup(seen), *_branch(seen), *_memory(seen)]


def _forge(seen: Gathered) -> Iterator[Finding]:
    told, place = seen.forge, seen.place
    if told is None:
        says = "the API was not asked: what it knows of token, repository, limits and changes was left out"
        yield Finding("repository", "note", says, "leave out --offline")
        return
    yield forge.repository(told, place, git_reads=seen.git is not None and not isinstance(seen.tip, StoreError))
    if told.repository is not None:
        yield forge.rights(told, place)
        yield forge.issues(told, place)
        yield from forge.protection(told, place, _where_branch(seen.setup))
    if told.limits is not None or told.repository is not None:
        yield from forge.limits(told, seen.now)


def _where_branch(setup: Setup | None) -> str:
    """Where the name of the branch is set: the input of the workflow is what counts."""
    if setup and workflow.overriding(setup.steps, "branch"):
        return f"under `with:` in {setup.steps[0].path}"
    return f"in {setup.config if setup and setup.config else CONFIG_PATH}"


def _setup(seen: Gathered) -> Iterator[Finding]:
    setup, place = seen.setup, seen.place
    if setup is None:
        return
    if setup.fault and not isinstance(seen.tip, StoreError):
        remedy = "put the file itself in its place on the default branch"
        outside = isinstance(setup.fault, RemoteUnreachable)
        yield Finding("settings", "error", f"the default branch cannot be read: {setup.fault.cause}", remedy, outside)
    elif setup.fault and not setup.checkout:
        yield Finding("settings", "note", "settings, templates and workflow were left out: they cannot be reached")
    elif setup.checkout:
        yield Finding("settings", "note", "those of this checkout were read, as the default branch cannot be reached")
    yield from setup.told
    if setup.fault and not setup.checkout:
        return
    if not any(told.check == "settings" and told.is_problem for told in setup.told):
        yield from settings.useless(setup.settings, place, setup.config, setup.steps)
    if not place.store:
        yield from settings.templates(setup.templates, TEMPLATES)
        comments = setup.settings.mode == "comment"
        unread = any(told.check == "workflow" for told in setup.told)
        yield from workflow.checks(setup.steps, comments=comments, is_checkout=setup.checkout, unread=unread)


def _branch(seen: Gathered) -> Iterator[Finding]:
    used = seen.setup.settings if seen.setup else Settings()
    has_token = seen.forge is not None and bool(seen.forge.token)
    yield memory.branch(seen.tip, seen.place, used, seen.now, token=has_token)


def _memory(seen: Gathered) -> Iterator[Finding]:
    held, place, now = seen.held, seen.place, seen.now
    if isinstance(held, RemoteUnreachable):
        yield Finding("memory", "error", f"git cannot reach the server: {held.cause}", "run it again later", True)
    elif isinstance(held, StoreError):
        yield Finding("memory", "error", f"it cannot be read: {held.cause}", place.by_hand("rebuild"))
    if not isinstance(held, Held):
        return
    yield from memory.manifest(held, place)
    if not memory.is_readable(held):
        return
    used = seen.setup.settings if seen.setup else Settings()
    yield from memory.reading(held, place)
    yield memory.cursor(held, seen.forge.changed if seen.forge else None, _runs(seen), place, now)
    yield memory.counts(held, place)
    yield memory.promises(held, place, used, now)
    yield from memory.index(held, place)
    yield from memory.records(held, place)
    yield from memory.learned(held, place)


def _runs(seen: Gathered) -> Runs:
    """What is known of the workflow's runs. Where a workflow could not be read, it may be the one."""
    told = seen.forge.runs if seen.forge else None
    setup = seen.setup
    if setup is None:
        return Runs(told=told)
    is_sure = not setup.fault and not any(finding.check == "workflow" for finding in setup.told)
    has_workflow = True if setup.steps else False if is_sure else None
    return Runs(has_workflow, any(map(workflow.is_scheduled, setup.steps)), told)
