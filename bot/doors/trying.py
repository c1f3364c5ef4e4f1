"""The command that tries a repository: it reads, writes nothing there, and shows on a page what would be said."""

from __future__ import annotations

import argparse
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from bot.answer import Context
from bot.comment.render import Renderer, marker
from bot.comment.wording import count
from bot.config import load_settings
from bot.doors.output import Verdict
from bot.doors.progress import progress
from bot.doors.try_page import Tried, figures, render_try, sentences
from bot.doors.try_reading import Task, paced, read, since, task_of
from bot.doors.try_shelf import Shelf
from bot.doors.try_site import Site, held, site_of, told
from bot.duty import reason_to_pass
from bot.errors import UserError, WorldError
from bot.evaluation import learn
from bot.evaluation.backtest import Watch
from bot.evaluation.results import REPLAYED, Backtest, Replayed
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError
from bot.github.graphql import Glimpse, GraphQLHistory
from bot.github.threads import Own
from bot.learning import EVENT_SECONDS, LEAST_THREADS
from bot.memory.cached import alone
from bot.memory.disk import on_disk, regular_bytes
from bot.model import Thread
from bot.ranking import shipped
from bot.recall.mentioned import Place
from bot.settings import Settings

INTERRUPTED = 130
"""The exit code of who was stopped by Ctrl-C: 128 and the number of the signal."""


def run_try(given: argparse.Namespace) -> object:
    """What would have been said on the newest issues of a repository."""
    settings = _settings(given.config)
    if missing := left_out(settings):
        print(f"precedent try: {given.config} is tried without {missing}", file=sys.stderr)
    page = _page_file(given)
    site = site_of(given, os.environ)
    with _shelf(site) as shelf:
        try:
            seen = _known(shelf, site) if given.offline else _read(site, shelf, settings, given)
            tried = _replayed(shelf, site, seen, settings, given)
        except KeyboardInterrupt:
            print(
                f"precedent try: stopped; {held(shelf.size) or 'nothing was read yet'}, and the same command goes on",
                file=sys.stderr,
            )
            return Verdict("", INTERRUPTED)
        except ForgeError as error:
            raise told(error, site, shelf.size) from error
        except sqlite3.Error as error:
            raise WorldError(f"{shelf.path} cannot be used: {error}", "free some space, or try --fresh") from error
    return _shown(tried, page, given)


# -- what was given ------------------------------------------------------------------------------------------------


def _settings(config: Path | None) -> Settings:
    if config is None:
        return Settings()
    data = regular_bytes(config)
    if data is None:
        raise UserError(f"there is no file {config}: give the path of the settings")
    return load_settings(data, str(config))


def _page_file(given: argparse.Namespace) -> Path:
    """Where the page goes; found out before anything is read."""
    if given.history and given.last > given.history:
        raise UserError(f"--last {given.last} is more than is read: add --history {given.last} or more")
    name = f"precedent-{given.repository.repository.replace('/', '-')}.html"
    path: Path = given.out or Path(name)
    with suppress(OSError):  # a name that is too long, a folder that cannot be looked into
        path = path.absolute() / name if path.is_dir() else path.absolute()
        if _takes_a_file(path):
            return path
    raise UserError(f"{path} cannot be written: name another file with --out")


def _takes_a_file(path: Path) -> bool:
    """Whether a file can be written there. A pipe or a device is none."""
    if path.exists():
        return path.is_file() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK)


@contextmanager
def _shelf(site: Site) -> Iterator[Shelf]:
    with alone(site.cache):
        try:
            shelf = Shelf(site.cache / "issues.db")
        except (OSError, sqlite3.Error) as error:
            raise WorldError(
                f"{site.cache} cannot be used: {error}", "name another folder in XDG_CACHE_HOME"
            ) from error
        with closing(shelf):
            yield shelf


def left_out(settings: Settings) -> str:
    """What these settings ask for and a try does not have."""
    asked = {"its text model (semantic.model)": settings.semantic.model, "pull requests (pulls)": settings.pulls}
    return " and ".join(name for name, is_asked in asked.items() if is_asked)


def _whose(config: Path | None, settings: Settings) -> str:
    missing = left_out(settings)
    return f"those of {config}{f', without {missing}' if missing else ''}" if config else "the defaults of the program"


# -- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Seen:
    """What is known of the repository: its name now, how many issues it has, and when that was read."""

    name: str
    is_private: bool
    issues: int
    read_at: datetime


def _read(site: Site, shelf: Shelf, settings: Settings, given: argparse.Namespace) -> Seen:
    """Bring the shelf up to date."""
    found = _asking(site, settings)[0].glimpse(None if given.fresh else since(shelf))
    if given.fresh or shelf.fact("repository") not in ("", str(found.id)):  # another one bears the name now
        shelf.clear()
    if not found.issues:
        raise UserError(f"{site.repository} has no issue yet: there is nothing to try it on")
    task = task_of(shelf, found, given.history)
    _announce(found, task, shelf)
    facts = {"repository": str(found.id), "name": found.name, "private": "1" if found.is_private else "0"}
    shelf.note(**facts, issues=str(found.issues))  # first of all: the reading may be broken off
    history, forge = _asking(replace(site, repository=found.name), settings)
    with progress("Reading issues", task.count) as tick, paced(shelf, history):
        read(history, shelf, task, forge.sit_out, tick)
    now = datetime.now(UTC)
    shelf.note(read_at=now.isoformat())
    return Seen(found.name, found.is_private, found.issues, now)


def _asking(site: Site, settings: Settings) -> tuple[GraphQLHistory, GitHubClient]:
    """What asks the server about this repository."""
    forge = GitHubClient(site.api, site.token, site.repository)
    own = Own(settings.comment.author, marker())
    return GraphQLHistory(site.api, site.token, site.repository, own, forge), forge


def _known(shelf: Shelf, site: Site) -> Seen:
    """What was read before."""
    if not shelf.size:
        raise UserError(f"nothing of {site.repository} was read yet: leave out --offline")
    read_at = shelf.fact("read_at")
    when = datetime.fromisoformat(read_at) if read_at else shelf.upto or datetime.now(UTC)
    issues = max(int(shelf.fact("issues") or 0), shelf.size)
    is_private = shelf.fact("private") != "0"  # where nobody knows, it is
    return Seen(shelf.fact("name") or site.repository, is_private, issues, when)


def _announce(seen: Glimpse, task: Task, shelf: Shelf) -> None:
    """What the reading will cost, on stderr, before it begins."""
    before = 0 if task.anew else shelf.size
    which = f"the newest {task.wanted:,} of " if task.wanted < task.issues else "all "
    told = [f"{seen.name}: {which}{count(task.issues, 'issue')}; nothing is written there."]
    if before:
        told.append(f"{before:,} were read before, {count(task.changed, 'change')} since.")
    took = f"{task.seconds / 60:.0f} min" if task.seconds >= 90 else f"{max(1, task.seconds):.0f} s"
    cost = f"To read: {count(task.requests, 'request')}, about {took}"
    rate = seen.rate
    if rate:
        cost += f", {task.points:,} of the {rate.left:,} points that are left of this hour"
    told.append(f"{cost}.")
    if rate and rate.anew and task.points > rate.left:
        told.append(
            f"They do not suffice: what is read is kept, and the same command goes on after {rate.anew:%H:%M} UTC."
        )
    print(" ".join(told), file=sys.stderr)


# -- replaying -----------------------------------------------------------------------------------------------------


def _replayed(shelf: Shelf, site: Site, seen: Seen, settings: Settings, given: argparse.Namespace) -> Tried:
    """The newest issues as they would have been answered, with what this history teaches."""
    threads = shelf.newest(given.history)
    place = Place(seen.name, (urlsplit(site.server).hostname or "github.com",), site.server)
    tried = Tried(
        backtest=Backtest((), len(threads), 0.0, 0, 0.0, seen.name),
        server=site.server,
        is_private=seen.is_private,
        issues=max(seen.issues, len(threads)),
        oldest=min((thread.created_at for thread in threads), default=None),
        read_at=seen.read_at,
        settings=_whose(given.config, settings),
    )
    renderer = Renderer(links=tried.links, commands=settings.commands.enabled)

    def rendered(thread: Thread, context: Context) -> str:
        return renderer.render(context, thread_id=thread.id, now=thread.created_at, searched=context.searched).text

    shown = replace(settings, pages=replace(settings.pages, max_results=0))  # none are in the replay
    learner = learn.read(threads, Watch(shipped(), shown, place, rendered), EVENT_SECONDS)
    ranking = shipped()
    if len(threads) >= LEAST_THREADS:
        with progress("Learning", REPLAYED) as tick:
            ranking = learner.own_ranking(tick)
    with progress("Replaying", min(given.last, len(threads))) as tick:
        backtest = learner.backtest(ranking, given.last, None, tick)
    return replace(tried, backtest=_heeded(backtest, threads, settings))


def _heeded(backtest: Backtest, threads: list[Thread], settings: Settings) -> Backtest:
    """With silence on what the settings say is left alone."""
    opened = {thread.id: thread.as_of(thread.created_at) for thread in threads}

    def heeded(one: Replayed) -> Replayed:
        reason = reason_to_pass(replace(opened[one.id], locked=False), settings)
        return replace(one, markdown="", reason=reason) if reason else one

    return replace(backtest, replayed=tuple(map(heeded, backtest.replayed)))


# -- showing -------------------------------------------------------------------------------------------------------


def _shown(tried: Tried, page: Path, given: argparse.Namespace) -> object:
    mode = 0o600 if tried.is_private else 0o666
    text = render_try(tried).encode()
    with on_disk(f"write {page}"), open(os.open(page, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "wb") as file:  # noqa: PTH123 - a descriptor
        if tried.is_private:
            os.fchmod(file.fileno(), mode)  # it may have been there, and open to others
        file.write(text)
    address = page.as_uri()
    if given.open:
        _open(address)
    if given.json:
        return figures(tried) | {"page": str(page), "url": address}
    private = ["It holds text of a private repository: keep it where that may be read."] if tried.is_private else []
    return "\n".join([" ".join(sentences(tried)), *private, address, ""])


def _open(address: str) -> None:
    import webbrowser

    if not webbrowser.open(address):
        print("precedent try: no browser could be started: open the page by hand", file=sys.stderr)
