"""The sentences of a thread that state what was decided: who has a say, and which few are kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import takewhile

from bot.model import MAINTAINER_ROLES, Decision, Message, Thread
from bot.reading.deciding import Standing, may_decide, standing_of
from bot.reading.statements import statements

_MAX_DECISIONS = 3
_MAX_DECISION = 240
_LONGEST = 600
"""What is longer is a list, a log or a specification, whatever phrase it holds."""

_BRIEF = 4
"""Sentences of a comment that gives a ruling; a longer one explains."""

_TOLD_AFTER = timedelta(minutes=2)
_TOLD_BEFORE = timedelta(days=1)
"""How far from the closing the comment stands that ends a thread."""

_HAS_SAY = MAINTAINER_ROLES | {"CONTRIBUTOR"}


@dataclass(frozen=True, slots=True)
class _Found:
    decision: Decision
    standing: Standing
    rank: int
    is_ending: bool


def decisions(thread: Thread) -> tuple[Decision, ...]:
    """At most three sentences as they were written, in order of time.

    Where there are more: decisions before rulings, those of maintainers and closers before others', those with which
    the thread ends, what a group decided before what one person says, later before earlier.
    """
    ending = _ending(thread)
    opening = Message(thread.author, thread.role, thread.created_at, thread.body, is_bot=thread.is_bot)
    said = ((index, message) for index, message in enumerate((opening, *thread.comments), -1) if not message.is_bot)
    distinct: dict[str, _Found] = {}
    for each in (each for index, message in said for each in _decided(thread, message, index, ending)):
        distinct.setdefault(each.decision.text, each)
    found = list(distinct.values())
    if len(found) > _MAX_DECISIONS:
        ranked = sorted(range(len(found)), key=lambda i: (_weight(found[i]), i), reverse=True)
        found = [found[i] for i in sorted(ranked[:_MAX_DECISIONS])]
    return tuple(each.decision for each in found)


def _weight(found: _Found) -> tuple[int, ...]:
    """How well it states the outcome."""
    return (found.standing > Standing.ENDING, found.rank, found.is_ending, found.standing)


def _ending(thread: Thread) -> frozenset[int]:
    """The comments that close the thread: what its closer said last, if that was not long before."""
    if not thread.closed_at:
        return frozenset()
    since, until = thread.closed_at - _TOLD_BEFORE, thread.closed_at + _TOLD_AFTER
    said = [(i, c) for i, c in enumerate(thread.comments) if not c.is_bot and since <= c.created_at <= until]
    closer = thread.closed_by or (said[-1][1].author if said else None)
    return frozenset(i for i, _ in takewhile(lambda each: each[1].author == closer, reversed(said)))


def _rank(thread: Thread, message: Message) -> int:
    """2 for those who decide, 1 for those who may speak for them, 0 for everybody else."""
    if message.by_maintainer or (message.author == thread.closed_by and message.author != thread.author):
        return 2
    return int(message.role in _HAS_SAY)


def _decided(thread: Thread, message: Message, index: int, ending: frozenset[int]) -> Iterator[_Found]:
    """The decisions in one message, which stands at ``index`` of the comments, -1 for the opening text."""
    rank = _rank(thread, message)
    place = None if index < 0 else index
    needed = _needed(rank, place, is_ending=place in ending)
    if not may_decide(message.text, needed):
        return
    sentences = statements(message.text)
    if needed is Standing.ENDING and len(sentences) > _BRIEF:
        needed = Standing.MAINTAINER
    for sentence in sentences:
        standing = standing_of(sentence, needed) if len(sentence) <= _LONGEST else None
        if standing is not None:
            text = sentence if len(sentence) <= _MAX_DECISION else sentence[: _MAX_DECISION - 1] + "…"
            decision = Decision(text, message.author, message.role, message.created_at, place, message.id)
            yield _Found(decision, standing, rank, place in ending)


def _needed(rank: int, place: int | None, *, is_ending: bool) -> Standing:
    """The weakest sort of phrase that counts here: who opens a thread wants something, and may only report."""
    if place is None:
        return Standing.SPEAKER if rank == 2 else Standing.GROUP
    if is_ending and rank:
        return Standing.ENDING
    return (Standing.GROUP, Standing.SPEAKER, Standing.MAINTAINER)[rank]
