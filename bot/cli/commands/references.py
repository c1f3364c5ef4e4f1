"""precedent references: the issues that a text mentions, as JSON."""

from __future__ import annotations

import sys

from bot.cli.arguments import issue
from bot.cli.options import Arguments, option, repo_option
from bot.domain.thread import Reference
from bot.questions.requests import Issue
from bot.reading.references import find_references

MAX_STDIN = 1024 * 1024


class ReferencesArguments(Arguments):
    repo: str | None = repo_option("the repository that the text belongs to")
    number: Issue | None = option("the text's own issue, which is left out", type=issue, metavar="N")
    autolink: list[str] = option(
        "a prefix of custom links; may be repeated", action="append", default=[], metavar="PREFIX"
    )


def run_references(args: ReferencesArguments) -> list[dict[str, object]]:
    text = sys.stdin.buffer.read(MAX_STDIN).decode("utf-8", "replace")
    repo, number = args.repo, None
    if args.number:
        repo, number = args.repo or args.number.repo or None, args.number.within(args.repo or "")
    references = find_references(text, repo=repo, number=number, autolinks=args.autolink)
    return [_reference(reference) for reference in references]


def _reference(reference: Reference) -> dict[str, object]:
    fields: dict[str, object] = {
        "owner": reference.owner,
        "repo": reference.repo,
        "number": reference.number,
        "action": reference.action,
        "kind": reference.kind,
    }
    return fields | ({"prefix": reference.prefix} if reference.prefix else {})
