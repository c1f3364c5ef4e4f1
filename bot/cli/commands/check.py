"""precedent check: what the bot would say about an issue that is not filed yet."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bot.cli.arguments import memory_options, moment_asked_for
from bot.cli.output import SCHEMA, CommandResult, facts_of_answer, show_notes
from bot.comment.clean_text import clean
from bot.domain.thread_json import MAX_TEXT, MAX_TITLE
from bot.errors import UserError
from bot.local_cache.draft import DraftAnswer, check_draft
from bot.local_cache.location import open_memory
from bot.questions.comment import split_draft
from bot.questions.requests import DraftRequest

_MOST = 4 * (MAX_TITLE + MAX_TEXT)
"""Bytes of a draft that are read: what GitHub takes, in UTF-8."""


def run_check(given: argparse.Namespace) -> CommandResult:
    request = _request(given)
    with open_memory(memory_options(given)) as place:
        found = check_draft(request, place.demand())
        show_notes(place)
        if given.json:
            facts = facts_of_answer(place, (), ())
            told = {name: facts[name] for name in ("notes", "searched")}
            shown: object = {"schema": SCHEMA, "similar": bool(found.comment), **found.rows, **told}
        else:
            if given.comment and not found.comment:
                print(found.nothing, file=sys.stderr)
            shown = _text(found, is_whole=given.comment)
    exit_code = 3 if found.comment else 0
    return CommandResult(shown, exit_code)


def _request(given: argparse.Namespace) -> DraftRequest:
    text = _read(given.file)
    title, body = (given.title, text) if given.title else split_draft(text)
    if not title.strip():
        raise UserError("the draft is empty: its first line is the title")
    return DraftRequest(title, body, moment_asked_for(given))


def _read(file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        raise UserError("no draft: name a file, or give it on stdin (precedent check < draft.md)")
    try:
        if file is None:
            data = sys.stdin.buffer.read(_MOST)
        else:
            with file.open("rb") as opened:
                data = opened.read(_MOST)
    except OSError as error:
        raise UserError(f"the draft cannot be read: {error.strerror}: {file or 'stdin'}") from error
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _text(found: DraftAnswer, *, is_whole: bool) -> str:
    if is_whole:
        return found.comment
    return _folded(found.comment) if found.comment else f"{found.nothing}\n"


def _folded(comment: str) -> str:
    """The comment as a person reads it, without what is folded away and the small print."""
    kept: list[str] = []
    depth = 0
    for line in clean(comment).split("\n"):
        depth += line.count("<details")
        if not depth and not line.startswith("<sub>"):
            kept.append(line)
        depth -= line.count("</details>")
    return "\n".join(kept).strip() + "\n"
