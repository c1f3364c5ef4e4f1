"""precedent init: show the workflow and the settings that set a repository up, or write them into its checkout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from bot.cli.arguments import action_name, is_action, one_of
from bot.cli.checks.github import WORKFLOW_FOLDER, WORKFLOW_PATH, Step, find_workflows, is_dry
from bot.cli.options import Arguments, argument, flag, json_option, option
from bot.cli.output import show
from bot.comment.clean_text import one_line, visible_text
from bot.domain.hosts import is_hosted, parse_remote_url
from bot.errors import UserError
from bot.files import read_shipped, read_user_file, write_user_file
from bot.git.checkout import PREFERRED_REMOTES, CheckoutGit, find_top, is_bare
from bot.settings.schema import Settings, with_inputs
from bot.settings.yaml_file import CONFIG_PATH, MAX_BYTES, load_settings

_PLACEHOLDER = "OWNER/"
"""Owner of the shipped workflow's action until a maintainer fills in this repository's address (tools/address.py)."""

_MAX_FILES = 200
_DEFAULT_BRANCHES = ("main", "master")
_PLAIN_SCALAR = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*", re.ASCII)
_YAML_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_PLANNED_MESSAGES = {
    "new": "would write {}:",
    "replaced": "would replace {}:",
    "differs": "{} exists and differs; without --force it is left as it is. It would be:",
}
_DONE_MESSAGES = {
    "new": "wrote {}",
    "replaced": "replaced {}",
    "kept": "{} stays as it is",
    "same": "{} is already up to date",
}


class InitArguments(Arguments):
    """Only shows the files, unless --write is given. It replaces nothing, except a workflow with --force, and fetches,
    commits and pushes nothing."""

    folder: Path = argument("FOLDER", "a folder of the checkout (default: here)", nargs="?", type=Path, default=Path())
    write: bool = flag("write the files")
    action: str | None = option(
        "the Action to use: OWNER/NAME@ and a commit or tag, or docker:// and an image",
        type=action_name,
        metavar="NAME@REF",
    )
    mode: str | None = option(
        "report in job summaries only, or comment (default: summary)", **one_of("summary", "comment")
    )
    branch: str | None = option("the memory branch (default: precedent)", metavar="NAME")
    force: bool = flag("replace a workflow that differs, or add one next to another")
    json: bool = json_option("the files and the next step")


@dataclass(frozen=True, slots=True)
class CheckoutInfo:
    """A checkout with the top folder ``top``. ``remote`` is "" if there is none; ``server`` and ``repository`` are ""
    if its URL does not name them. ``main`` is the default branch."""

    top: Path
    server: str = ""
    repository: str = ""
    remote: str = ""
    main: str = "main"


def shipped_action() -> str:
    return _read_template("workflow.yml").partition("- uses: ")[2].partition("\n")[0]


@dataclass(frozen=True, slots=True)
class WorkflowChoice:
    """The choices in a workflow. The defaults give that of docs/workflows.md.

    ``mode`` is summary or comment; ``main`` is the default branch; ``hosted``: GitHub-hosted runners are available.
    """

    action: str = field(default_factory=shipped_action)
    mode: str = "summary"
    main: str = "main"
    hosted: bool = True


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file and its intended content. ``state``: new, same, kept (the owner's, never replaced), differs (left as
    it is) or replaced."""

    path: str
    state: str
    content: str


def run_init(args: InitArguments) -> object:
    """Show the two files, or write them with ``--write``: both, or neither if there is an obstacle."""
    checkout = inspect_checkout(args.folder)
    steps = _existing_steps(checkout.top)
    choice = _choose_workflow(checkout, args, [step for step in steps if step.path == WORKFLOW_PATH])
    config, settings = _settings_file(checkout.top, args.branch)
    files = [_workflow_file(checkout.top, choice, force=args.force), config]
    refused = _refusal(checkout, settings, files, [] if args.force else steps)
    if args.write:
        if refused:
            raise UserError(refused)
        _write_files(checkout.top, choice, files)
    next_step = _next_step(checkout, choice, ready=args.write or {file.state for file in files} <= {"same", "kept"})
    if args.json:
        shown: object = _as_data(checkout, choice, settings, files) | {
            "written": args.write, "refused": visible_text(refused), "next": [next_step],
        }  # fmt: skip
    else:
        shown = "".join(f"{line}\n" for line in [*_lines(files, is_written=args.write), next_step])
    if refused:
        show(shown)
        raise UserError(refused)
    return shown


def _write_files(top: Path, choice: WorkflowChoice, files: list[PlannedFile]) -> None:
    planned = [file for file in files if file.state in ("new", "replaced")]
    if planned and choice.action.startswith(_PLACEHOLDER):
        raise UserError(
            "this copy of Precedent does not know which repository you use the Action from: name it, which "
            "may be a fork with another name, and the full id of a commit in it, as --action OWNER/precedent@COMMIT"
        )
    for file in planned:
        write_user_file(top, file.path, file.content.encode())


def inspect_checkout(folder: Path) -> CheckoutInfo:
    """The checkout that contains ``folder``. UserError if there is none, or for a bare repository."""
    top = _top_folder(folder)
    git = CheckoutGit(top)
    if refused := git.refusal():
        raise UserError(f"git refuses to read {top}: {refused}")
    remote = next(iter(git.remotes), "")
    parsed = parse_remote_url(git.line("remote", "get-url", "--", remote)) if remote else None
    return CheckoutInfo(top, *(parsed or ("", "")), remote, _default_branch(git))


def _top_folder(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(f"{folder} is not a folder: name one in a checkout")
    top = find_top(folder)
    if top is None and is_bare(folder) and folder.name != ".git":
        raise UserError(f"{folder} is a bare repository, which has no files: clone it, and go into the clone")
    if top is None:
        raise UserError(f"{folder} is not in a git checkout: go into one, or name it: precedent init FOLDER")
    return top


def _default_branch(git: CheckoutGit) -> str:
    """The default branch that the clone recorded, else main or master if it exists, else the current branch."""
    if recorded := git.recorded_default_branch():
        return recorded
    for name in _DEFAULT_BRANCHES:
        for ref in (*(f"refs/remotes/{remote}/{name}" for remote in PREFERRED_REMOTES), f"refs/heads/{name}"):
            if not git.run("rev-parse", "--verify", "--quiet", ref).returncode:
                return name
    return git.line("symbolic-ref", "--quiet", "--short", "HEAD") or _DEFAULT_BRANCHES[0]


def _existing_steps(top: Path) -> list[Step]:
    read_user_file(top, WORKFLOW_PATH, 0)  # refuses a symbolic link in its place; links elsewhere do not matter
    workflows = {}
    for file in sorted((top / WORKFLOW_FOLDER).glob("*.y*ml"))[:_MAX_FILES]:
        path = f"{WORKFLOW_FOLDER}/{file.name}"
        with suppress(UserError):
            workflows[path] = read_user_file(top, path, MAX_BYTES + 1) or b""
    return find_workflows(workflows, is_ours=False)[0]


def _choose_workflow(checkout: CheckoutInfo, args: InitArguments, steps: list[Step]) -> WorkflowChoice:
    """The given options, else those of the existing workflow, so that a second run gives the same result."""
    host = urlsplit(checkout.server).hostname or ""
    choice = WorkflowChoice(main=checkout.main, hosted=not host or is_hosted(host))
    if len(steps) == 1:
        mode = "summary" if steps[0].inputs.get("mode") == "summary" else "comment"
        choice = replace(choice, action=steps[0].uses if is_action(steps[0].uses) else choice.action, mode=mode)
    return replace(choice, action=args.action or choice.action, mode=args.mode or choice.mode)


def _workflow_file(top: Path, choice: WorkflowChoice, *, force: bool) -> PlannedFile:
    text, existing = workflow_text(choice), read_user_file(top, WORKFLOW_PATH, MAX_BYTES + 1)
    if existing is None:
        return PlannedFile(WORKFLOW_PATH, "new", text)
    is_same = existing.replace(b"\r\n", b"\n") == text.encode()
    return PlannedFile(WORKFLOW_PATH, "same" if is_same else "replaced" if force else "differs", text)


def _settings_file(top: Path, branch: str | None) -> tuple[PlannedFile, Settings]:
    """The settings file, which is never replaced, and its settings."""
    default = with_inputs(Settings(), {"branch": branch or ""})
    text, existing = settings_text(default.branch), read_user_file(top, CONFIG_PATH, MAX_BYTES + 1)
    if existing is None:
        return PlannedFile(CONFIG_PATH, "new", text), default
    settings = load_settings(existing, CONFIG_PATH)
    if branch and settings.branch != branch:
        raise UserError(
            f"{CONFIG_PATH} names the branch {settings.branch}, and stays as it is: write branch: {branch} there"
        )
    state = "same" if existing.replace(b"\r\n", b"\n") == text.encode() else "kept"
    return PlannedFile(CONFIG_PATH, state, existing.decode("utf-8-sig")), settings


def _refusal(checkout: CheckoutInfo, settings: Settings, files: list[PlannedFile], steps: list[Step]) -> str:
    """Why nothing can be written, or "". ``steps`` are existing steps that must not be duplicated."""
    others = [step.path for step in steps if step.path != WORKFLOW_PATH and not is_dry(step)]
    if settings.branch == checkout.main:
        return f"{checkout.main} is the default branch, and memory needs one of its own: name another with --branch"
    if others:
        return f"{others[0]} uses Precedent already, and two of them would answer: change that one, or add --force"
    if any(file.state == "differs" for file in files):
        return f"{WORKFLOW_PATH} exists and differs: it is left as it is; keep it, or replace it with --force"
    return ""


def workflow_text(choice: WorkflowChoice | None = None) -> str:
    """The workflow, by default that of docs/workflows.md.

    Raises UserError if the name of the default branch has invisible characters.
    """
    choice = choice or WorkflowChoice()
    text = _read_template("workflow.yml").replace(f"uses: {shipped_action()}\n", f"uses: {choice.action}\n")
    text = text.replace("branches: [main]", f"branches: [{_branch_pattern(choice.main)}]")
    if not choice.hosted:
        text = text.replace("runs-on: ubuntu-latest", "runs-on: [self-hosted, linux, x64] # labels of your runners")
        text = text.partition("      - if: ")[0]  # GitHub Enterprise Server refuses upload-artifact from v4 on
    if choice.mode == "comment":
        text = re.sub(r"^ +mode: summary .*\n", "", text, flags=re.MULTILINE)
    if choice.action.startswith("docker://"):  # with an image, action.yml, which passes the token, is not read
        text = text.replace("        with:\n", "        with:\n          token: ${{ github.token }}\n", 1)
    return text


def settings_text(branch: str = Settings().branch) -> str:
    """The settings file: the defaults, and the memory branch if it has a custom name."""
    text = _read_template("settings.yml")
    if branch == Settings().branch:
        return text
    return text.replace("#branch: precedent\n", f"branch: {json.dumps(branch)}\n")


def _branch_pattern(branch: str) -> str:
    """The branch name as a YAML pattern that matches nothing else.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#filter-pattern-cheat-sheet
    """
    if _PLAIN_SCALAR.fullmatch(branch) and branch.lower() not in _YAML_WORDS:
        return branch
    if not branch.isprintable():
        raise UserError("the name of the default branch contains invisible characters: rename that branch first")
    return json.dumps(re.sub(r"([]*?+!\[\\])", r"\\\1", branch), ensure_ascii=False)


def _read_template(name: str) -> str:
    return read_shipped("templates", name).decode()


def _as_data(
    checkout: CheckoutInfo, choice: WorkflowChoice, settings: Settings, files: list[PlannedFile]
) -> dict[str, object]:
    return {
        "root": visible_text(str(checkout.top)),
        "repository": checkout.repository,
        "server": checkout.server,
        "remote": visible_text(checkout.remote),
        "default_branch": visible_text(checkout.main),
        "memory_branch": settings.branch,
        "mode": settings.mode if choice.mode == "comment" else choice.mode,
        "action": choice.action,
        "files": [asdict(file) for file in files],
    }


def _lines(files: list[PlannedFile], *, is_written: bool) -> Iterator[str]:
    for file in files:
        if is_written or file.state not in _PLANNED_MESSAGES:
            yield _DONE_MESSAGES[file.state].format(file.path)
        else:
            yield from (_PLANNED_MESSAGES[file.state].format(file.path), "", *file.content.splitlines(), "")


def _next_step(checkout: CheckoutInfo, choice: WorkflowChoice, *, ready: bool) -> str:
    if not ready:
        source = " --action OWNER/precedent@COMMIT" if choice.action.startswith(_PLACEHOLDER) else ""
        return f"Next: run the same command with --write{source}"
    where = f"{checkout.main} of {checkout.repository}" if checkout.repository else checkout.main
    return one_line(f"Next: bring both files to {where}, start the workflow by hand with rebuild, run precedent doctor")
