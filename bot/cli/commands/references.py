"""precedent references: the issues that a text mentions, as JSON."""

from __future__ import annotations

import argparse
import sys

from bot.domain.thread import Reference
from bot.reading.references import find_references

MAX_STDIN = 1024 * 1024


def run_references(args: argparse.Namespace) -> list[dict[str, object]]:
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
