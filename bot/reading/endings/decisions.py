"""Finds the sentences of a thread that state a decision, by their phrases and their authors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import timedelta
from enum import IntEnum
from itertools import takewhile

from bot.domain.thread import Decision, Message, Outcome, OutcomeKind, Thread
from bot.reading.endings.engine import is_question, says
from bot.reading.endings.phrases import fold_for_stems, has_phrase, phrase_book
from bot.reading.endings.supersession import Takeback, takebacks
from bot.reading.markdown import statements
from bot.reading.text_edges import cut_at_edge


class DecisionAuthority(IntEnum):
    """Who must say a phrase, and where, for it to be a decision. A lower value demands more of the speaker."""

    RULING = 1
    """A reason or a ruling: only from the person who closes the thread, in the few words that end it."""
    MAINTAINER = 2
    """What one person chooses or plans: from people who decide here."""
    SPEAKER = 3
    """A statement on behalf of the project: from them, and from authors whose change or request was accepted."""
    GROUP = 4
    """A group's decision, likewise."""


def may_decide(text: str, needed: DecisionAuthority) -> bool:
    """Whether it is worth looking for a decision in ``text``: a fast test that most texts fail."""
    words = fold_for_stems(" ".join(text.replace("*", " ").replace("_", " ").replace("`", " ").split()))
    rules = phrase_book().rules
    return any(rules[level.name.lower()].phrases.may_be_in(words) for level in DecisionAuthority if level >= needed)


def authority_of(sentence: str, needed: DecisionAuthority) -> DecisionAuthority | None:
    """The highest level at which ``sentence`` states a decision, ``needed`` or higher; None if it states none.

    Questions, conditions, proposals, denials and decisions of outsiders do not count.
    """
    levels = (level for level in reversed(DecisionAuthority) if level >= needed)
    return next((level for level in levels if says(phrase_book().rules[level.name.lower()], sentence)), None)


_MAX_DECISIONS = 3
_MAX_DECISION_CHARS = 240
_MAX_RETRACTIONS = 10
"""Each is compared with all decisions, and a hostile thread may have thousands."""

_MAX_SENTENCE_CHARS = 600
"""A longer sentence is a list, a log or a specification, whatever phrase it contains."""

_MAX_RULING_SENTENCES = 4
"""Maximum sentences of a comment that gives a ruling; a longer one explains."""

_ENDING_AFTER = timedelta(minutes=2)
_ENDING_BEFORE = timedelta(days=1)
"""How far from the closing a comment may be to count as ending the thread."""


@dataclass(frozen=True, slots=True)
class _RatedDecision:
    decision: Decision
    authority: DecisionAuthority
    rank: int
    is_ending: bool


def decisions(thread: Thread, outcome: Outcome | None = None) -> tuple[Decision, ...]:
    """At most three sentences that state decisions, as written, in order of time.

    If there are none, the last proposal of somebody who decides here counts if, by its ``outcome``, the thread was
    fixed.

    If there are more, decisions still in force win over superseded ones, then decisions over rulings, then those of
    maintainers and closers, then those that end the thread, then those of a group, then later ones.
    """
    ending = _closing_comments(thread)
    messages = list(enumerate(thread.messages, -1))
    all_found = [
        candidate for index, message in messages for candidate in _find_decisions(thread, message, index, ending)
    ]
    if not all_found and _is_fixed(thread, outcome):
        done_in = (outcome.fix if outcome else None) or ""
        proposals = [each for index, message in messages for each in _find_proposals(thread, message, index)]
        all_found = [replace(each, decision=replace(each.decision, done_in=done_in)) for each in proposals[-1:]]
    distinct: dict[str, _RatedDecision] = {}
    for candidate in _with_takebacks(thread, all_found):
        first = distinct.setdefault(candidate.decision.text, candidate)
        if first.decision.superseded_by and not candidate.decision.superseded_by:
            del distinct[candidate.decision.text]  # decided again: keep the last statement, at its own place
            distinct[candidate.decision.text] = candidate
    rated = list(distinct.values())
    if len(rated) > _MAX_DECISIONS:
        ranked = sorted(range(len(rated)), key=lambda i: (_weight(rated[i]), i), reverse=True)
        rated = [rated[i] for i in sorted(ranked[:_MAX_DECISIONS])]
    return tuple(candidate.decision for candidate in rated)


def _weight(candidate: _RatedDecision) -> tuple[int, ...]:
    return (
        not candidate.decision.superseded_by,
        candidate.authority > DecisionAuthority.RULING,
        candidate.rank,
        candidate.is_ending,
        candidate.authority,
    )


def _with_takebacks(thread: Thread, candidates: list[_RatedDecision]) -> list[_RatedDecision]:
    """A copy in which decisions that later comments take back are marked as superseded."""
    marked = list(candidates)
    if not candidates:
        return marked
    deciding = {candidate.decision.comment for candidate in candidates}
    retractions = [
        (index, takeback)
        for index, message in enumerate(thread.comments)
        if _rank(thread, message)
        for takeback in takebacks(message.text, thread.id, decides=index in deciding)
    ]
    for index, takeback in retractions[-_MAX_RETRACTIONS:]:
        _mark_superseded(marked, takeback, thread, index)
    return marked


def _mark_superseded(marked: list[_RatedDecision], takeback: Takeback, thread: Thread, index: int) -> None:
    """Mark what the comment at ``index`` takes back: earlier decisions by people of the same or a lower rank."""
    message = thread.comments[index]
    here = f"{thread.kind.traits.comment_path}{message.id}" if message.id else f"#{thread.id}"
    later = f"#{takeback.thread}" if takeback.thread else here
    current = [
        position
        for position, each in enumerate(marked)
        if (-1 if each.decision.comment is None else each.decision.comment) < index and not each.decision.superseded_by
    ]
    texts = [marked[position].decision.text for position in current]
    for at in takeback.targets(texts, thread.title, is_pull=thread.kind.traits.is_change):
        old = marked[current[at]]
        if old.rank <= _rank(thread, message):
            marked[current[at]] = replace(old, decision=replace(old.decision, superseded_by=later))


def _closing_comments(thread: Thread) -> frozenset[int]:
    """The indices of the closer's last comments, if they were written shortly before the closing."""
    if not thread.closed_at:
        return frozenset()
    since, until = thread.closed_at - _ENDING_BEFORE, thread.closed_at + _ENDING_AFTER
    comments = [(i, c) for i, c in enumerate(thread.comments) if not c.is_bot and since <= c.created_at <= until]
    closer = thread.closed_by or (comments[-1][1].author if comments else None)
    return frozenset(i for i, _ in takewhile(lambda each: each[1].author == closer, reversed(comments)))


def _rank(thread: Thread, message: Message) -> int:
    """2 for people who may decide here, 1 for authors whose change or request a maintainer accepted, 0 for others.

    A sentence of somebody else is no decision, whatever it says.
    """
    if message.author in thread.deciders or thread.kind.traits.is_local:
        return 2
    if message.is_bot:
        return 0
    if message.by_maintainer or (message.author == thread.closed_by and message.author != thread.author):
        return 2
    if not message.role:  # a history without roles
        return 2 if message.author in (thread.closed_by, *thread.assignees) else 0
    return int(message.author == thread.author and (bool(thread.merged_at) or _is_accepted(thread, message)))


def _is_accepted(thread: Thread, message: Message) -> bool:
    """Whether a maintainer agreed after the author's message, and another person closed the issue as completed."""
    closed_at = thread.closed_at
    if closed_at is None or thread.state_reason not in (None, "completed") or thread.closed_by in (None, thread.author):
        return False
    replies = (each for each in thread.comments if each.by_maintainer and not each.is_bot)
    return any(
        has_phrase("agreement", sentence) and not is_question(sentence)
        for reply in replies
        if message.created_at < reply.created_at <= closed_at + _ENDING_AFTER
        for sentence in statements(reply.text)
    )


def _is_fixed(thread: Thread, outcome: Outcome | None) -> bool:
    is_fix = outcome is not None and outcome.kind is OutcomeKind.FIXED
    return is_fix and thread.state_reason in (None, "completed")


def _find_proposals(thread: Thread, message: Message, index: int) -> Iterator[_RatedDecision]:
    """What a maintainer proposed in a thread that was then closed as completed."""
    closed_at = thread.closed_at
    if _rank(thread, message) < 2 or closed_at is None or message.created_at > closed_at:
        return
    for sentence in statements(message.text):
        if len(sentence) <= _MAX_SENTENCE_CHARS and says(phrase_book().rules["proposal"], sentence):
            decision = replace(_decision(sentence, message, None if index < 0 else index), is_proposal=True)
            yield _RatedDecision(decision, DecisionAuthority.MAINTAINER, 2, is_ending=False)


def _decision(sentence: str, message: Message, position: int | None) -> Decision:
    text = cut_at_edge(sentence, _MAX_DECISION_CHARS)
    return Decision(text, message.author, message.role, message.created_at, position, message.id)


def _find_decisions(thread: Thread, message: Message, index: int, ending: frozenset[int]) -> Iterator[_RatedDecision]:
    """The decisions in the comment at ``index``, or in the opening text for -1."""
    rank = _rank(thread, message)
    if not rank:
        return
    position = None if index < 0 else index
    needed = _required_authority(rank, position, is_ending=position in ending)
    if not may_decide(message.text, needed):
        return
    sentences = statements(message.text)
    if needed is DecisionAuthority.RULING and len(sentences) > _MAX_RULING_SENTENCES:
        needed = DecisionAuthority.MAINTAINER
    for sentence in sentences:
        authority = authority_of(sentence, needed) if len(sentence) <= _MAX_SENTENCE_CHARS else None
        if authority is not None:
            yield _RatedDecision(_decision(sentence, message, position), authority, rank, position in ending)


def _required_authority(rank: int, position: int | None, *, is_ending: bool) -> DecisionAuthority:
    """The lowest level that counts here. Whoever opens a thread wants something, and may only report decisions."""
    if position is None:
        return DecisionAuthority.SPEAKER if rank == 2 else DecisionAuthority.GROUP
    if is_ending and rank == 2:
        return DecisionAuthority.RULING
    return DecisionAuthority.MAINTAINER if rank == 2 else DecisionAuthority.SPEAKER
