"""precedent skill: gives coding agents the page that teaches them to search this memory."""

from __future__ import annotations

import argparse
import re
from hashlib import sha256
from pathlib import Path

from bot.cli.output import show
from bot.comment.clean_text import clean
from bot.errors import UserError, WorldError
from bot.files import read_beside, shipped, write_beside
from bot.git.checkout import top_of

PAGE = "cross-reference/SKILL.md"
PLACE = f".agents/skills/{PAGE}"
"""Where agents look for skills in a checkout: https://developers.openai.com/codex/skills."""

MAX_BYTES = 65_536
_SEAL = re.compile(rb"\n<!-- written by precedent skill install, sha256 ([0-9a-f]{64}) -->\n\Z")


def run_skill(given: argparse.Namespace) -> object:
    text = _page()
    if given.action == "show" or given.print:
        return text.decode("utf-8")
    top = top_of(Path.cwd())
    if top is None:
        raise UserError("this is no git checkout: go into one, or print the page with --print")
    state = _install(top, text, given)
    fault = "it was changed by hand: keep it so, or replace it with --force" if state == "left" else ""
    words = {"written": "would write", "updated": "would update"} if given.dry_run else {"written": "wrote"}
    result: object = f"{words.get(state, state)} {PLACE}\n"
    if given.json:
        file = {"path": PLACE, "state": state, "fault": fault}
        result = {"dry_run": given.dry_run, "root": clean(str(top)), "files": [file]}
    if fault:
        show(result if given.json else "")
        raise UserError(f"{PLACE} is left as it is: {fault}")
    return result


def _page() -> bytes:
    try:
        return (shipped("skills") / PAGE).read_bytes()
    except OSError as error:
        raise WorldError(f"this installation lacks skills/{PAGE}", "install precedent again") from error


def _install(top: Path, text: bytes, given: argparse.Namespace) -> str:
    """Write the page; tells what happened to the file: written, updated, unchanged, left."""
    sealed = text + f"\n<!-- written by precedent skill install, sha256 {sha256(text).hexdigest()} -->\n".encode()
    there = read_beside(top, PLACE, MAX_BYTES)
    if there in (sealed, text):
        return "unchanged"
    if there is not None and not _is_ours(there) and not given.force:
        return "left"
    if not given.dry_run:
        write_beside(top, PLACE, sealed)
    return "written" if there is None else "updated"


def _is_ours(there: bytes) -> bool:
    """Whether it is an unedited page of an older version, by the checksum in its last line."""
    seal = _SEAL.search(there)
    return seal is not None and sha256(there[: seal.start()]).hexdigest().encode() == seal[1]
