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

MAX_AGE = timedelta(days=14)
"""How long after an answer its comment is checked."""

MIN_AGE = timedelta(minutes=10)
"""GitHub may answer 404 for a comment younger than this, so until then a 404 proves nothing."""

MAX_READS = 30
"""Comments that one run checks, with one API read each."""


def collect_feedback(memory: Memory, forge: GitHubClient, now: datetime) -> tuple[AnswerRecord, ...]:
    """Changed reactions to the comments of the last two weeks, newest first, to be staged.

    A comment that is gone was deleted by a person. If GitHub cannot be reached, the result so far is kept and a later
    run continues.
    """
    changed: list[AnswerRecord] = []
    try:
        for answer in _on_issues(_newest_answers(memory.state.every_answer(), now), memory):
            changed += _changed_answer(answer, forge, now)
    except ForgeError:
        pass
    return tuple(changed)


def _newest_answers(answers: Iterable[AnswerRecord], now: datetime) -> list[AnswerRecord]:
    recent = [
        answer
        for answer in answers
        if answer.state == "said" and answer.comment_id and now - MAX_AGE < answer.at <= now - MIN_AGE
    ]
    return sorted(recent, key=lambda answer: (answer.at, answer.comment_id), reverse=True)[:MAX_READS]


def _on_issues(answers: list[AnswerRecord], memory: Memory) -> list[AnswerRecord]:
    """Without answers in discussions: for REST, the id of a comment there belongs to another comment, or to none."""
    entries = memory.entries([answer.id for answer in answers])
    return [answer for answer in answers if answer.id not in entries or entries[answer.id].kind is not Kind.DISCUSSION]


def _changed_answer(answer: AnswerRecord, forge: GitHubClient, now: datetime) -> Iterator[AnswerRecord]:
    """The answer if it changed. It keeps its ``at``, as it is not a new answer."""
    assert answer.comment_id is not None
    try:
        current = with_reactions(answer, forge.comment(answer.comment_id))
    except Gone:
        current = replace(answer, state="removed", reason=DELETED, trying_since=None)
    if current != answer:
        yield replace(current, revised_at=now)


def with_reactions(answer: AnswerRecord, comment: Mapping[str, Any]) -> AnswerRecord:
    """The answer with the counts of 👍 and 👎 on this comment; an invalid count is 0."""
    counts = comment.get("reactions")
    if not isinstance(counts, Mapping):
        return answer
    return replace(answer, ups=parse_number(counts.get("+1")) or 0, downs=parse_number(counts.get("-1")) or 0)
