"""precedent try: reads a repository into a store on this machine, and replays its newest issues."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

from bot.cli.arguments import NamedRepository, Token, address, token_of
from bot.cli.checks.result import GITHUB, api_of
from bot.cli.output import CommandResult, progress
from bot.comment.catalogue import count
from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.render import Renderer
from bot.domain.thread import RepositoryAddress, Thread
from bot.domain.thread_json import stamp
from bot.errors import PrecedentError, StoreError, UserError, WorldError
from bot.evaluation.metrics import summary
from bot.evaluation.report import in_words, render_report
from bot.evaluation.results import REPLAYED, Backtest, Replayed
from bot.files import on_disk, regular_bytes
from bot.github.client import GitHubClient
from bot.github.discussion_comments import count_discussions
from bot.github.errors import ForgeError, IssuesOff, NotPermitted, RateLimited, Unauthorised
from bot.github.history import PER_PAGE, POINTS, Glimpse, GraphQLHistory, HistorySource, NoGraphQL, OutOfSight
from bot.github.threads import OwnCommentRule
from bot.github.updates import OVERLAP, Updates
from bot.local_cache.local_memory import cache_folder, cache_name
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.backfill import Clock, Deadline, backfill
from bot.pipeline.eligibility import reason_to_pass
from bot.pipeline.learn import EVENT_SECONDS, LEAST_THREADS, learner
from bot.pipeline.site import RepositorySite
from bot.settings.schema import Settings
from bot.settings.yaml_file import load_settings

INTERRUPTED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal."""

FIRST_ISSUE = datetime(2008, 1, 1, tzinfo=UTC)
"""No issue is older than GitHub."""

STEPS = 24
"""Halvings of the time since then, down to half a minute; each costs a point."""

KEPT = "what was read is kept"


def run_try(given: argparse.Namespace) -> object:
    settings = _settings(given.config)
    page = _page_file(given)
    site, variable = _site_of(given, os.environ)
    store = cache_folder() / "tries" / cache_name(f"{site.api_url} {site.repository.lower()} {given.history or 'all'}")
    try:
        found = None if given.offline else _read(site, store, settings, given)
        backtest, read_at = _replayed(site, store, settings, given.last, found)
    except (KeyboardInterrupt, _Stopped):
        print(f"precedent try: stopped; {KEPT}, and the same command goes on", file=sys.stderr)
        return CommandResult("", INTERRUPTED)
    except ForgeError as error:
        raise _told(error, site, variable) from error
    except StoreError as error:
        raise WorldError(str(error), "or try --fresh") from error
    _write(page, render_report(backtest))
    if given.open and not webbrowser.open(page.as_uri()):
        print("precedent try: no browser could be started: open the page by hand", file=sys.stderr)
    if given.json:
        return _figures(backtest, found, read_at) | {"page": str(page), "url": page.as_uri()}
    private = "It holds text of a private repository: keep it where that may be read.\n"
    words = in_words(backtest).replace("\u00a0", " ")
    return f"{words}\n{private if found and found.is_private else ''}{page.as_uri()}\n"


def _settings(config: Path | None) -> Settings:
    if config is None:
        return Settings()
    data = regular_bytes(config)
    if data is None:
        raise UserError(f"there is no file {config}: give the path of the settings")
    settings = load_settings(data, str(config))
    asked = {"its text model (semantic.model)": settings.semantic.model, "pull requests (pulls)": settings.pulls}
    if missing := " and ".join(name for name, is_asked in asked.items() if is_asked):
        print(f"precedent try: {config} is tried without {missing}", file=sys.stderr)
    return settings


def _page_file(given: argparse.Namespace) -> Path:
    """The file of the page, checked before anything is read."""
    if given.history and given.last > given.history:
        raise UserError(f"--last {given.last} is more than is read: add --history {given.last} or more")
    name = f"precedent-{given.repository.repository.replace('/', '-')}.html"
    path: Path = given.out or Path(name)
    with suppress(OSError):  # a name that is too long, a folder that cannot be looked into
        path = (path / name if path.is_dir() else path).absolute()
        is_fit, opened = (path.is_file(), path) if path.exists() else (path.parent.is_dir(), path.parent)
        if is_fit and os.access(opened, os.W_OK):
            return path
    raise UserError(f"{path} cannot be written: name another file with --out")


def _site_of(given: argparse.Namespace, environ: Mapping[str, str]) -> tuple[RepositorySite, str]:
    """The repository, and the variable that holds the token. UserError if their servers differ."""
    wanted: NamedRepository = given.repository
    server, api = (environ.get(name, "").strip() for name in ("GITHUB_SERVER_URL", "GITHUB_API_URL"))
    try:
        server = given.server or address(server or GITHUB)
        api = address(api) if api and not given.server else api_of(server)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"GITHUB_SERVER_URL or GITHUB_API_URL: {error}") from error
    if wanted.server not in ("", server):
        raise UserError(
            f"{wanted.repository} is on {wanted.server}, and the token is for {server}: "
            f"if it is for the other one, add --server {wanted.server}"
        )
    token = Token() if given.offline else token_of(environ)
    if not (token.text or given.offline):
        remedy = f"{_login('GH_TOKEN', server)}; it needs no scope for a public repository"
        raise UserError(f"no token in GH_TOKEN or GITHUB_TOKEN: {remedy}")
    return RepositorySite(wanted.repository, token.text, api, server), token.variable


def _login(variable: str, server: str) -> str:
    host = "" if server == GITHUB else f" --hostname {urlsplit(server).netloc}"
    return f"`export {variable}=$(gh auth token{host})`, or make one at {server}/settings/tokens"


class _Stopped(ForgeError):
    """The user pressed Ctrl-C during a request to GitHub."""


class _Watched:
    """A history with progress reports. Turns Ctrl-C into an error, so that everything read is kept."""

    def __init__(self, history: HistorySource, tick: Callable[[int], None]) -> None:
        self._history, self._tick = history, tick

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """The batches of the history. Raises ForgeError."""
        try:
            for news in self._history.since(moment):
                yield news
                self._tick(len(news.listed))
        except KeyboardInterrupt as error:
            raise _Stopped("stopped") from error


def _read(site: RepositorySite, store: Path, settings: Settings, given: argparse.Namespace) -> Glimpse:
    """Bring the store up to date. Raises ForgeError; everything read before is kept."""
    found = _asking(site, settings)[0].glimpse(None)
    if not found.issues:
        raise UserError(f"{site.repository} has no issue yet: there is nothing to try it on")
    if given.fresh:
        shutil.rmtree(store, ignore_errors=True)
    with on_disk(f"write {store}"):
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
    history, forge = _asking(replace(site, repository=found.name), settings)
    with closing(Memory(FolderStore(store), repo=found.name)) as memory:
        if memory.state.manifest.cursor:
            since = memory.state.manifest.cursor - OVERLAP
            found = history.glimpse(since)
        else:
            since, found = _newest(history, given.history or found.issues, found)
        _announce(found)
        pace = Deadline(Clock(time.monotonic, lambda _: None, forge.pause_requests), datetime.now(UTC))
        with progress("Reading issues", found.changed) as tick:
            read = backfill(memory, _Watched(history, tick), pace, since, lambda _: ())
    if read.stopped:
        raise read.stopped
    if there := count_discussions(forge, found.name):
        print(f"precedent try: {there:,} discussion{'' if there == 1 else 's'} left out of the trial", file=sys.stderr)
    return found


def _asking(site: RepositorySite, settings: Settings) -> tuple[GraphQLHistory, GitHubClient]:
    forge = GitHubClient(site.api_url, site.token, site.repository)
    own = OwnCommentRule(settings.comment.author, marker())
    return GraphQLHistory(site.api_url, site.token, site.repository, own, forge), forge


def _newest(history: GraphQLHistory, wanted: int, found: Glimpse) -> tuple[datetime, Glimpse]:
    """The moment from which on at least ``wanted`` issues changed, few more, and what there is to read since then."""
    early, late = FIRST_ISSUE, datetime.now(UTC)
    for _ in range(STEPS):
        if found.changed <= 1.1 * wanted:
            break
        middle = early + (late - early) / 2
        seen = history.glimpse(middle)
        if seen.changed < wanted:
            late = middle
        else:
            early, found = middle, seen
    return early, found


def _announce(found: Glimpse) -> None:
    part = f"{found.changed:,} of" if found.changed < found.issues else "all"
    requests = max(1, ceil(found.changed / PER_PAGE))
    told = f"{found.name}: reading {part} {count(found.issues, 'issue')} in {count(requests, 'request')}"
    rate, points = found.rate, POINTS * requests
    if rate:
        told += f", for {points:,} of the {rate.left:,} points that are left of this hour"
    told += "; nothing is written there."
    if rate and rate.ends and points > rate.left:
        told += f" That is not enough: what is read is kept; run the same command again after {rate.ends:%H:%M} UTC."
    print(told, file=sys.stderr)


def _told(error: ForgeError, site: RepositorySite, variable: str) -> PrecedentError:
    name, cause, again = site.repository, error.cause, f"try again later: {KEPT}"
    match error:
        case RateLimited():
            when = f"after {error.until.astimezone(UTC):%H:%M} UTC" if error.until else "later"
            return WorldError(f"{cause}; {KEPT}", f"the same command goes on {when}, and --offline shows what there is")
        case Unauthorised():
            cause = f"{variable} holds a token that is wrong or has expired (401)"
            return UserError(cause, _login(variable, site.server_url))
        case OutOfSight():
            cause = f"{name} does not exist on {site.server_url}, or is private and this token may not see it"
            return UserError(cause, "check the name, or use a token that may read it")
        case IssuesOff():
            return UserError(f"issues are switched off in {name}", "try another repository")
        case NotPermitted():
            return UserError(f"{name}: {cause}", "use a token that may read its issues")
        case NoGraphQL():
            cause, again = f"{cause}, by which issues are read", "check --server or GITHUB_API_URL"
    return WorldError(f"{site.api_url} cannot be used: {cause}", again)


def _replayed(
    site: RepositorySite, store: Path, settings: Settings, last: int, seen: Glimpse | None
) -> tuple[Backtest, datetime | None]:
    """Replay the newest issues with everything learned from the history; and the time of that history."""
    with closing(Memory(FolderStore(store, leaves_traces=False), repo=seen.name if seen else None)) as memory:
        if not memory.state.manifest.threads:
            raise UserError(f"nothing of {site.repository} was read yet: leave out --offline")
        repo, server = memory.state.repo or site.repository, site.server_url
        place = RepositoryAddress.at(server, repo)
        renderer = Renderer(links=CommentLinks(server, repo, redirect=False), commands=settings.commands.enabled)
        found = learner(memory, settings, renderer, place, EVENT_SECONDS)
        ranking = memory.ranking
        if memory.state.manifest.threads >= LEAST_THREADS:
            with progress("Learning", REPLAYED) as tick:
                ranking = found.own_ranking(tick)
        with progress("Replaying", last) as tick:
            backtest = found.backtest(ranking, last, None, tick)
        return _heeded(backtest, memory, settings), memory.state.manifest.cursor


def _heeded(backtest: Backtest, memory: Memory, settings: Settings) -> Backtest:
    def is_asked(one: Replayed) -> bool:
        thread = memory.records([one.id])[one.id]
        assert isinstance(thread, Thread)
        return not reason_to_pass(replace(thread.as_of(thread.created_at), locked=False), settings)

    asked = tuple(filter(is_asked, backtest.replayed))
    return replace(backtest, replayed=asked, wanted=len(asked))


def _write(page: Path, text: str) -> None:
    """Write the page readable by its owner only: the repository may be private."""
    with on_disk(f"write {page}"):
        page.touch(mode=0o600)
        page.chmod(0o600)
        page.write_text(text, encoding="utf-8")


def _figures(backtest: Backtest, found: Glimpse | None, read_at: datetime | None) -> dict[str, object]:
    figures = summary(backtest)
    own = {"repository": figures["repo"], "issues": figures["n"], "history": figures["threads"]}
    seen = {"of": found.issues, "private": found.is_private} if found else {"of": None, "private": None}
    return figures | own | seen | {"read_at": stamp(read_at)}
