"""Which sentences of a thread state a decision, by the phrase and by whoever says it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import IntEnum
from itertools import takewhile

from bot.domain.thread import MAINTAINER_ROLES, Decision, Message, Thread
from bot.reading.endings.engine import says
from bot.reading.endings.phrases import phrase_book, plain
from bot.reading.endings.supersession import Takeback, takebacks
from bot.reading.markdown import statements


class DecisionAuthority(IntEnum):
    """Who must have said a phrase, and where, for it to decide. Each level also counts for whoever has a higher one."""

    RULING = 1
    """A reason or a ruling: from whoever closes the thread, in the few words that end it."""
    MAINTAINER = 2
    """What one person chooses or plans: from people with write access, and from whoever closes the thread."""
    SPEAKER = 3
    """What somebody says for the project: from people who contributed to it."""
    GROUP = 4
    """What a group has decided: anybody may report it."""


def may_decide(text: str, needed: DecisionAuthority) -> bool:
    """Whether it is worth looking for a decision in ``text``: a fast test that most texts fail."""
    words = plain(" ".join(text.replace("*", " ").replace("_", " ").replace("`", " ").split()))
    rules = phrase_book().rules
    return any(rules[sort.name.lower()].phrases.may_be_in(words) for sort in DecisionAuthority if sort >= needed)


def standing_of(sentence: str, needed: DecisionAuthority) -> DecisionAuthority | None:
    """The highest level at which ``sentence`` states a decision, ``needed`` or higher; None where it states none.

    Questions, conditions, proposals, denials, and decisions of outsiders state none.
    """
    levels = (sort for sort in reversed(DecisionAuthority) if sort >= needed)
    return next((sort for sort in levels if says(phrase_book().rules[sort.name.lower()], sentence)), None)


_MAX_DECISIONS = 3
_MAX_DECISION = 240
_MAX_TAKEBACKS = 10
"""Each is compared with all decisions, of which a hostile thread may have thousands."""

_LONGEST = 600
"""Anything longer is a list, a log or a specification, whatever phrase it contains."""

_BRIEF = 4
"""Most sentences of a comment that gives a ruling; a longer one explains."""

_TOLD_AFTER = timedelta(minutes=2)
_TOLD_BEFORE = timedelta(days=1)
"""How far from the closing a comment may be that ends the thread."""

_HAS_SAY = MAINTAINER_ROLES | {"CONTRIBUTOR"}


@dataclass(frozen=True, slots=True)
class _Found:
    decision: Decision
    standing: DecisionAuthority
    rank: int
    is_ending: bool


def decisions(thread: Thread) -> tuple[Decision, ...]:
    """At most three sentences as they were written, in order of time.

    If there are more, those that stand are kept before superseded ones, then decisions before rulings, then those of
    maintainers and closers, then those that end the thread, then those of a group, then later ones.
    """
    ending = _ending(thread)
    opening = Message(thread.author, thread.role, thread.created_at, thread.body, is_bot=thread.is_bot)
    said = ((index, message) for index, message in enumerate((opening, *thread.comments), -1) if not message.is_bot)
    every = [each for index, message in said for each in _decided(thread, message, index, ending)]
    distinct: dict[str, _Found] = {}
    for each in _with_takebacks(thread, every):
        first = distinct.setdefault(each.decision.text, each)
        if first.decision.superseded_by and not each.decision.superseded_by:
            del distinct[each.decision.text]  # decided again: it stands where it was said last
            distinct[each.decision.text] = each
    found = list(distinct.values())
    if len(found) > _MAX_DECISIONS:
        ranked = sorted(range(len(found)), key=lambda i: (_weight(found[i]), i), reverse=True)
        found = [found[i] for i in sorted(ranked[:_MAX_DECISIONS])]
    return tuple(each.decision for each in found)


def _weight(found: _Found) -> tuple[int, ...]:
    return (
        not found.decision.superseded_by,
        found.standing > DecisionAuthority.RULING,
        found.rank,
        found.is_ending,
        found.standing,
    )


def _with_takebacks(thread: Thread, found: list[_Found]) -> list[_Found]:
    """The same, with what later comments take back marked as superseded by them."""
    marked = list(found)
    if not found:
        return marked
    deciding = {each.decision.comment for each in found}
    said = [
        (index, takeback)
        for index, message in enumerate(thread.comments)
        if not message.is_bot and _rank(thread, message)
        for takeback in takebacks(message.text, thread.id, decides=index in deciding)
    ]
    for index, takeback in said[-_MAX_TAKEBACKS:]:
        _mark(marked, takeback, thread, index)
    return marked


def _mark(marked: list[_Found], takeback: Takeback, thread: Thread, index: int) -> None:
    """Mark what the comment at ``index`` takes back: decisions in earlier comments by people with no more say."""
    message = thread.comments[index]
    here = f"{thread.kind.traits.comment_path}{message.id}" if message.id else f"#{thread.id}"
    later = f"#{takeback.thread}" if takeback.thread else here
    standing = [
        place
        for place, each in enumerate(marked)
        if (-1 if each.decision.comment is None else each.decision.comment) < index and not each.decision.superseded_by
    ]
    texts = [marked[place].decision.text for place in standing]
    for at in takeback.targets(texts, thread.title, is_pull=thread.kind.traits.is_change):
        old = marked[standing[at]]
        if old.rank <= _rank(thread, message):
            marked[standing[at]] = replace(old, decision=replace(old.decision, superseded_by=later))


def _ending(thread: Thread) -> frozenset[int]:
    """The indices of the closer's last comments, if they were written shortly before the closing."""
    if not thread.closed_at:
        return frozenset()
    since, until = thread.closed_at - _TOLD_BEFORE, thread.closed_at + _TOLD_AFTER
    said = [(i, c) for i, c in enumerate(thread.comments) if not c.is_bot and since <= c.created_at <= until]
    closer = thread.closed_by or (said[-1][1].author if said else None)
    return frozenset(i for i, _ in takewhile(lambda each: each[1].author == closer, reversed(said)))


def _rank(thread: Thread, message: Message) -> int:
    """2 for people who decide, 1 for people who may speak for the project, 0 for everybody else."""
    if message.by_maintainer or (message.author == thread.closed_by and message.author != thread.author):
        return 2
    return int(message.role in _HAS_SAY)


def _decided(thread: Thread, message: Message, index: int, ending: frozenset[int]) -> Iterator[_Found]:
    """The decisions in the comment at ``index``, or in the opening text for -1."""
    rank = _rank(thread, message)
    place = None if index < 0 else index
    needed = _needed(rank, place, is_ending=place in ending)
    if not may_decide(message.text, needed):
        return
    sentences = statements(message.text)
    if needed is DecisionAuthority.RULING and len(sentences) > _BRIEF:
        needed = DecisionAuthority.MAINTAINER
    for sentence in sentences:
        standing = standing_of(sentence, needed) if len(sentence) <= _LONGEST else None
        if standing is not None:
            text = sentence if len(sentence) <= _MAX_DECISION else sentence[: _MAX_DECISION - 1] + "…"
            decision = Decision(text, message.author, message.role, message.created_at, place, message.id)
            yield _Found(decision, standing, rank, place in ending)


def _needed(rank: int, place: int | None, *, is_ending: bool) -> DecisionAuthority:
    """The lowest level that counts here: whoever opens a thread wants something, and may only report decisions."""
    if place is None:
        return DecisionAuthority.SPEAKER if rank == 2 else DecisionAuthority.GROUP
    if is_ending and rank:
        return DecisionAuthority.RULING
    return (DecisionAuthority.GROUP, DecisionAuthority.SPEAKER, DecisionAuthority.MAINTAINER)[rank]
