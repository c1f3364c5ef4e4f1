"""precedent references: the issues that a text points at, as JSON."""

from __future__ import annotations

import argparse
import sys

from bot.domain.thread import Reference
from bot.reading.references import find_references

MAX_STDIN = 1024 * 1024


def run_references(given: argparse.Namespace) -> list[dict[str, object]]:
    text = sys.stdin.buffer.read(MAX_STDIN).decode("utf-8", "replace")
    repo, number = given.repo, None
    if given.number:
        repo, number = given.repo or given.number.repo or None, given.number.within(given.repo or "")
    found = find_references(text, repo=repo, number=number, autolinks=given.autolink)
    return [_reference(reference) for reference in found]


def _reference(reference: Reference) -> dict[str, object]:
    fields: dict[str, object] = {
        "owner": reference.owner,
        "repo": reference.repo,
        "number": reference.number,
        "action": reference.action,
        "kind": reference.kind,
    }
    return fields | ({"prefix": reference.prefix} if reference.prefix else {})
