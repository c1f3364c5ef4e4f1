"""Collects readers' 👍 and 👎 on our comments, in runs that nobody waits for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bot.domain.changes import AnswerRecord
from bot.domain.thread import Kind
from bot.domain.thread_json import parse_number
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Gone
from bot.memory.memory import Memory
from bot.pipeline.outbox import DELETED

AGE = timedelta(days=14)
"""How long after an answer its comment is checked."""

SEEN = timedelta(minutes=10)
"""GitHub may answer 404 for a comment younger than this, so a 404 proves nothing before."""

MAX_READS = 30
"""Comments that one run checks, with one API read each."""


def collect(memory: Memory, forge: GitHubClient, now: datetime) -> tuple[AnswerRecord, ...]:
    """Changed reactions to the comments of the last two weeks, newest first, to be staged.

    A comment that is gone was deleted by a person. If GitHub cannot be reached, the result so far is kept and a later
    run continues.
    """
    found: list[AnswerRecord] = []
    try:
        for said in _on_issues(_newest(memory.state.every_answer(), now), memory):
            found += _changed(said, forge)
    except ForgeError:
        pass
    return tuple(found)


def _newest(said: Iterable[AnswerRecord], now: datetime) -> list[AnswerRecord]:
    standing = [one for one in said if one.state == "said" and one.comment_id and now - AGE < one.at <= now - SEEN]
    return sorted(standing, key=lambda one: (one.at, one.comment_id), reverse=True)[:MAX_READS]


def _on_issues(said: list[AnswerRecord], memory: Memory) -> list[AnswerRecord]:
    """Without answers in discussions: REST knows a comment with the id of one there as another one, or not at all."""
    known = memory.entries([one.id for one in said])
    return [one for one in said if one.id not in known or known[one.id].kind is not Kind.DISCUSSION]


def _changed(said: AnswerRecord, forge: GitHubClient) -> Iterator[AnswerRecord]:
    """The answer if it changed. It keeps its ``at``, as it is no new answer."""
    assert said.comment_id is not None
    try:
        seen = with_reactions(said, forge.comment(said.comment_id))
    except Gone:
        seen = replace(said, state="removed", reason=DELETED, trying_since=None)
    if seen != said:
        yield seen


def with_reactions(said: AnswerRecord, comment: Mapping[str, Any]) -> AnswerRecord:
    """The answer with the counts of 👍 and 👎 on this comment; an invalid count is 0."""
    counts = comment.get("reactions")
    if not isinstance(counts, Mapping):
        return said
    return replace(said, ups=parse_number(counts.get("+1")) or 0, downs=parse_number(counts.get("-1")) or 0)
