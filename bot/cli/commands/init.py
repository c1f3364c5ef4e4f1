"""precedent init: show the workflow and the settings that set a repository up, or write them into its checkout."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from urllib.parse import urlsplit

from bot.cli.arguments import is_action
from bot.cli.checks.github import WORKFLOW_FOLDER, Step, find_workflows, is_dry
from bot.cli.checks.result import place_of
from bot.cli.output import show
from bot.comment.clean_text import clean, one_line
from bot.errors import UserError, WorldError
from bot.files import read_beside, shipped, write_beside
from bot.git.checkout import FIRST, CheckoutGit, is_bare, top_of
from bot.settings.schema import Settings, with_inputs
from bot.settings.yaml_file import CONFIG_PATH, MAX_BYTES, load_settings

WORKFLOW = f"{WORKFLOW_FOLDER}/precedent.yml"
_UNKNOWN = "OWNER/"
"""Owner of the shipped workflow's action until a maintainer fills in this repository's address (tools/address.py)."""

_MOST_FILES = 200
_USUAL = ("main", "master")
_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*", re.ASCII)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_STATES = {
    "new": "would write {}:",
    "replaced": "would replace {}:",
    "differs": "{} is there and differs; it is left as it is without --force. It would be:",
}
_DONE = {"new": "wrote {}", "replaced": "replaced {}", "kept": "{} stays as it is", "same": "{} is already so"}


@dataclass(frozen=True, slots=True)
class CheckoutInfo:
    """A checkout with the top folder ``top``. ``remote`` is "" if there is none; ``server`` and ``repository`` are ""
    if it does not tell them. ``main`` is the default branch."""

    top: Path
    server: str = ""
    repository: str = ""
    remote: str = ""
    main: str = "main"


def shipped_action() -> str:
    return _shipped("workflow.yml").partition("- uses: ")[2].partition("\n")[0]


@dataclass(frozen=True, slots=True)
class WorkflowChoice:
    """The parts of a workflow. The defaults give the one of the README.

    ``mode`` is summary or comment; ``main`` is the default branch; ``hosted``: GitHub's own runners are there.
    """

    action: str = field(default_factory=shipped_action)
    mode: str = "summary"
    main: str = "main"
    hosted: bool = True


@dataclass(frozen=True, slots=True)
class PlannedFile:
    """A file as it would be. ``state``: new, same, kept (the owner's, never replaced), differs (left as it is),
    replaced."""

    path: str
    state: str
    content: str


def run_init(given: argparse.Namespace) -> object:
    """Show the two files, or write them with ``--write``: both, or none where something stands against it."""
    place = look_at_checkout(given.folder)
    steps = _steps(place.top)
    choice = _choice(place, given, [step for step in steps if step.path == WORKFLOW])
    config, used = _config(place.top, given.branch)
    files = [_workflow_file(place.top, choice, force=given.force), config]
    refused = _refused(place, used, files, [] if given.force else steps)
    if given.write:
        if refused:
            raise UserError(refused)
        _write(place.top, choice, files)
    after = _next(place, choice, ready=given.write or {file.state for file in files} <= {"same", "kept"})
    if given.json:
        shown: object = _as_data(place, choice, used, files) | {
            "written": given.write, "refused": clean(refused), "next": [after],
        }  # fmt: skip
    else:
        shown = "".join(f"{line}\n" for line in [*_lines(files, is_written=given.write), after])
    if refused:
        show(shown)
        raise UserError(refused)
    return shown


def _write(top: Path, choice: WorkflowChoice, files: list[PlannedFile]) -> None:
    wanted = [file for file in files if file.state in ("new", "replaced")]
    if wanted and choice.action.startswith(_UNKNOWN):
        raise UserError(
            "where the Action comes from is not known, and no release is tagged yet: give the account that you use it "
            "from and the full id of a commit, as --action OWNER/precedent@COMMIT"
        )
    for file in wanted:
        write_beside(top, file.path, file.content.encode())


def look_at_checkout(folder: Path) -> CheckoutInfo:
    """The checkout that ``folder`` is in. UserError where it is in none, or in a bare repository."""
    top = _top(folder)
    git = CheckoutGit(top)
    if refused := git.refusal():
        raise UserError(f"git does not look into {top}: {refused}")
    remote = next(iter(git.remotes), "")
    known = place_of(git.line("remote", "get-url", "--", remote)) if remote else None
    return CheckoutInfo(top, *(known or ("", "")), remote, _main(git))


def _top(folder: Path) -> Path:
    if not folder.is_dir():
        raise UserError(f"{folder} is no folder: name one in a checkout")
    top = top_of(folder)
    if top is None and is_bare(folder) and folder.name != ".git":
        raise UserError(f"{folder} is a bare repository, which has no files: clone it, and go into the clone")
    if top is None:
        raise UserError(f"{folder} is in no git checkout: go into one, or name it: precedent init FOLDER")
    return top


def _main(git: CheckoutGit) -> str:
    """The default branch, if the clone noted it; else the usual one that is there, else the current one."""
    if noted := git.noted_main():
        return noted
    for name in _USUAL:
        for ref in (*(f"refs/remotes/{remote}/{name}" for remote in FIRST), f"refs/heads/{name}"):
            if not git.run("rev-parse", "--verify", "--quiet", ref).returncode:
                return name
    return git.line("symbolic-ref", "--quiet", "--short", "HEAD") or _USUAL[0]


def _steps(top: Path) -> list[Step]:
    read_beside(top, WORKFLOW, 0)  # a link in its place is refused, one elsewhere is not ours to judge
    there = {}
    for file in sorted((top / WORKFLOW_FOLDER).glob("*.y*ml"))[:_MOST_FILES]:
        path = f"{WORKFLOW_FOLDER}/{file.name}"
        with suppress(UserError):
            there[path] = read_beside(top, path, MAX_BYTES + 1) or b""
    return find_workflows(there, is_ours=False)[0]


def _choice(place: CheckoutInfo, given: argparse.Namespace, steps: list[Step]) -> WorkflowChoice:
    """The given options, else those of the existing workflow, so that a second run gives the same."""
    host = urlsplit(place.server).hostname or ""
    choice = WorkflowChoice(main=place.main, hosted=not host or host == "github.com" or host.endswith(".ghe.com"))
    if len(steps) == 1:
        mode = "summary" if steps[0].inputs.get("mode") == "summary" else "comment"
        choice = replace(choice, action=steps[0].uses if is_action(steps[0].uses) else choice.action, mode=mode)
    return replace(choice, action=given.action or choice.action, mode=given.mode or choice.mode)


def _workflow_file(top: Path, choice: WorkflowChoice, *, force: bool) -> PlannedFile:
    text, before = workflow_text(choice), read_beside(top, WORKFLOW, MAX_BYTES + 1)
    if before is None:
        return PlannedFile(WORKFLOW, "new", text)
    is_same = before.replace(b"\r\n", b"\n") == text.encode()
    return PlannedFile(WORKFLOW, "same" if is_same else "replaced" if force else "differs", text)


def _config(top: Path, branch: str | None) -> tuple[PlannedFile, Settings]:
    """The settings file, which is never replaced, and its settings."""
    wanted = with_inputs(Settings(), {"branch": branch or ""})
    text, before = settings_text(wanted.branch), read_beside(top, CONFIG_PATH, MAX_BYTES + 1)
    if before is None:
        return PlannedFile(CONFIG_PATH, "new", text), wanted
    used = load_settings(before, CONFIG_PATH)
    if branch and used.branch != branch:
        raise UserError(
            f"{CONFIG_PATH} names the branch {used.branch}, and stays as it is: write branch: {branch} there"
        )
    state = "same" if before.replace(b"\r\n", b"\n") == text.encode() else "kept"
    return PlannedFile(CONFIG_PATH, state, before.decode("utf-8-sig")), used


def _refused(place: CheckoutInfo, used: Settings, files: list[PlannedFile], steps: list[Step]) -> str:
    """Why nothing can be written, or "". ``steps`` are existing steps that must not be doubled."""
    others = [step.path for step in steps if step.path != WORKFLOW and not is_dry(step)]
    if used.branch == place.main:
        return f"{place.main} is the default branch, and memory needs one of its own: name another with --branch"
    if others:
        return f"{others[0]} uses Precedent already, and two of them would answer: change that one, or add --force"
    if any(file.state == "differs" for file in files):
        return f"{WORKFLOW} is there and differs: it is left as it is; keep it, or replace it with --force"
    return ""


def workflow_text(choice: WorkflowChoice | None = None) -> str:
    """The workflow, by default the README's. UserError for a name of the default branch that a file should not hold."""
    choice = choice or WorkflowChoice()
    text = _shipped("workflow.yml").replace(f"uses: {shipped_action()}\n", f"uses: {choice.action}\n")
    text = text.replace("branches: [main]", f"branches: [{_pattern(choice.main)}]")
    if not choice.hosted:
        text = text.replace("runs-on: ubuntu-latest", "runs-on: [self-hosted, linux, x64] # labels of your runners")
    if choice.mode == "comment":
        text = re.sub(r"^ +mode: summary .*\n", "", text, flags=re.MULTILINE)
    if choice.action.startswith("docker://"):  # action.yml, which gives the token, is not read for an image
        text = text.replace("        with:\n", "        with:\n          token: ${{ github.token }}\n")
    return text


def settings_text(branch: str = Settings().branch) -> str:
    """The settings file: the defaults, and the branch of the memory if it has another name."""
    text = _shipped("settings.yml")
    if branch == Settings().branch:
        return text
    return text.replace("#branch: precedent\n", f"branch: {json.dumps(branch)}\n")


def _pattern(branch: str) -> str:
    """The name as a YAML pattern that matches only it.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#filter-pattern-cheat-sheet
    """
    if _PLAIN.fullmatch(branch) and branch.lower() not in _WORDS:
        return branch
    if not branch.isprintable():
        raise UserError("the name of the default branch holds invisible characters: rename that branch first")
    return json.dumps(re.sub(r"([]*?+!\[\\])", r"\\\1", branch), ensure_ascii=False)


def _shipped(name: str) -> str:
    try:
        return (shipped("templates") / name).read_text(encoding="utf-8")
    except OSError as error:
        raise WorldError(f"this installation lacks templates/{name}", "install precedent again") from error


def _as_data(
    place: CheckoutInfo, choice: WorkflowChoice, used: Settings, files: list[PlannedFile]
) -> dict[str, object]:
    return {
        "root": clean(str(place.top)),
        "repository": place.repository,
        "server": place.server,
        "remote": clean(place.remote),
        "default_branch": clean(place.main),
        "memory_branch": used.branch,
        "mode": used.mode if choice.mode == "comment" else choice.mode,
        "action": choice.action,
        "files": [asdict(file) for file in files],
    }


def _lines(files: list[PlannedFile], *, is_written: bool) -> Iterator[str]:
    for file in files:
        if is_written or file.state not in _STATES:
            yield _DONE[file.state].format(file.path)
        else:
            yield from (_STATES[file.state].format(file.path), "", *file.content.splitlines(), "")


def _next(place: CheckoutInfo, choice: WorkflowChoice, *, ready: bool) -> str:
    if not ready:
        source = " --action OWNER/precedent@COMMIT" if choice.action.startswith(_UNKNOWN) else ""
        return f"Next: the same command with --write{source}"
    where = f"{place.main} of {place.repository}" if place.repository else place.main
    return one_line(f"Next: bring both files to {where}, start the workflow by hand with rebuild, run precedent doctor")
