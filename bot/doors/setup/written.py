"""The text of the workflow and of the settings that set a repository up, made of one shipped file each."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.config import load_plain
from bot.errors import UserError, WorldError
from bot.settings import Settings

WORKFLOW = ".github/workflows/precedent.yml"
PLACEHOLDER = "OWNER/precedent@v1"
"""What the step uses where nobody said what: it names no account that there is."""

PERMISSIONS = {
    "contents": "the memory is a branch of this repository",
    "issues": "the comment, replies and reactions; with `mode: summary` nothing is posted",
}
TRIGGERS = {
    "issues": "an issue that is opened or edited may be answered; the rest keeps the memory true",
    "issue_comment": "a comment may point at an issue, give a command or hold the solution",
    "gollum": "a page of the wiki changed",
    "push": "the documentation on the default branch changed",
    "release": "the notes of a release can be found",
    "schedule": "each night: what a lost run missed, feedback, learning",
    "workflow_dispatch": "by hand: a rebuild, a backtest, or one issue to answer or to forget",
}
_FOLDERS = tuple(Path(__file__).resolve().parents[up] / "templates" for up in (2, 3))
"""In a wheel inside the package, in a checkout and in the image beside it."""

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9._/-]*", re.ASCII)
_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})
_MORE_TRIGGERS = re.compile(r"^  gollum:.*?(?=^permissions:)", re.MULTILINE | re.DOTALL)
_BY_HAND = re.compile(r"^ +(?:run|issue|dry-run): \$\{\{ inputs\.[a-z-]+ \}\}\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a workflow is made of. The defaults make the one of the README.

    ``mode`` is summary or comment; ``minimal``: issues and comments are its only events; ``main`` is the default
    branch; ``hosted``: GitHub's own runners are there.
    """

    action: str = PLACEHOLDER
    mode: str = "summary"
    minimal: bool = False
    main: str = "main"
    hosted: bool = True


def workflow(choice: Choice = Choice()) -> str:
    """The workflow. UserError for a name of the default branch that a file should not hold."""
    text = _put(_shipped("workflow.yml"), f"uses: {PLACEHOLDER}\n", f"uses: {choice.action}\n")
    text = _put(text, "branches: [main]", f"branches: [{_pattern(choice.main)}]")
    if not choice.hosted:
        text = _put(text, "runs-on: ubuntu-latest", "runs-on: [self-hosted, linux, x64] # labels of your runners")
    if choice.minimal:
        text = _BY_HAND.sub("", _MORE_TRIGGERS.sub("\n", text))
    if choice.mode == "comment":
        text = re.sub(r"^ +mode: summary .*\n", "", text, flags=re.MULTILINE)
    if choice.action.startswith("docker://"):  # action.yml, which gives the token, is not read for an image
        text = _put(text, "        with:\n", "        with:\n          token: ${{ github.token }}\n")
    return text.removesuffix("        with:\n")


def settings(branch: str = Settings().branch) -> str:
    """The settings' file: nothing but the defaults, and the branch of the memory where it has another name."""
    text = _shipped("settings.yml")
    return (
        text if branch == Settings().branch else _put(text, "#branch: precedent\n", f"branch: {json.dumps(branch)}\n")
    )


def permissions(text: str) -> dict[str, str]:
    """Each permission of a workflow's job → why."""
    (job,) = _parsed(text)["jobs"].values()
    return {f"{name}: {level}": PERMISSIONS[name] for name, level in job["permissions"].items()}


def triggers(text: str) -> dict[str, str]:
    """Each event that a workflow runs on → why."""
    return {name: TRIGGERS[name] for name in _parsed(text)["on"]}


def _parsed(text: str) -> Mapping[str, Any]:
    found = load_plain(text, WORKFLOW)
    assert isinstance(found, Mapping)
    return found


def _put(text: str, old: str, new: str) -> str:
    assert text.count(old) == 1, old
    return text.replace(old, new)


def _pattern(branch: str) -> str:
    """The name as a pattern that means it alone, in YAML.

    https://docs.github.com/actions/reference/workflows-and-actions/workflow-syntax#filter-pattern-cheat-sheet
    """
    if _PLAIN.fullmatch(branch) and branch.lower() not in _WORDS:
        return branch
    if not branch.isprintable():
        raise UserError("the name of the default branch holds characters that nobody sees: rename that branch first")
    return json.dumps(re.sub(r"([]*?+!\[\\])", r"\\\1", branch), ensure_ascii=False)


def _shipped(name: str) -> str:
    for folder in _FOLDERS:
        with suppress(OSError):
            return (folder / name).read_text(encoding="utf-8")
    raise WorldError(f"this installation lacks templates/{name}", "install precedent again")
