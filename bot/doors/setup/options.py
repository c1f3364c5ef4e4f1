"""The options of `precedent init`."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

Doors = argparse._SubParsersAction

_ACTION = re.compile(
    r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/precedent@(?![./])[A-Za-z0-9._/-]{1,200}"
    r"|docker://(?:[A-Za-z0-9][A-Za-z0-9._-]{0,100}(?::[0-9]{1,5})?/){1,4}precedent"
    r"(?:@sha256:[0-9a-f]{64}|:[A-Za-z0-9._-]{1,100})",
    re.ASCII,
)
"""A repository at a commit, tag or branch, or an image; only characters that mean nothing to YAML."""


def is_action(text: str) -> bool:
    """Whether a step can use this."""
    return _ACTION.fullmatch(text) is not None


def action(text: str) -> str:
    """OWNER/precedent@REF, or an image of it."""
    if not is_action(text):
        raise argparse.ArgumentTypeError(f"{text[:100]!r} is not OWNER/precedent@COMMIT (or a tag)")
    return text


def add_init(doors: Doors[argparse.ArgumentParser]) -> None:
    """The parser of init."""
    command = doors.add_parser(
        "init",
        help="show the workflow and the settings that set a repository up, or write them into its checkout",
        description="Shows what would be written into the checkout, with every permission and trigger explained. "
        "Only --write writes, and never over a file that differs. Nothing is fetched, committed or pushed.",
    )
    command.add_argument(
        "folder",
        nargs="?",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="a folder of the checkout (default: here)",
    )
    command.add_argument("--write", action="store_true", help="write the files that are shown without it")
    command.add_argument(
        "--action", type=action, metavar="NAME@REF",
        help="what the step uses: OWNER/precedent@COMMIT, a tag in its place, or docker:// and an image",
    )  # fmt: skip
    command.add_argument(
        "--mode", choices=("summary", "comment"), help="tell in job summaries only, or comment (default: summary)"
    )
    command.add_argument(
        "--minimal", action="store_true", default=None, help="run on issues and comments only: no schedule, no button"
    )
    command.add_argument("--branch", metavar="NAME", help="the branch of the memory (default: precedent)")
    command.add_argument(
        "--force", action="store_true", help="replace a workflow that differs, or add one beside another"
    )
    command.add_argument("--json", action="store_true", help="print files, permissions, triggers and notes as JSON")
