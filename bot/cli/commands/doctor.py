"""precedent doctor: runs all checks and reports problems and how to fix them. Writes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from bot.cli.arguments import address, token_of
from bot.cli.checks import github, memory
from bot.cli.checks.collect import DoctorOptions, SetupFacts, gather
from bot.cli.checks.memory import InspectedMemory
from bot.cli.checks.result import CheckResult, Level, RepositoryLinks, api_of, exit_code
from bot.cli.colours import BAD, GOOD
from bot.cli.options import Arguments, file_option, flag, folder_option, json_option, option, repo_option
from bot.cli.output import ColouredText, CommandResult, progress
from bot.comment.clean_text import log_line
from bot.domain.hosts import GITHUB, parse_remote_url
from bot.errors import StoreError, UserError
from bot.git.checkout import RemoteRepository, find_top, remote_of_checkout
from bot.git.errors import RemoteUnreachable
from bot.memory.text_model import MODEL_OF_THE_IMAGE
from bot.settings.schema import Settings


class DoctorArguments(Arguments):
    """Checks everything and writes nothing. Reads a token from PRECEDENT_TOKEN, GH_TOKEN or GITHUB_TOKEN in the
    environment. Exit codes: 0 all is well, notes included; 1 there are warnings, or something outside failed; 2
    there is an error that you can fix."""

    repo: str | None = repo_option("the repository (default: that of the remote upstream here, else origin)")
    server: str | None = option("its server, which then receives the token", type=address, metavar="URL")
    api: str | None = option("the address of that server's API", type=address, metavar="URL")
    branch: str | None = option("the memory branch (default: that of the workflow or settings)", metavar="NAME")
    config: Path | None = file_option("settings to check before you push them")
    store: Path | None = folder_option("check this store instead of a repository")
    offline: bool = flag("ask git, but not the API")
    verbose: bool = flag("show every check in full")
    json: bool = json_option("the findings")


GAIN = "of 200 pairs kept aside, it shows 43, of which 33 are useful, instead of 35, of which 23 are"
"""What the model adds, as measured in docs/semantic.md."""


def judge(facts: SetupFacts) -> list[CheckResult]:
    if facts.target.store:
        return [*_check_setup(facts), *_check_memory(facts)]
    return [
        *_check_api(facts),
        *_check_setup(facts),
        _check_branch(facts),
        *_check_memory(facts),
        *_check_discussions(facts),
    ]


def _check_api(facts: SetupFacts) -> Iterator[CheckResult]:
    api_facts, target = facts.api, facts.target
    if api_facts is None:
        says = "the API was not asked: the checks of token, repository and limits were skipped"
        yield CheckResult("repository", "note", says, "leave out --offline")
        return
    yield github.check_repository(api_facts, target, git_reads=not isinstance(facts.tip, StoreError))
    if api_facts.limits is not None or api_facts.repository is not None:
        yield from github.check_limits(api_facts, facts.now)


def _check_setup(facts: SetupFacts) -> Iterator[CheckResult]:
    setup, target = facts.setup, facts.target
    if setup is None:
        return
    if setup.fault and not isinstance(facts.tip, StoreError):
        remedy = "replace it with the file itself on the default branch"
        outside = isinstance(setup.fault, RemoteUnreachable)
        yield CheckResult(
            "settings", "error", f"the default branch cannot be read: {setup.fault.cause}", remedy, outside
        )
    elif setup.fault and not setup.is_from_checkout:
        yield CheckResult(
            "settings", "note", "settings and workflow were skipped: the default branch cannot be reached"
        )
    elif setup.is_from_checkout:
        yield CheckResult("settings", "note", "read from this checkout, as the default branch cannot be reached")
    yield from setup.findings
    if not target.store and (setup.is_from_checkout or not setup.fault):
        comments = setup.settings.mode == "comment"
        unread = any(finding.check == "workflow" for finding in setup.findings)
        yield from github.check_workflow(
            setup.steps, comments=comments, is_checkout=setup.is_from_checkout, unread=unread
        )
        yield from github.next_issue(setup.settings.mode, setup.steps)
        yield check_text_model(setup.settings.similar.model, is_here=facts.has_model)


def check_text_model(named: str, *, is_here: bool) -> CheckResult:
    """``named`` is the setting ``similar.model``; ``is_here``: the folder of the image's model has one."""
    if not named:
        return CheckResult("text model", "ok", "similar.model switches it off: issues are compared by words")
    if named != MODEL_OF_THE_IMAGE:
        return CheckResult("text model", "ok", f"similar.model names {named}")
    if is_here:
        return CheckResult("text model", "ok", f"{named} has one: issues are compared by words and by meaning")
    says = f"none in {named}: this installation compares issues by words. With one, {GAIN}"
    remedy = f"in a clone of Precedent: `pip install '.[semantic]'`, then `python tools/minilm.py {named}`"
    return CheckResult("text model", "note", says, remedy)


def _check_branch(facts: SetupFacts) -> CheckResult:
    has_token = facts.api is not None and facts.api.has_token
    return memory.check_branch(facts.tip, facts.target, facts.now, has_token=has_token)


def _check_memory(facts: SetupFacts) -> Iterator[CheckResult]:
    inspected, target = facts.memory, facts.target
    if isinstance(inspected, RemoteUnreachable):
        yield CheckResult(
            "memory", "error", f"git cannot reach the server: {inspected.cause}", "run it again later", True
        )
    elif isinstance(inspected, StoreError):
        yield CheckResult("memory", "error", f"it cannot be read: {inspected.cause}", target.rebuild_remedy())
    elif inspected:
        yield from memory.check_manifest(inspected, target)
        yield from memory.check_index(inspected, target)


def _check_discussions(facts: SetupFacts) -> Iterator[CheckResult]:
    if facts.api and facts.setup:
        inspected = facts.memory if isinstance(facts.memory, InspectedMemory) and not facts.memory.fault else None
        yield from github.check_discussions(facts.api, facts.setup.settings, facts.setup.steps, inspected, facts.target)


def run_doctor(args: DoctorArguments) -> CommandResult:
    with progress("Checking", None):
        findings = examine(args, os.environ, datetime.now(UTC))
    code = exit_code(findings)
    if args.json:
        return CommandResult(as_data(findings), code)
    return CommandResult(render_findings(findings, terminal(), verbose=args.verbose), code)


def examine(args: DoctorArguments, environ: Mapping[str, str], now: datetime) -> list[CheckResult]:
    """All findings. UserError if there is nothing to check."""
    options, refused = doctor_options(args, environ)
    return [*refused, *judge(gather(options, now))]


def doctor_options(args: DoctorArguments, environ: Mapping[str, str]) -> tuple[DoctorOptions, list[CheckResult]]:
    """What to check, and a finding if the token is withheld."""
    if args.store:
        is_checkout = (Path(args.store) / ".git").exists()
        return DoctorOptions(RepositoryLinks(store=str(args.store), is_checkout=is_checkout), config=args.config), []
    remote = None if args.repo else _checkout_remote()
    server, repository = _server_and_name(remote) if remote else (GITHUB, args.repo or "")
    server = args.server or server
    target = RepositoryLinks(repository, server, args.api or api_of(server), branch=args.branch or Settings().branch)
    token, refused = token_of(environ).text, []
    is_trusted = args.server or args.api or target.trusts_tokens or environ.get("GITHUB_SERVER_URL", "") == server
    if token and not is_trusted:
        says = f"the one in the environment was not sent to {server}, which is not GitHub's"
        remedy = f"if it is for that server, say so: `precedent doctor --repo {repository} --server {server}`"
        token, refused = "", [CheckResult("token", "warning", says, remedy)]
    options = DoctorOptions(target, token, branch=args.branch or "", config=args.config, offline=args.offline)
    if remote:
        address = "" if args.server else remote.url
        options = replace(options, address=address, checkout=find_top(Path.cwd()))
    return options, refused


def _checkout_remote() -> RemoteRepository:
    remote = remote_of_checkout(find_top(Path.cwd()))
    if isinstance(remote, str):
        raise UserError(remote)
    return remote


def _server_and_name(remote: RemoteRepository) -> tuple[str, str]:
    parsed = parse_remote_url(remote.url)
    if parsed is None:
        raise UserError(
            f"the remote {remote.name} is not a repository on a GitHub server: give --repo OWNER/NAME and --server URL"
        )
    return parsed


UNICODE_SIGNS: dict[Level, str] = {"ok": "✓", "note": "·", "warning": "!", "error": "✗"}
ASCII_SIGNS: dict[Level, str] = {"ok": "+", "note": "-", "warning": "!", "error": "x"}
_COLOURS: dict[Level, str] = {"ok": f"38;5;{GOOD}", "note": "0", "warning": f"38;5;{BAD}", "error": f"1;38;5;{BAD}"}
_CHECK_WIDTH = 13


@dataclass(frozen=True, slots=True)
class Terminal:
    """The abilities of a terminal: ``signs`` beyond ASCII, and colours."""

    signs: bool = True
    colours: bool = False


def terminal() -> Terminal:
    """The terminal of stdout. No colours if NO_COLOR is set (https://no-color.org), or in a pipe."""
    try:
        "".join(UNICODE_SIGNS.values()).encode(sys.stdout.encoding or "ascii")
        signs = True
    except (UnicodeEncodeError, LookupError):
        signs = False
    has_colours = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Terminal(signs, has_colours and sys.stdout.isatty())


def render_findings(findings: Iterable[CheckResult], screen: Terminal, *, verbose: bool = False) -> ColouredText:
    """The findings, then the number of problems. ``verbose``: include the checks that passed."""
    every = list(findings)
    shown = every if verbose else list(_select_findings(every))
    lines = [line for finding in shown for line in _lines(finding, screen, verbose=verbose)]
    return ColouredText("".join(f"{line}\n" for line in [*lines, "", _summary(every)]))


def as_data(findings: Iterable[CheckResult]) -> dict[str, object]:
    """The findings for JSON, and whether all is well. Replaces unencodable characters."""
    every = list(findings)
    rows = [{**asdict(each), "says": _encodable(each.says), "remedy": _encodable(each.remedy)} for each in every]
    return {"findings": rows, "ok": exit_code(every) == 0}


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _select_findings(findings: list[CheckResult]) -> Iterator[CheckResult]:
    """The problems of each check, or else one line: a note if there is one."""
    for check in dict.fromkeys(finding.check for finding in findings):
        same = [finding for finding in findings if finding.check == check]
        problems = [finding for finding in same if finding.is_problem]
        notes = [finding for finding in same if finding.level == "note"]
        yield from problems or (notes or same)[:1]


def _lines(finding: CheckResult, screen: Terminal, *, verbose: bool) -> Iterator[str]:
    sign = (UNICODE_SIGNS if screen.signs else ASCII_SIGNS)[finding.level]
    if screen.colours:
        sign = f"\033[{_COLOURS[finding.level]}m{sign}\033[0m"
    yield f"{sign} {finding.check:<{_CHECK_WIDTH}} {_escape_line(finding.says, screen)}"
    if finding.remedy and (finding.is_problem or verbose):
        yield f"  {'→' if screen.signs else '->'} {_escape_line(finding.remedy, screen)}"


def _escape_line(text: str, screen: Terminal) -> str:
    """One line that cannot move the cursor or be read as a command by a runner's log."""
    line = log_line(text).replace("%25", "%")
    return line if screen.signs else line.encode("ascii", "backslashreplace").decode()


def _summary(findings: list[CheckResult]) -> str:
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if not errors and not warnings:
        return "All is well."
    counts = [
        f"{count} {noun}{'s' if count > 1 else ''}"
        for count, noun in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return f"{' and '.join(counts)}."
