"""precedent try: reads a repository into a store on this machine, and replays its newest issues."""

from __future__ import annotations

import argparse
import os
import shutil
import time
import webbrowser
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import replace
from datetime import UTC, datetime
from math import ceil
from pathlib import Path
from urllib.parse import urlsplit

from bot.cli.arguments import NamedRepository, Token, address, history_size, named_repository, number, token_of
from bot.cli.checks.result import api_of
from bot.cli.options import MAX_COUNT, Alternatives, Arguments, argument, file_option, flag, json_option, option
from bot.cli.output import CommandResult, progress, warn
from bot.comment.catalogue import count
from bot.comment.links import CommentLinks
from bot.comment.marker import marker
from bot.comment.render import Renderer
from bot.domain.hosts import GITHUB
from bot.domain.thread import RepositoryAddress
from bot.domain.thread_json import stamp
from bot.errors import PrecedentError, StoreError, UserError, WorldError
from bot.evaluation.metrics import summary
from bot.evaluation.report import render_report, summary_text
from bot.evaluation.results import REPLAY_LIMIT, Backtest
from bot.files import on_disk, read_regular
from bot.github.client import GitHubClient
from bot.github.discussion_comments import count_discussions
from bot.github.errors import (
    ForgeError,
    IssuesOff,
    NoGraphQL,
    NotPermitted,
    RateLimited,
    RepositoryNotVisible,
    Unauthorised,
)
from bot.github.history import (
    PER_PAGE,
    POINTS_PER_REQUEST,
    GraphQLHistory,
    HistorySource,
    RepositoryPreview,
)
from bot.github.threads import OwnCommentRule
from bot.github.updates import OVERLAP, Updates
from bot.local_cache.local_memory import cache_folder, cache_name
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.text_model import MODEL_OF_THE_IMAGE
from bot.pipeline.backfill import Clock, Deadline, backfill
from bot.pipeline.learn import LEARN_SECONDS, MIN_LEARN_THREADS, learner, without_ignored
from bot.pipeline.site import RepositorySite
from bot.settings.schema import Settings
from bot.settings.yaml_file import load_settings

INTERRUPT_EXIT_CODE = 130
"""Exit code after Ctrl-C: 128 and the number of the signal."""

GITHUB_START = datetime(2008, 1, 1, tzinfo=UTC)
"""No issue is older than GitHub."""

BISECTION_STEPS = 24
"""Bisections of the time since then, down to half a minute; each costs one point."""

KEPT_NOTE = "what was read is kept"


_DOWNLOADS = Alternatives()
DEFAULT_HISTORY = 3_000
"""Issues that are read by default; they cost 120 of the 5,000 points per hour."""


class TryArguments(Arguments):
    """Reads the issues of a repository and writes a local page that shows what Precedent would have said on each of the
    newest ones, knowing only older ones. It writes nothing to the repository, so a token without scopes is enough for
    a public one. Reads the token from PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN in the environment."""

    repository: NamedRepository = argument(
        "OWNER/NAME", "the repository, or the URL of one of its pages", type=named_repository
    )
    last: int = option("how many issues are shown (default 50)", type=number(1, MAX_COUNT), default=50, metavar="N")
    history: int = option(
        f"read at least this many issues, most recently changed first, or all (default {DEFAULT_HISTORY:,})",
        type=history_size,
        default=DEFAULT_HISTORY,
        metavar="N",
    )
    config: Path | None = file_option("settings to try (default: the built-in ones)")
    out: Path | None = file_option("the page (default: precedent-OWNER-NAME.html in this folder)")
    open: bool = flag("open the page in the browser")
    server: str | None = option("your own server, which receives the token", type=address, metavar="URL")
    fresh: bool = flag("discard earlier downloads", among=_DOWNLOADS)
    offline: bool = flag("use only earlier downloads", among=_DOWNLOADS)
    json: bool = json_option("figures and the path of the page")


def run_try(args: TryArguments) -> object:
    settings = _settings(args.config)
    page = _page_file(args)
    site, variable = _site_of(args, os.environ)
    store = cache_folder() / "tries" / cache_name(f"{site.api_url} {site.repository.lower()} {args.history or 'all'}")
    try:
        glimpse = None if args.offline else _read_history(site, store, settings, args)
        backtest, read_at = _replay(site, store, settings, args.last, glimpse)
    except (KeyboardInterrupt, _Stopped):
        warn(f"precedent try: stopped; {KEPT_NOTE}: run the same command again to continue")
        return CommandResult("", INTERRUPT_EXIT_CODE)
    except ForgeError as error:
        raise _explain_error(error, site, variable) from error
    except StoreError as error:
        raise WorldError(str(error), "or try --fresh") from error
    _write_page(page, render_report(backtest))
    if args.open and not webbrowser.open(page.as_uri()):
        warn("precedent try: no browser could be started: open the page by hand")
    if args.json:
        return _figures(backtest, glimpse, read_at) | {"page": str(page), "url": page.as_uri()}
    private = "It contains text of a private repository: keep it private too.\n"
    words = summary_text(backtest).replace("\u00a0", " ")
    return f"{words}\n{private if glimpse and glimpse.is_private else ''}{page.as_uri()}\n"


def _settings(config: Path | None) -> Settings:
    if config is None:
        return Settings()
    data = read_regular(config)
    if data is None:
        raise UserError(f"there is no file {config}: give the path of the settings")
    settings = load_settings(data, str(config))
    model = settings.similar.model != MODEL_OF_THE_IMAGE and settings.similar.model
    unsupported = {"its text model (similar.model)": model, "pull requests (pulls)": settings.pulls}
    if missing := " and ".join(name for name, is_wanted in unsupported.items() if is_wanted):
        warn(f"precedent try: {config} is tried without {missing}")
    return settings


def _page_file(args: TryArguments) -> Path:
    """The path of the page, checked before anything is read."""
    if args.history and args.last > args.history:
        raise UserError(f"--last {args.last} is more than is read: add --history {args.last} or more")
    name = f"precedent-{args.repository.repository.replace('/', '-')}.html"
    path: Path = args.out or Path(name)
    with suppress(OSError):  # the name is too long, or the folder is not accessible
        path = (path / name if path.is_dir() else path).absolute()
        is_fit, writable = (path.is_file(), path) if path.exists() else (path.parent.is_dir(), path.parent)
        if is_fit and os.access(writable, os.W_OK):
            return path
    raise UserError(f"{path} cannot be written: name another file with --out")


def _site_of(args: TryArguments, environ: Mapping[str, str]) -> tuple[RepositorySite, str]:
    """The repository, and the variable that holds the token. UserError if their servers differ."""
    requested: NamedRepository = args.repository
    server, api = (environ.get(name, "").strip() for name in ("GITHUB_SERVER_URL", "GITHUB_API_URL"))
    try:
        server = args.server or address(server or GITHUB)
        api = address(api) if api and not args.server else api_of(server)
    except argparse.ArgumentTypeError as error:
        raise UserError(f"GITHUB_SERVER_URL or GITHUB_API_URL: {error}") from error
    if requested.server not in ("", server):
        raise UserError(
            f"{requested.repository} is on {requested.server}, and the token is for {server}: "
            f"if it is for the other one, add --server {requested.server}"
        )
    token = Token() if args.offline else token_of(environ)
    if not (token.text or args.offline):
        remedy = f"{_token_remedy('GH_TOKEN', server)}; it needs no scope for a public repository"
        raise UserError(f"no token in GH_TOKEN or GITHUB_TOKEN: {remedy}")
    return RepositorySite(requested.repository, token.text, api, server), token.variable


def _token_remedy(variable: str, server: str) -> str:
    host = "" if server == GITHUB else f" --hostname {urlsplit(server).netloc}"
    return f"`export {variable}=$(gh auth token{host})`, or make one at {server}/settings/tokens"


class _Stopped(ForgeError):
    """The user pressed Ctrl-C during a request to GitHub."""


class _WatchedHistory:
    """A history with progress reports. Turns Ctrl-C into an error, so that everything read is kept."""

    def __init__(self, history: HistorySource, tick: Callable[[int], None]) -> None:
        self._history, self._tick = history, tick

    def since(self, moment: datetime | None) -> Iterator[Updates]:
        """The batches of the history. Raises ForgeError."""
        try:
            for updates in self._history.since(moment):
                yield updates
                self._tick(len(updates.listed))
        except KeyboardInterrupt as error:
            raise _Stopped("stopped") from error


def _read_history(site: RepositorySite, store: Path, settings: Settings, args: TryArguments) -> RepositoryPreview:
    """Bring the store up to date. Raises ForgeError; everything read before is kept."""
    glimpse = _github_clients(site, settings)[0].glimpse(None)
    if not glimpse.issues:
        raise UserError(f"{site.repository} has no issues yet: there is nothing to try it on")
    if args.fresh:
        shutil.rmtree(store, ignore_errors=True)
    with on_disk(f"write {store}"):
        store.mkdir(parents=True, exist_ok=True, mode=0o700)
    history, forge = _github_clients(replace(site, repository=glimpse.name), settings)
    with closing(Memory(FolderStore(store), repo=glimpse.name)) as memory:
        if memory.state.manifest.cursor:
            since = memory.state.manifest.cursor - OVERLAP
            glimpse = history.glimpse(since)
        else:
            since, glimpse = _find_start(history, args.history or glimpse.issues, glimpse)
        _announce(glimpse)
        now = forge.correct_time(datetime.now(UTC))
        deadline = Deadline(Clock(time.monotonic, lambda _: None, forge.pause_requests), now)
        with progress("Reading issues", glimpse.changed) as tick:
            result = backfill(memory, _WatchedHistory(history, tick), deadline, since, lambda _: ())
    if result.stopped:
        raise result.stopped
    if discussions := count_discussions(forge, glimpse.name):
        warn(f"precedent try: {discussions:,} discussion{'' if discussions == 1 else 's'} left out of the trial")
    return glimpse


def _github_clients(site: RepositorySite, settings: Settings) -> tuple[GraphQLHistory, GitHubClient]:
    forge = GitHubClient(site.api_url, site.token, site.repository)
    own = OwnCommentRule(settings.comment.author, marker())
    return GraphQLHistory(site.repository, own, forge), forge


def _find_start(
    history: GraphQLHistory, minimum: int, glimpse: RepositoryPreview
) -> tuple[datetime, RepositoryPreview]:
    """A time since when at least ``minimum`` issues changed, but few more, and what there is to read since then."""
    early, late = GITHUB_START, datetime.now(UTC)
    for _ in range(BISECTION_STEPS):
        if glimpse.changed <= 1.1 * minimum:
            break
        middle = early + (late - early) / 2
        later_glimpse = history.glimpse(middle)
        if later_glimpse.changed < minimum:
            late = middle
        else:
            early, glimpse = middle, later_glimpse
    return early, glimpse


def _announce(glimpse: RepositoryPreview) -> None:
    part = f"{glimpse.changed:,} of" if glimpse.changed < glimpse.issues else "all"
    requests = max(1, ceil(glimpse.changed / PER_PAGE))
    message = f"{glimpse.name}: reading {part} {count(glimpse.issues, 'issue')} in {count(requests, 'request')}"
    rate, points = glimpse.rate, POINTS_PER_REQUEST * requests
    if rate:
        message += f", for {points:,} of the {rate.left:,} points left this hour"
    message += "; nothing is written there."
    if rate and rate.ends and points > rate.left:
        message += f" That is not enough: what is read is kept; run the same command again after {rate.ends:%H:%M} UTC."
    warn(message)


def _explain_error(error: ForgeError, site: RepositorySite, variable: str) -> PrecedentError:
    own_server = ", or name your own server with --server URL" if site.server_url == GITHUB else ""
    name, cause, remedy = site.repository, error.cause, f"try again later ({KEPT_NOTE}){own_server}"
    match error:
        case RateLimited():
            when = f"after {error.until.astimezone(UTC):%H:%M} UTC" if error.until else "later"
            return WorldError(
                f"{cause}; {KEPT_NOTE}",
                f"run the same command again {when} to continue, or use --offline with what was read",
            )
        case Unauthorised():
            cause = f"{variable} holds a token that is wrong or has expired (401)"
            return UserError(cause, _token_remedy(variable, site.server_url))
        case RepositoryNotVisible():
            cause = f"{name} does not exist on {site.server_url}, or is private and this token may not see it"
            return UserError(cause, "check the name, or use a token that may read it")
        case IssuesOff():
            return UserError(f"issues are switched off in {name}", "try another repository")
        case NotPermitted():
            return UserError(f"{name}: {cause}", "use a token that may read its issues")
        case NoGraphQL():
            cause, remedy = f"{cause}, which is needed to read issues", "check --server or GITHUB_API_URL"
    return WorldError(f"{site.api_url} cannot be used: {cause}", remedy)


def _replay(
    site: RepositorySite, store: Path, settings: Settings, last: int, glimpse: RepositoryPreview | None
) -> tuple[Backtest, datetime | None]:
    """Replay the newest issues with a model of the history. Also returns when that history was read."""
    with closing(Memory(FolderStore(store), repo=glimpse.name if glimpse else None)) as memory:
        memory.hidden = settings.ignore.hidden
        if not memory.state.manifest.threads:
            raise UserError(f"nothing of {site.repository} has been read yet: leave out --offline")
        repo, server = memory.state.repo or site.repository, site.server_url
        repository_address = RepositoryAddress.at(server, repo)
        renderer = Renderer(links=CommentLinks(server, repo, redirect=False), commands=settings.commands.enabled)
        history_learner = learner(memory, settings, renderer, repository_address, LEARN_SECONDS)
        ranking = memory.ranking
        if memory.state.manifest.threads >= MIN_LEARN_THREADS:
            with progress("Learning", REPLAY_LIMIT) as tick:
                ranking = history_learner.own_ranking(tick)
        with progress("Replaying", last) as tick:
            backtest = history_learner.backtest(ranking, last, None, tick)
        return without_ignored(backtest, memory, settings), memory.state.manifest.cursor


def _write_page(page: Path, text: str) -> None:
    """Write the page readable by its owner only: the repository may be private."""
    with on_disk(f"write {page}"):
        page.touch(mode=0o600)
        page.chmod(0o600)
        page.write_text(text, encoding="utf-8")


def _figures(backtest: Backtest, glimpse: RepositoryPreview | None, read_at: datetime | None) -> dict[str, object]:
    figures = summary(backtest)
    renamed = {"repository": figures["repo"], "issues": figures["n"], "history": figures["threads"]}
    origin = {"of": glimpse.issues, "private": glimpse.is_private} if glimpse else {"of": None, "private": None}
    return figures | renamed | origin | {"read_at": stamp(read_at)}
