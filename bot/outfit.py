"""What a door knows of a repository → the parts of a run: settings from its default branch, memory, GitHub, sources."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from bot.backfill import Clock
from bot.comment.links import Links
from bot.comment.render import Renderer, marker
from bot.config import TEMPLATES, load_settings
from bot.errors import PrecedentError, UserError
from bot.github.client import WRITE_GAP, GitHubClient
from bot.github.fixes import FixFinder
from bot.github.graphql import GraphQLHistory
from bot.github.history import EitherHistory, RestHistory
from bot.github.threads import Own
from bot.memory.branch import BranchStore
from bot.memory.head import Head, open_head, read_head
from bot.memory.learned import Embedder
from bot.memory.memory import Memory
from bot.memory.store import Store
from bot.parts import Bot
from bot.reading.page_keys import WIKI
from bot.recall.mentioned import Place
from bot.settings import Settings, SettingsError
from bot.sources.choice import page_sources

GITHUB = "https://github.com"
MUTED = "the settings cannot be used: what is to be said waits until they are mended"


@dataclass(frozen=True, slots=True)
class Site:
    """A repository, and as whom it is reached. ``workspace`` is the folder below which text models may lie.

    ``own_login`` is who writes our comments, "" for whom the settings name; ``instance`` is in their marker.
    ``write_gap``: seconds between two writes.
    """

    repository: str
    token: str = field(repr=False)
    api_url: str
    server_url: str
    own_login: str = ""
    instance: str = "action"
    workspace: Path = Path()
    write_gap: float = WRITE_GAP

    @property
    def url(self) -> str:
        """Where git finds it."""
        return f"{self.server_url}/{self.repository}.git"


@dataclass(frozen=True, slots=True)
class Chosen:
    """What the repository wants. ``muted``: why nothing may be said, empty where it may; ``is_dry`` as in `Bot`.

    ``head``: the commit of the default branch at which it says so.
    """

    settings: Settings
    templates: dict[str, str] = field(default_factory=dict)
    muted: str = ""
    embedder: Embedder | None = None
    is_dry: bool = False
    head: str | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """How often GitHub's API was asked, and how many requests it left us in this hour; -1 where it did not say."""

    reads: int
    writes: int
    graphql: int
    left: int = -1


class Ear(Protocol):
    """Who is told how a run goes."""

    def note(self, line: str) -> None:
        """Something that is worth knowing afterwards."""
        ...

    def show(self, line: str) -> None:
        """Progress, for whoever watches."""
        ...

    def meet(self, error: PrecedentError) -> None:
        """A fault that the run goes on after."""
        ...

    def fail(self, line: str, code: int) -> None:
        """A fault that somebody has to mend, with its exit code."""
        ...

    def spent(self, used: Used) -> None:
        """What the whole run asked GitHub for, at its end."""
        ...


def choose(
    site: Site,
    config: str,
    ear: Ear,
    change: Callable[[Settings], Settings] = lambda same: same,
) -> Chosen:
    """The settings and templates of the default branch; ``change`` is made to the settings in any case.

    With bad settings everything is remembered, and what is owed is promised for when they are mended.
    """
    head, files = read_head(site.url, site.token, [config, *TEMPLATES])
    templates = {Path(path).name: data.decode("utf-8", "replace") for path, data in files.items() if path in TEMPLATES}
    settings, muted = Settings(), ""
    try:
        settings = load_settings(files.get(config), config)
    except SettingsError as error:
        muted = MUTED
        ear.fail(str(error), error.exit_code)
    return Chosen(change(settings), templates, muted, head=head)


def branch_store(site: Site, settings: Settings, keep: Path | None = None) -> BranchStore:
    """The branch that the settings name; ``keep`` as in `BranchStore`."""
    return BranchStore(
        site.url,
        settings.branch,
        site.token,
        keep=keep,
        squash_after=settings.memory.squash_commits,
        squash_bytes=settings.memory.squash_megabytes * 1_000_000,
    )


def embedder(settings: Settings, site: Site, ear: Ear) -> Embedder | None:
    """The text model that the settings name; without one that can be used the run goes by words."""
    if not settings.semantic.model:
        return None
    from bot.numeric.embedder import EmbeddingsUnavailable, model_folder, open_embedder

    try:
        return open_embedder(model_folder(settings.semantic.model, site.workspace))
    except EmbeddingsUnavailable as error:
        ear.note(f"Similar threads are looked for without embeddings: {error}")
    except UserError as error:
        ear.fail(str(error), error.exit_code)
    return None


def remembering(site: Site, chosen: Chosen, store: Store) -> Memory:
    """Memory over ``store`` that has not looked into it yet. `Memory.close` closes the store."""
    return Memory(store, embedder=chosen.embedder, repo=site.repository)


@contextmanager
def outfit(site: Site, chosen: Chosen, store: Store, now: datetime, ear: Ear) -> Iterator[Bot]:
    """The parts of one run, put together and given back; ``store`` is closed with them."""
    settings, own = chosen.settings, Own(site.own_login or chosen.settings.comment.author, marker(site.instance))
    forge = GitHubClient(site.api_url, site.token, site.repository, write_gap=site.write_gap)
    graphql = GraphQLHistory(site.api_url, site.token, site.repository, own, forge)
    memory = remembering(site, chosen, store)
    try:
        yield Bot(
            memory=memory,
            forge=forge,
            history=EitherHistory(graphql, RestHistory(own, forge), ear.note),
            own=own,
            settings=settings,
            renderer=_renderer(site, chosen),
            place=Place(
                site.repository,
                (urlsplit(site.server_url).hostname or "github.com",),
                site.server_url,
                tuple(settings.recall_phrases),
            ),
            fixes=FixFinder(forge, site.repository),
            pages=page_sources(settings.pages, site.repository, forge, partial(_open_branch, site, chosen.head)),
            now=now,
            clock=Clock(time.monotonic, ear.show, forge.sit_out),
            note=ear.note,
            muted=chosen.muted,
            meet=ear.meet,
            is_dry=chosen.is_dry,
        )
    finally:
        memory.close()
        for trouble in forge.troubles:
            ear.meet(trouble)
        for line in (*memory.notes, *(f"A permission is missing: {error}" for error in forge.lacking)):
            ear.note(line)
        ear.spent(Used(forge.reads, forge.writes, graphql.requests, forge.rate.left if forge.rate else -1))


def _renderer(site: Site, chosen: Chosen) -> Renderer:
    commands = chosen.settings.commands.enabled
    links = _links(site, chosen.settings)
    return Renderer(overrides=chosen.templates, links=links, instance=site.instance, commands=commands)


def _open_branch(site: Site, head: str | None, source: str) -> AbstractContextManager[Head]:
    """The default branch of the repository, which stood at ``head`` when its settings were read, or of its wiki."""
    is_wiki = source == WIKI
    name = f"{site.repository}.wiki" if is_wiki else site.repository
    return open_head(f"{site.server_url}/{name}.git", site.token, None if is_wiki else head)


def _links(site: Site, settings: Settings) -> Links:
    choice = settings.comment.redirect_links
    redirect = choice == "on" or (choice == "auto" and site.server_url == GITHUB)
    return Links(site.server_url, site.repository, redirect)
