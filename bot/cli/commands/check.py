"""precedent check: what the bot would say about an issue that is not filed yet."""

from __future__ import annotations

import sys
from pathlib import Path

from bot.cli.options import MemoryArguments, flag, json_option, option, path_argument
from bot.cli.output import SCHEMA_VERSION, CommandResult, facts_of_answer, show_notes, warn
from bot.comment.clean_text import visible_text
from bot.domain.bounds import MAX_TITLE
from bot.domain.thread_json import MAX_TEXT
from bot.errors import UserError
from bot.local_cache.draft import DraftAnswer, check_draft
from bot.local_cache.location import open_memory
from bot.questions.comment import split_draft
from bot.questions.requests import DraftRequest

_MAX_BYTES = 4 * (MAX_TITLE + MAX_TEXT)
"""Bytes of a draft that are read: GitHub's limit, in UTF-8."""


class CheckArguments(MemoryArguments):
    """Reads a draft from a file or from stdin. Exit codes: 0 nothing similar is remembered; 3 there is something to
    read."""

    file: Path | None = path_argument("the draft, whose first line is the title (default stdin)", nargs="?")
    title: str | None = option("the title, if the draft has only the body", metavar="TEXT")
    comment: bool = flag("print the whole comment, with conversations")
    json: bool = json_option("the comment and the threads in it")


def run_check(args: CheckArguments) -> CommandResult:
    request = _request(args)
    with open_memory(args.memory) as memory:
        answer = check_draft(request, memory.require())
        show_notes(memory)
        if args.json:
            facts = facts_of_answer(memory, (), ())
            selected = {name: facts[name] for name in ("notes", "searched")}
            shown: object = {"schema": SCHEMA_VERSION, "similar": bool(answer.comment), **answer.rows, **selected}
        else:
            if args.comment and not answer.comment:
                warn(answer.nothing)
            shown = _format_answer(answer, is_full=args.comment)
    exit_code = 3 if answer.comment else 0
    return CommandResult(shown, exit_code)


def _request(args: CheckArguments) -> DraftRequest:
    text = _read_draft(args.file)
    title, body = (args.title, text) if args.title else split_draft(text)
    if not title.strip():
        raise UserError("the draft is empty: its first line is the title")
    return DraftRequest(title, body, args.now)


def _read_draft(file: Path | None) -> str:
    if file is None and sys.stdin.isatty():
        raise UserError("no draft: name a file, or give it on stdin (precedent check < draft.md)")
    try:
        if file is None:
            data = sys.stdin.buffer.read(_MAX_BYTES)
        else:
            with file.open("rb") as stream:
                data = stream.read(_MAX_BYTES)
    except OSError as error:
        raise UserError(f"the draft cannot be read: {error.strerror}: {file or 'stdin'}") from error
    return data.decode("utf-8", "replace").replace("\r\n", "\n")


def _format_answer(answer: DraftAnswer, *, is_full: bool) -> str:
    if is_full:
        return answer.comment
    return _visible_part(answer.comment) if answer.comment else f"{answer.nothing}\n"


def _visible_part(comment: str) -> str:
    """The comment as people see it, without folded sections and small print."""
    lines: list[str] = []
    depth = 0
    for line in visible_text(comment).split("\n"):
        depth += line.count("<details")
        if not depth and not line.startswith("<sub>"):
            lines.append(line)
        depth -= line.count("</details>")
    return "\n".join(lines).strip() + "\n"
