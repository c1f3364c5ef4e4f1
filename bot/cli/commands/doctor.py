"""precedent doctor: runs all checks and reports problems and how to fix them. Writes nothing."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.arguments import token_of
from bot.cli.checks import github, memory
from bot.cli.checks.collect import DoctorOptions, Gathered, gather
from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import GITHUB, CheckResult, Level, RepositoryLinks, api_of, exit_code, place_of
from bot.cli.output import CommandResult, progress
from bot.comment.clean_text import log_line
from bot.errors import StoreError, UserError
from bot.git.checkout import RemoteRepository, remote_of_checkout, top_of
from bot.git.errors import RemoteUnreachable
from bot.settings.schema import Settings


def judge(seen: Gathered) -> list[CheckResult]:
    if seen.place.store:
        return [*_setup(seen), *_memory(seen)]
    return [*_forge(seen), *_setup(seen), _branch(seen), *_memory(seen), *_discussions(seen)]


def _forge(seen: Gathered) -> Iterator[CheckResult]:
    told, place = seen.forge, seen.place
    if told is None:
        says = "the API was not asked: what it knows of token, repository and limits was left out"
        yield CheckResult("repository", "note", says, "leave out --offline")
        return
    yield github.check_repository(told, place, git_reads=not isinstance(seen.tip, StoreError))
    if told.limits is not None or told.repository is not None:
        yield from github.check_limits(told, seen.now)


def _setup(seen: Gathered) -> Iterator[CheckResult]:
    setup, place = seen.setup, seen.place
    if setup is None:
        return
    if setup.fault and not isinstance(seen.tip, StoreError):
        remedy = "put the file itself in its place on the default branch"
        outside = isinstance(setup.fault, RemoteUnreachable)
        yield CheckResult(
            "settings", "error", f"the default branch cannot be read: {setup.fault.cause}", remedy, outside
        )
    elif setup.fault and not setup.checkout:
        yield CheckResult("settings", "note", "settings and workflow were left out: they cannot be reached")
    elif setup.checkout:
        yield CheckResult(
            "settings", "note", "those of this checkout were read, as the default branch cannot be reached"
        )
    yield from setup.told
    if not place.store and (setup.checkout or not setup.fault):
        comments = setup.settings.mode == "comment"
        unread = any(told.check == "workflow" for told in setup.told)
        yield from github.check_workflow(setup.steps, comments=comments, is_checkout=setup.checkout, unread=unread)


def _branch(seen: Gathered) -> CheckResult:
    used = seen.setup.settings if seen.setup else Settings()
    has_token = seen.forge is not None and seen.forge.has_token
    return memory.check_branch(seen.tip, seen.place, used, seen.now, token=has_token)


def _memory(seen: Gathered) -> Iterator[CheckResult]:
    held, place = seen.held, seen.place
    if isinstance(held, RemoteUnreachable):
        yield CheckResult("memory", "error", f"git cannot reach the server: {held.cause}", "run it again later", True)
    elif isinstance(held, StoreError):
        yield CheckResult("memory", "error", f"it cannot be read: {held.cause}", place.by_hand())
    elif held:
        yield from memory.check_manifest(held, place)
        yield from memory.check_index(held, place)


def _discussions(seen: Gathered) -> Iterator[CheckResult]:
    if seen.forge and seen.setup:
        held = seen.held if isinstance(seen.held, InspectedMemory) and not seen.held.fault else None
        yield from github.check_discussions(seen.forge, seen.setup.settings, seen.setup.steps, held, seen.place)


def run_doctor(given: argparse.Namespace) -> CommandResult:
    with progress("Checking", None):
        findings = examine(given, os.environ, datetime.now(UTC))
    code = exit_code(findings)
    if given.json:
        return CommandResult(as_data(findings), code)
    return CommandResult(tell(findings, terminal(), verbose=given.verbose), code)


def examine(given: argparse.Namespace, environ: Mapping[str, str], now: datetime) -> list[CheckResult]:
    """All findings. UserError if the arguments name nothing to check."""
    wanted, refused = wanted_of(given, environ)
    return [*refused, *judge(gather(wanted, now))]


def wanted_of(given: argparse.Namespace, environ: Mapping[str, str]) -> tuple[DoctorOptions, list[CheckResult]]:
    """What to check, and a finding if the token is not sent."""
    if given.store:
        is_checkout = (Path(given.store) / ".git").exists()
        return DoctorOptions(RepositoryLinks(store=str(given.store), is_checkout=is_checkout), config=given.config), []
    found = None if given.repo else _counted()
    server, repository = _site(found) if found else (GITHUB, given.repo)
    server = given.server or server
    place = RepositoryLinks(repository, server, given.api or api_of(server), branch=given.branch or Settings().branch)
    token, refused = token_of(environ).text, []
    known = given.server or given.api or place.trusts_tokens or environ.get("GITHUB_SERVER_URL", "") == server
    if token and not known:
        says = f"the one in the environment was not sent to {server}, which is not GitHub's"
        remedy = f"if it is for that server, say so: `precedent doctor --repo {repository} --server {server}`"
        token, refused = "", [CheckResult("token", "warning", says, remedy)]
    wanted = DoctorOptions(place, token, branch=given.branch or "", config=given.config, offline=given.offline)
    if found:
        address = "" if given.server else found.url
        wanted = replace(wanted, address=address, checkout=top_of(Path.cwd()))
    return wanted, refused


def _counted() -> RemoteRepository:
    found = remote_of_checkout(top_of(Path.cwd()))
    if isinstance(found, str):
        raise UserError(found)
    return found


def _site(remote: RemoteRepository) -> tuple[str, str]:
    found = place_of(remote.url)
    if found is None:
        raise UserError(
            f"the remote {remote.name} is no repository on a GitHub server: give --repo OWNER/NAME and --server URL"
        )
    return found


SIGNS: dict[Level, str] = {"ok": "✓", "note": "·", "warning": "!", "error": "✗"}
PLAIN: dict[Level, str] = {"ok": "+", "note": "-", "warning": "!", "error": "x"}
_COLOURS: dict[Level, str] = {"ok": "32", "note": "2", "warning": "33", "error": "31"}
_WIDTH = 13


@dataclass(frozen=True, slots=True)
class Terminal:
    """The abilities of a terminal: ``signs`` beyond ASCII, and colours."""

    signs: bool = True
    colours: bool = False


def terminal() -> Terminal:
    """The terminal of stdout. No colours if NO_COLOR is set (https://no-color.org), or in a pipe."""
    try:
        "".join(SIGNS.values()).encode(sys.stdout.encoding or "ascii")
        signs = True
    except (UnicodeEncodeError, LookupError):
        signs = False
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Terminal(signs, wanted and sys.stdout.isatty())


def tell(findings: Iterable[CheckResult], screen: Terminal, *, verbose: bool = False) -> str:
    """The findings, with the number of problems last. ``verbose``: include all that is fine."""
    every = list(findings)
    shown = every if verbose else list(_telling(every))
    lines = [line for finding in shown for line in _lines(finding, screen, verbose=verbose)]
    return "".join(f"{line}\n" for line in [*lines, "", _sum(every)])


def as_data(findings: Iterable[CheckResult]) -> dict[str, object]:
    """The findings as JSON has them, and whether all is well; what no encoding knows is replaced."""
    every = list(findings)
    told = [{**asdict(each), "says": _encodable(each.says), "remedy": _encodable(each.remedy)} for each in every]
    return {"findings": told, "ok": exit_code(every) == 0}


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _telling(findings: list[CheckResult]) -> Iterator[CheckResult]:
    """Of each check its problems, or else one line: what should be known rather than what is fine."""
    for check in dict.fromkeys(finding.check for finding in findings):
        same = [finding for finding in findings if finding.check == check]
        problems = [finding for finding in same if finding.is_problem]
        notes = [finding for finding in same if finding.level == "note"]
        yield from problems or (notes or same)[:1]


def _lines(finding: CheckResult, screen: Terminal, *, verbose: bool) -> Iterator[str]:
    sign = (SIGNS if screen.signs else PLAIN)[finding.level]
    if screen.colours:
        sign = f"\033[{_COLOURS[finding.level]}m{sign}\033[0m"
    yield f"{sign} {finding.check:<{_WIDTH}} {_harmless(finding.says, screen)}"
    if finding.remedy and (finding.is_problem or verbose):
        yield f"  {'→' if screen.signs else '->'} {_harmless(finding.remedy, screen)}"


def _harmless(text: str, screen: Terminal) -> str:
    """One line that moves no cursor, and that the log of a runner takes for no command."""
    line = log_line(text).replace("%25", "%")
    return line if screen.signs else line.encode("ascii", "backslashreplace").decode()


def _sum(findings: list[CheckResult]) -> str:
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if not errors and not warnings:
        return "All is well."
    told = [
        f"{count} {noun}{'s' if count > 1 else ''}"
        for count, noun in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return f"{' and '.join(told)}."
