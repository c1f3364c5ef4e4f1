"""The Action: a runner's environment → one run of the flow → outputs, job summary and exit code."""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

from bot.backfill import Clock
from bot.comment.links import Links
from bot.comment.pack import as_markdown
from bot.comment.render import Renderer, marker
from bot.comment.summary import RunReport, Said, log_line, summarise
from bot.config import load_settings
from bot.errors import PrecedentError, UserError, WorldError
from bot.flow import Bot, handle, rebuild
from bot.github.client import GitHubClient
from bot.github.events import KNOWN, Event, parse_event
from bot.github.history import GraphQLHistory
from bot.github.threads import Own
from bot.inputs import Inputs, given_inputs, read_inputs, with_inputs
from bot.memory.branch import BranchStore
from bot.memory.head import read_head_files
from bot.memory.memory import Memory
from bot.memory.readonly import ReadOnlyStore
from bot.memory.store import Store
from bot.recall.mentioned import Place
from bot.settings import Settings, SettingsError
from bot.voice import Spoken

TEMPLATE_FOLDER = ".github/precedent"
TEMPLATES = tuple(f"{TEMPLATE_FOLDER}/{name}.md.j2" for name in ("base", "context", "troubleshooting", "reply"))
SERVER = "https://github.com"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What the runner says. https://docs.github.com/actions/reference/workflows-and-actions/variables"""

    event_name: str
    event_path: str
    repository: str
    api_url: str
    server_url: str
    output: str
    summary: str
    temp: str


def surroundings(environ: Mapping[str, str]) -> Surroundings:
    """The runner's variables; UserError names the one that is missing."""
    needed = {name: environ.get(name, "") for name in ("GITHUB_EVENT_NAME", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY")}
    for name, value in needed.items():
        if not value:
            raise UserError(f"{name} is not set: this command is for a GitHub Actions runner")
    return Surroundings(
        event_name=needed["GITHUB_EVENT_NAME"],
        event_path=needed["GITHUB_EVENT_PATH"],
        repository=needed["GITHUB_REPOSITORY"],
        api_url=environ.get("GITHUB_API_URL") or "https://api.github.com",
        server_url=(environ.get("GITHUB_SERVER_URL") or SERVER).rstrip("/"),
        output=environ.get("GITHUB_OUTPUT", ""),
        summary=environ.get("GITHUB_STEP_SUMMARY", ""),
        temp=environ.get("RUNNER_TEMP", ""),
    )


def run(environ: Mapping[str, str], now: datetime | None = None) -> int:
    """One run; returns the exit code: 0 fine (silence included), 1 a fault outside, 2 a mistake of the user.

    ``now`` is the time of the run, for replays; None reads the clock.
    """
    notes: list[str] = []
    try:
        around = surroundings(environ)
    except UserError as error:
        say(f"::error::{log_line(str(error))}")
        return error.exit_code
    said: list[Spoken] = []
    try:
        said = _run(around, given_inputs(environ), now or datetime.now(UTC), notes)
        failures = [str(spoken.error) for spoken in said if spoken.error]
        code = 1 if failures else 0
    except PrecedentError as error:
        failures, code = [str(error)], error.exit_code
    for line in failures:
        say(f"::error::{log_line(line)}")
    _report(around, said, notes, failures)
    return code


def _run(around: Surroundings, given: Mapping[str, str], now: datetime, notes: list[str]) -> list[Spoken]:
    inputs = read_inputs(given)
    if not inputs.token:
        raise UserError("input \"token\" is empty: leave it out, or give ${{ github.token }}")
    event = _event(around, inputs)
    if event.name not in KNOWN:
        notes.append(f"The event {event.name} is none that Precedent listens to: nothing was done.")
        return []
    with _bot(around, inputs, given, now, notes) as bot:
        if event.name == "workflow_dispatch" and event.input("run") == "rebuild":
            notes.append(f"{rebuild(bot):,} threads are in memory.")
            return []
        told = handle(event, bot)
        notes.extend(bot.memory.notes)
        return told


def _event(around: Surroundings, inputs: Inputs) -> Event:
    try:
        payload = Path(around.event_path).read_bytes()
    except OSError as error:
        raise UserError(f"GITHUB_EVENT_PATH cannot be read: {error.strerror}") from error
    event = parse_event(around.event_name, payload)
    if event.name != "workflow_dispatch":
        return event
    mode = inputs.run or event.input("run") or event.input("mode") or "catch-up"
    number = inputs.issue or int(event.input("issue") or 0)
    if mode == "answer" and not number:
        raise UserError('run: answer needs the input "issue", the number of the issue to answer')
    return replace(event, number=number if mode == "answer" else None, inputs=(("run", mode),))


def _settings(
    around: Surroundings, inputs: Inputs, given: Mapping[str, str], notes: list[str]
) -> tuple[Settings, dict[str, str]]:
    """The settings and templates of the default branch; with bad settings nothing is said, but all is remembered."""
    url = f"{around.server_url}/{around.repository}.git"
    files = read_head_files(url, inputs.token, [inputs.config, *TEMPLATES])
    templates = {Path(path).name: data.decode("utf-8", "replace") for path, data in files.items() if path in TEMPLATES}
    try:
        settings = load_settings(files.get(inputs.config), inputs.config)
    except SettingsError as error:
        notes.append(f"{error} (until then nothing is said; everything is remembered)")
        settings = replace(Settings(), mode="off")
    return with_inputs(settings, given), templates


@contextmanager
def _bot(
    around: Surroundings, inputs: Inputs, given: Mapping[str, str], now: datetime, notes: list[str]
) -> Iterator[Bot]:
    """The parts of one run, put together and given back."""
    settings, templates = _settings(around, inputs, given, notes)
    mode = "summary" if inputs.dry_run and settings.mode == "comment" else settings.mode
    settings = replace(settings, mode=mode)
    own = Own(settings.comment.author, marker())
    forge = GitHubClient(around.api_url, inputs.token, around.repository)
    store = _store(around, settings, inputs)
    memory = Memory(store)
    try:
        yield Bot(
            memory=memory,
            forge=forge,
            history=GraphQLHistory(around.api_url, inputs.token, around.repository, own, forge),
            own=own,
            settings=settings,
            renderer=Renderer(overrides=templates, links=_links(around, settings), commands=False),
            place=Place(around.repository, (urlsplit(around.server_url).hostname or "github.com",)),
            now=now,
            clock=Clock(time.monotonic, lambda line: say(log_line(line))),
            note=notes.append,
        )
    finally:
        memory.close()
        notes.append(f"API: {forge.reads} reads, {forge.writes} writes.")


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


def _report(around: Surroundings, said: Iterable[Spoken], notes: list[str], failures: list[str]) -> None:
    """Outputs for the next step, the job summary, and one line a thread in the log."""
    told = list(said)
    for spoken in told:
        say(log_line(f"Issue {spoken.id}: {spoken.action} ({spoken.reason})"))
    for note in notes:
        say(log_line(note))
    if around.summary:
        lines = tuple(Said(s.id, s.action, s.title, s.reason, s.comment.url if s.comment else "", _shadow(s)) for s in told)
        _append(around.summary, summarise(RunReport(lines, tuple(notes), tuple(failures))))
    if around.output:
        first = told[0] if told else Spoken(0, "", "silent", failures[0] if failures else "nothing was due")
        _append(around.output, outputs(first, _context_file(around, first)))


def _shadow(spoken: Spoken) -> str:
    return spoken.text if spoken.action == "would say" else ""


def outputs(spoken: Spoken, context: str) -> str:
    """The output file's text: numbers, booleans, our own URLs, paths and reasons of ours; never a stranger's words."""
    matches = [
        {"number": match.id, "state": match.state, "similarity": match.similarity}
        for match in (*spoken.context.seen_before, *spoken.context.open_now)
    ]
    values = {
        "matches": json.dumps(matches),
        "context": context,
        "comment-id": str(spoken.comment.id) if spoken.comment else "",
        "comment-url": spoken.comment.url if spoken.comment else "",
        "spoke": "true" if spoken.spoke else "false",
        "reason": " ".join(spoken.reason.split()),
    }
    fence = f"precedent_{secrets.token_hex(16)}"
    return "".join(f"{name}<<{fence}\n{value}\n{fence}\n" for name, value in values.items())


def _context_file(around: Surroundings, spoken: Spoken) -> str:
    """A Markdown file for an agent's prompt, beside the runner's other temporary files; "" when there is nothing."""
    if spoken.context.is_empty:
        return ""
    folder = Path(around.temp or Path(around.output).parent)
    path = folder / f"precedent-{spoken.id}.md"
    try:
        path.write_text(as_markdown(spoken.context), encoding="utf-8", errors="replace")
    except OSError as error:
        raise WorldError(f"the context file cannot be written to {folder}: {error.strerror}") from error
    return str(path)


def _append(path: str, text: str) -> None:
    with Path(path).open("a", encoding="utf-8", errors="replace") as file:
        file.write(text)


def say(line: str) -> None:
    """One line of the log."""
    print(line, flush=True)


def main() -> int:
    """The Action's entry point."""
    return run(os.environ)
