"""Builds the parts of a run: settings, memory, GitHub, page sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Protocol

from bot.comment.marker import marker
from bot.comment.render import Renderer
from bot.domain.thread import RepositoryAddress
from bot.domain.thread_json import MAX_AHEAD, MAX_TIME, TimeLimit
from bot.errors import PrecedentError, StoreError, UnreadableFile, UserError, WorldError
from bot.git.remote import as_remote
from bot.git.remote_files import Head, open_head
from bot.github.budget import RequestBudget
from bot.github.client import GitHubClient
from bot.github.discussion_comments import DiscussionComments
from bot.github.discussions import DiscussionReader
from bot.github.fixes import FixFinder
from bot.github.history import FallbackHistory, GraphQLHistory, RestHistory
from bot.github.threads import OwnCommentRule
from bot.memory.branch_store import BranchStore, memory_branches
from bot.memory.manifest import SETTINGS_PATH
from bot.memory.memory import Memory
from bot.memory.model_store import Embedder
from bot.memory.store import Store
from bot.memory.text_model import open_text_model
from bot.pipeline.backfill import Clock
from bot.pipeline.site import RepositorySite, SettingsFiles
from bot.pipeline.tools import Tools
from bot.questions.comment import usual_language
from bot.reading.pages import DOCS, RELEASES, WIKI
from bot.settings.schema import InvalidSettings, PageSettings, Settings
from bot.settings.yaml_file import CONFIG_PATH, TEMPLATE_PATHS, load_settings
from bot.sources.pages import BranchPages, DisabledPages, PageSource, ReleaseApi, ReleasePages

INVALID_SETTINGS = "the settings cannot be used: comments wait until they are corrected"


@dataclass(frozen=True, slots=True)
class RepositorySettings:
    """The settings and templates of a repository at commit ``head`` of its default branch.

    ``muted`` and ``is_dry`` are as in `Tools`. ``text`` is the settings file; None if it is invalid.
    """

    settings: Settings
    templates: dict[str, str] = field(default_factory=dict)
    muted: str = ""
    embedder: Embedder | None = None
    is_dry: bool = False
    head: str | None = None
    text: bytes | None = None


class UnreadSettings(StoreError):
    """The settings cannot be read, and no memory says what they were."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class ApiUsage:
    """Requests made to GitHub's API, and how many are ``left`` in this hour (-1: unknown)."""

    reads: int
    writes: int
    graphql: int
    left: int = -1


class RunListener(Protocol):
    """Receives reports of a run: notes for afterwards (``note``) and progress (``show``).

    ``report_fault`` takes a fault that the run survives, ``fail`` a fault that somebody has to fix, with its exit code.
    ``note_api_usage`` takes the totals at the end.
    """

    def note(self, line: str) -> None: ...

    def show(self, line: str) -> None: ...

    def report_fault(self, error: PrecedentError) -> None: ...

    def fail(self, line: str, code: int) -> None: ...

    def note_api_usage(self, used: ApiUsage) -> None: ...


def read_settings(
    site: RepositorySite,
    fetched: SettingsFiles,
    listener: RunListener,
    change: Callable[[Settings], Settings] = lambda same: same,
) -> RepositorySettings:
    """Read the settings and templates from these files, and apply ``change`` to the settings.

    With invalid settings the run still remembers everything, with those that are valid, or with the last ones if none
    is; its comments are promised for when they are corrected. Raises UnreadSettings if there are no last ones either.
    """
    config, head, files, fault = fetched
    templates = {
        Path(path).name: data.decode("utf-8", "replace") for path, data in files.items() if path in TEMPLATE_PATHS
    }
    text = files.get(config, b"")
    if not (text or fault or config in files) and config != CONFIG_PATH:
        listener.note(f"There is no {config} on the default branch: the default settings apply.")
    try:
        if fault:
            raise InvalidSettings(fault, None)
        return RepositorySettings(change(load_settings(text, config)), templates, head=head, text=text)
    except InvalidSettings as error:
        settings = change(error.kept) if error.kept else _last_settings(site, change)
        if settings is None:
            raise UnreadSettings(str(error)) from error
        listener.fail(str(error), error.exit_code)
        return RepositorySettings(settings, templates, INVALID_SETTINGS, head=head)


def _last_settings(site: RepositorySite, change: Callable[[Settings], Settings]) -> Settings | None:
    """The settings that the newest memory was written with; None without a memory.

    They say on which branch it is, so an old memory that moved, or a copy of the branch, does not count.
    """
    remote = as_remote(site.url, site.token)
    for branch in memory_branches(remote):
        with suppress(UnreadableFile, UserError), BranchStore(remote, branch) as store:
            stored = store.open([SETTINGS_PATH]).read([SETTINGS_PATH])
            settings = change(load_settings(stored.get(SETTINGS_PATH), SETTINGS_PATH))
            if settings.branch == branch:
                return settings
    return None


def branch_store(site: RepositorySite, loaded: RepositorySettings, keep: Path | None = None) -> BranchStore:
    """The store on the branch named in the settings; ``keep`` as in `BranchStore`."""
    return BranchStore(site.url, loaded.settings.branch, site.token, keep=keep)


def embedder(settings: Settings, site: RepositorySite, listener: RunListener) -> Embedder | None:
    """The text model named in the settings; None if there is none or it cannot be used."""
    try:
        return open_text_model(settings.similar.model, site.workspace)
    except UserError as error:
        listener.fail(str(error), error.exit_code)
    except WorldError as error:
        listener.note(f"Similar threads are found without embeddings: {error}")
    return None


def open_repository_memory(site: RepositorySite, loaded: RepositorySettings, store: Store) -> Memory:
    """Memory over ``store``, not yet read. `Memory.close` closes the store."""
    memory = Memory(store, embedder=loaded.embedder, repo=site.repository)
    memory.is_dry = loaded.is_dry
    memory.settings = loaded.text
    memory.hidden = loaded.settings.ignore.hidden
    bots = loaded.settings.bots
    listed = {"deciders": loaded.settings.decisions.accounts, "merge_bots": bots.merge, "release_bots": bots.release}
    memory.accounts = {field: frozenset(map(str.casefold, logins)) for field, logins in listed.items()}
    return memory


def _time_limit(forge: GitHubClient, started: datetime, began: float) -> TimeLimit:
    """The latest time that may be stored by GitHub's clock, for a run that ``began`` at ``started``; any, if GitHub
    tells no time. Unless a time looks wrong, this asks nothing."""

    def after(moment: datetime) -> datetime:
        return moment + timedelta(seconds=time.monotonic() - began) + MAX_AHEAD

    def exact() -> datetime:
        now = forge.correct_time(started)
        return after(now) if forge.budget.date else MAX_TIME

    return TimeLimit(exact() if forge.budget.date else after(started), exact)


@contextmanager
def build_tools(
    site: RepositorySite,
    loaded: RepositorySettings,
    store: Store,
    now: datetime,
    listener: RunListener,
    budget: RequestBudget | None = None,
) -> Iterator[Tools]:
    """Build everything that one run needs, and close it at the end, including ``store``.

    ``budget``: the state of GitHub's limits, if it is shared with other runs.
    """
    settings = loaded.settings
    own = OwnCommentRule(site.own_login or settings.comment.author, marker(site.instance))
    forge = GitHubClient(site.api_url, site.token, site.repository, write_gap=site.write_gap, budget=budget)
    graphql = GraphQLHistory(site.repository, own, forge)
    memory = open_repository_memory(site, loaded, store)
    memory.time_limit = partial(_time_limit, forge, now, time.monotonic())
    try:
        renderer = Renderer.of_repository(settings, loaded.templates, site.server_url, site.repository, site.instance)
        renderer.usual_language = partial(usual_language, memory)
        yield Tools(
            memory=memory,
            forge=forge,
            history=FallbackHistory(graphql, RestHistory(own, forge), listener.note),
            own=own,
            settings=settings,
            renderer=renderer,
            address=RepositoryAddress.at(site.server_url, site.repository, settings.commands.questions),
            fixes=FixFinder(forge, site.repository),
            discussions=DiscussionReader(graphql, own),
            discussion_comments=DiscussionComments(forge, site.repository),
            pages=page_sources(settings.pages, site.repository, forge, partial(_open_branch, site, loaded.head)),
            started=now,
            clock=Clock(time.monotonic, listener.show, forge.pause_requests),
            began=time.monotonic(),
            note=listener.note,
            muted=loaded.muted,
            report_fault=listener.report_fault,
        )
    finally:
        memory.close()
        left = forge.rate.left if forge.rate else -1
        if (right := forge.budget.correct_time(now)) != now:
            clocks = f"This machine's clock says {now:%Y-%m-%d %H:%M} UTC, GitHub's {right:%Y-%m-%d %H:%M}"
            listener.note(f"{clocks}: GitHub's counts. Set the clock.")
        _report(memory, forge, ApiUsage(forge.reads, forge.writes, forge.queries, left), listener)


def _report(memory: Memory, forge: GitHubClient, usage: ApiUsage, listener: RunListener) -> None:
    """Report what went wrong during the run, and how much of GitHub's API was used."""
    for fault in forge.troubles:
        listener.report_fault(fault)
    for line in (*memory.notes, *(f"A permission is missing: {error}" for error in forge.lacking)):
        listener.note(line)
    listener.note_api_usage(usage)


def _open_branch(site: RepositorySite, head: str | None, source: str) -> AbstractContextManager[Head]:
    """Open the default branch of the repository (at ``head``, where the settings were read) or of its wiki."""
    is_wiki = source == WIKI
    name = f"{site.repository}.wiki" if is_wiki else site.repository
    return open_head(f"{site.server_url}/{name}.git", site.token, None if is_wiki else head)


WIKI_FILES = ("**/*",)


def page_sources(
    settings: PageSettings, repo: str, api: ReleaseApi, open_branch: Callable[[str], AbstractContextManager[Head]]
) -> tuple[PageSource, ...]:
    """The sources of pages: documentation, wiki and releases of ``repo`` (``owner/name``).

    ``open_branch`` opens the default branch of the repository (``docs``) or of its wiki (``wiki``).
    """

    def branch(name: str, patterns: tuple[str, ...]) -> PageSource:
        return BranchPages(name, patterns, partial(open_branch, name)) if patterns else DisabledPages(name)

    wiki = branch(WIKI, WIKI_FILES if settings.wiki else ())
    return branch(DOCS, settings.docs), wiki, ReleasePages(api, repo, RELEASES)
