"""The Action: a runner's environment → one run of the flow → outputs, job summary and exit code."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from bot.backfill import Clock
from bot.comment.links import Links
from bot.comment.render import Renderer, marker
from bot.comment.summary import log_line
from bot.config import load_settings
from bot.doors.reporting import Report, bug, say, sent, tell
from bot.doors.runner import SERVER, Surroundings, leave, plain, prepare_process, surroundings
from bot.errors import PrecedentError, UserError
from bot.evaluation.report import render_report
from bot.flow import handle
from bot.github.client import WRITE_GAP, GitHubClient
from bot.github.events import CALM, KNOWN, Event, parse_event
from bot.github.fixes import FixFinder
from bot.github.graphql import GraphQLHistory
from bot.github.history import EitherHistory, RestHistory
from bot.github.threads import Own
from bot.inputs import Inputs, given_inputs, read_inputs, with_inputs
from bot.memory.branch import BranchStore
from bot.memory.head import Head, open_head, read_head
from bot.memory.learned import Embedder
from bot.memory.memory import Memory
from bot.memory.readonly import ReadOnlyStore
from bot.memory.store import Store
from bot.parts import Bot
from bot.reading.page_keys import WIKI
from bot.rebuild import go_on, prove, rebuild
from bot.recall.mentioned import Place
from bot.settings import Settings, SettingsError
from bot.sources.choice import page_sources

TEMPLATE_FOLDER = ".github/precedent"
TEMPLATES = tuple(
    f"{TEMPLATE_FOLDER}/{name}"
    for name in ("base.md.j2", "context.md.j2", "troubleshooting.md.j2", "reply.md.j2", "words.yml")
)


def run(environ: Mapping[str, str], now: datetime | None = None, write_gap: float = WRITE_GAP) -> int:
    """One run; returns the exit code: 0 fine (silence included), 1 a fault outside, 2 a mistake of the user.

    ``now`` is the time of the run, for replays; None reads the clock. ``write_gap``: seconds between two writes.
    """
    try:
        around = replace(surroundings(environ), write_gap=write_gap)
        report = Report()
        try:
            _run(around, given_inputs(environ), now or datetime.now(UTC), report)
        except PrecedentError as error:
            report.meet(error)
        tell(around, report)
    except PrecedentError as error:
        say(f"::error::{log_line(str(error))}")
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - a bug of ours ends in one line that can be pasted into a report
        say(f"::error::{log_line(bug(error))}")
        return 1
    return report.code


def _run(around: Surroundings, given: Mapping[str, str], now: datetime, report: Report) -> None:
    inputs = read_inputs(given)
    if not inputs.token:
        raise UserError('input "token" is empty: leave it out, or give ${{ github.token }}')
    event = _event(around, inputs)
    if event.name not in KNOWN:
        report.notes.append(f"The event {event.name} is none that Precedent listens to: nothing was done.")
        return
    with _bot(around, inputs, given, now, report) as bot:
        by_hand = event.input("run") if event.name == "workflow_dispatch" else ""
        if by_hand in ("rebuild", "backtest"):
            backtest = rebuild(bot) if by_hand == "rebuild" else prove(bot)
            if backtest:
                path = leave(around, "backtest.html", render_report(backtest))
                are = "would be" if inputs.dry_run and by_hand == "rebuild" else "are"
                report.notes.append(f"{backtest.threads:,} threads {are} in memory; what it would have said: {path}")
            return
        report.hear(handle(event, bot))
        go_on(bot, calm=event.name in CALM)


def _event(around: Surroundings, inputs: Inputs) -> Event:
    try:
        payload = Path(around.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"GITHUB_EVENT_PATH cannot be read: {error.strerror}") from error
    event = parse_event(around.event_name, payload)
    if event.name != "workflow_dispatch":
        return event
    asked = {"run": event.input("run") or event.input("mode"), "issue": event.input("issue").strip()}
    by_hand = read_inputs(asked)
    mode, number = inputs.run or by_hand.run or "catch-up", inputs.issue or by_hand.issue
    if mode == "answer" and not number:
        raise UserError('run: answer needs the input "issue", the number of the issue to answer')
    return replace(event, number=number if mode == "answer" else None, inputs=(("run", mode),))


def _settings(
    around: Surroundings, inputs: Inputs, given: Mapping[str, str], report: Report
) -> tuple[Settings, dict[str, str], str, str]:
    """The settings and templates of the default branch, why nothing may be said (empty: it may), and its commit.

    With bad settings everything is remembered, and what is owed is promised for when they are mended.
    """
    url = f"{around.server_url}/{around.repository}.git"
    head, files = read_head(url, inputs.token, [inputs.config, *TEMPLATES])
    templates = {Path(path).name: data.decode("utf-8", "replace") for path, data in files.items() if path in TEMPLATES}
    settings, muted = Settings(), ""
    try:
        settings = load_settings(files.get(inputs.config), inputs.config)
    except SettingsError as error:
        muted = "the settings cannot be used: what is to be said waits until they are mended"
        report.fail(str(error), error.exit_code)
    return with_inputs(settings, given), templates, muted, head


@contextmanager
def _bot(
    around: Surroundings, inputs: Inputs, given: Mapping[str, str], now: datetime, report: Report
) -> Iterator[Bot]:
    """The parts of one run, put together and given back."""
    if inputs.dry_run:
        report.is_dry = True
        report.notes.append("Dry run: nothing is written.")
    settings, templates, muted, head = _settings(around, inputs, given, report)
    mode = "summary" if inputs.dry_run and settings.mode == "comment" else settings.mode
    settings = replace(settings, mode=mode)
    own = Own(settings.comment.author, marker())
    forge = GitHubClient(around.api_url, inputs.token, around.repository, write_gap=around.write_gap)
    graphql = GraphQLHistory(around.api_url, inputs.token, around.repository, own, forge)
    store = _store(around, settings, inputs)
    memory = Memory(store, embedder=_embedder(settings, around, report), repo=around.repository)
    try:
        yield Bot(
            memory=memory,
            forge=forge,
            history=EitherHistory(graphql, RestHistory(own, forge), report.notes.append),
            own=own,
            settings=settings,
            renderer=Renderer(overrides=templates, links=_links(around, settings), commands=settings.commands.enabled),
            place=Place(around.repository, (urlsplit(around.server_url).hostname or "github.com",), around.server_url),
            fixes=FixFinder(forge, around.repository),
            pages=page_sources(settings.pages, around.repository, forge, partial(_open_branch, around, inputs, head)),
            now=now,
            clock=Clock(time.monotonic, lambda line: say(plain(line)), forge.sit_out),
            note=report.notes.append,
            muted=muted,
            meet=report.meet,
            is_dry=inputs.dry_run,
        )
    finally:
        memory.close()
        for trouble in forge.troubles:
            report.meet(trouble)
        report.notes += [*memory.notes, *(f"A permission is missing: {error}" for error in forge.lacking)]
        report.notes.append(sent(forge.reads, forge.writes, graphql.requests))


def _open_branch(around: Surroundings, inputs: Inputs, head: str, source: str) -> AbstractContextManager[Head]:
    """The default branch of the repository, which stood at ``head`` when its settings were read, or of its wiki."""
    is_wiki = source == WIKI
    name = f"{around.repository}.wiki" if is_wiki else around.repository
    return open_head(f"{around.server_url}/{name}.git", inputs.token, None if is_wiki else head)


def _embedder(settings: Settings, around: Surroundings, report: Report) -> Embedder | None:
    """The text model that the settings name; without one that can be used the run goes by words."""
    if not settings.semantic.model:
        return None
    from bot.numeric.embedder import EmbeddingsUnavailable, model_folder, open_embedder

    try:
        return open_embedder(model_folder(settings.semantic.model, Path(around.workspace or ".")))
    except EmbeddingsUnavailable as error:
        report.notes.append(f"Similar threads are looked for without embeddings: {error}")
    except UserError as error:
        report.fail(str(error), error.exit_code)
    return None


def _store(around: Surroundings, settings: Settings, inputs: Inputs) -> Store:
    url = f"{around.server_url}/{around.repository}.git"
    store = BranchStore(
        url,
        settings.branch,
        inputs.token,
        squash_after=settings.memory.squash_commits,
        squash_bytes=settings.memory.squash_megabytes * 1_000_000,
    )
    return ReadOnlyStore(store) if inputs.dry_run else store


def _links(around: Surroundings, settings: Settings) -> Links:
    choice = settings.comment.redirect_links
    redirect = choice == "on" or (choice == "auto" and around.server_url == SERVER)
    return Links(around.server_url, around.repository, redirect)


def main() -> int:
    """The Action's entry point."""
    prepare_process()
    return run(os.environ)
