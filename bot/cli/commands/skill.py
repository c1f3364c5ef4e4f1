"""precedent skill: installs the page that teaches coding agents to search this memory."""

from __future__ import annotations

import argparse
import re
from hashlib import sha256
from pathlib import Path

from bot.cli.options import Arguments, flag, json_option
from bot.cli.output import show
from bot.comment.clean_text import visible_text
from bot.errors import UserError
from bot.files import read_shipped, read_user_file, write_user_file
from bot.git.checkout import find_top

SKILL_FILE = "cross-reference/SKILL.md"
INSTALL_PATH = f".agents/skills/{SKILL_FILE}"
"""Where agents look for skills in a checkout: https://developers.openai.com/codex/skills."""

MAX_BYTES = 65_536
_FINGERPRINT = re.compile(rb"\n<!-- written by precedent skill install, sha256 ([0-9a-f]{64}) -->\n\Z")


class SkillArguments(Arguments):
    action: str
    print: bool = flag("print the page instead, for agents that look in another folder")
    dry_run: bool = flag("say what would be written, and write nothing")
    force: bool = flag("replace a page that was edited by hand")
    json: bool = json_option("what happened to the file")

    @classmethod
    def add_to(cls, parser: argparse.ArgumentParser) -> None:
        """Declare the actions; the options are those of ``install``."""
        actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION", help="show or install it")
        actions.add_parser("show", help="print the page")
        super().add_to(actions.add_parser("install", help="write it to .agents/skills/cross-reference/SKILL.md"))


def run_skill(args: SkillArguments) -> object:
    text = read_shipped("skills", SKILL_FILE)
    if args.action == "show" or args.print:
        return text.decode("utf-8")
    top = find_top(Path.cwd())
    if top is None:
        raise UserError("this is not a git checkout: go into one, or print the page with --print")
    state = _install(top, text, args)
    fault = "it was changed by hand: keep it, or replace it with --force" if state == "left" else ""
    words = {"written": "would write", "updated": "would update"} if args.dry_run else {"written": "wrote"}
    result: object = f"{words.get(state, state)} {INSTALL_PATH}\n"
    if args.json:
        file = {"path": INSTALL_PATH, "state": state, "fault": fault}
        result = {"dry_run": args.dry_run, "root": visible_text(str(top)), "files": [file]}
    if fault:
        show(result if args.json else "")
        raise UserError(f"{INSTALL_PATH} is left as it is: {fault}")
    return result


def _install(top: Path, text: bytes, args: SkillArguments) -> str:
    """Write the page. Returns what happened to the file: written, updated, unchanged or left."""
    page = text + f"\n<!-- written by precedent skill install, sha256 {sha256(text).hexdigest()} -->\n".encode()
    existing = read_user_file(top, INSTALL_PATH, MAX_BYTES)
    if existing in (page, text):
        return "unchanged"
    if existing is not None and not _is_ours(existing) and not args.force:
        return "left"
    if not args.dry_run:
        write_user_file(top, INSTALL_PATH, page)
    return "written" if existing is None else "updated"


def _is_ours(existing: bytes) -> bool:
    """Whether the checksum in the last line shows an unedited page of an older version."""
    fingerprint = _FINGERPRINT.search(existing)
    return fingerprint is not None and sha256(existing[: fingerprint.start()]).hexdigest().encode() == fingerprint[1]
