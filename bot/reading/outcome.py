"""How a closed thread ended, by evidence: the events around its closing and the comment that states the ending."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from bot.model import Kind, Message, Outcome, OutcomeKind, Thread, TimelineEvent
from bot.reading import phrases
from bot.reading.markdown import read
from bot.reading.statements import statements
from bot.reading.verdict import Verdict, verdicts

MAX_QUOTE = 300
"""Longest quote, in characters."""

# Measured on 160 labelled threads: the ending is the last comment before closing in 89 %, three quarters of them stand
# within two minutes of it; what stands there more than a day before is the ending only when it says so.
_SLACK = timedelta(minutes=2)
_AT_ONCE = timedelta(minutes=2)
_NEAR = timedelta(days=1)
_FLIP = timedelta(minutes=10)
_COMMIT_BEFORE = timedelta(days=3)
_COMMIT_AFTER = timedelta(hours=1)
_PULL_BEFORE = timedelta(days=7)
_DUPLICATE_AROUND = timedelta(days=1)

_SHORT_CODE = 3
_SHORT_COMMENT = 80
# How often the last comment was the ending on those threads, rounded down, by how near to the closing it stood.
_QUOTED_AT_ONCE = 0.9
_QUOTED_NEAR = 0.7


@dataclass(frozen=True, slots=True)
class _Closing:
    """The closing that counts. What was said before ``since`` belongs to an earlier one that was taken back."""

    at: datetime
    by: str | None
    since: datetime | None
    event: TimelineEvent | None


@dataclass(frozen=True, slots=True)
class _Ending:
    """The last word before a closing: its place, its sentences, and how long before the closing it was said."""

    index: int
    message: Message
    said: tuple[str, ...]
    gap: timedelta
    by_closer: bool


def outcome(thread: Thread) -> Outcome:
    """How ``thread`` ended. A kind is named only on strong evidence, otherwise the ending is quoted or left out.

    Open threads, and closed ones about which nothing is known, give the empty outcome. The quote is one or two
    sentences of the comment's prose, at most 300 characters, without Markdown quotes and code blocks.
    """
    closing = _closing(thread)
    if closing is None:
        return Outcome()
    ending = _ending(thread, closing)
    stated = _stated(ending, thread) if ending else None
    if ending and not _is_shown(ending, stated):
        ending = stated = None
    verdict = _with_pull(_weigh(stated, _recorded(thread, closing)), thread)
    if ending is None:
        return _unquoted(verdict, closing)
    return _quoted(ending, stated, verdict)


def _closing(thread: Thread) -> _Closing | None:
    if not thread.is_closed or thread.closed_at is None:
        return None
    at = thread.closed_at
    events = [event for event in thread.events if event.at <= at + _SLACK]
    closed = next((event for event in reversed(events) if event.name == "closed"), None)
    # Closed, reopened and closed again within minutes is one closing by a slip of the hand.
    reopened = [event.at for event in events if event.name == "reopened" and at - event.at > _FLIP]
    by = thread.closed_by or (closed.actor if closed else None)
    return _Closing(at, by, max(reopened, default=None), closed)


def _ending(thread: Thread, closing: _Closing) -> _Ending | None:
    """The last comment before closing that a person wrote about this thread; the closer may be a little late."""
    for index in range(len(thread.comments) - 1, -1, -1):
        message = thread.comments[index]
        gap = closing.at - message.created_at
        by_closer = closing.by is not None and message.author == closing.by
        late = gap < timedelta(0)
        if late and (gap < -_SLACK or not (by_closer or closing.by is None)):
            continue
        if closing.since and message.created_at < closing.since:
            return None
        if message.is_bot or _says_nothing(message.text):
            continue
        return _Ending(index, message, statements(message.text), max(gap, timedelta(0)), by_closer)
    return None


def _says_nothing(text: str) -> bool:
    bare = text.strip()
    if len(bare) < _SHORT_COMMENT and (phrases.COURTESY.fullmatch(bare) or phrases.HOUSEKEEPING.search(bare)):
        return True
    return bool(phrases.COMMAND.match(bare))


def _is_shown(ending: _Ending, stated: Verdict | None) -> bool:
    if stated and stated.explicit:
        return True
    return ending.gap <= _NEAR and bool(ending.said)


def _stated(ending: _Ending, thread: Thread) -> Verdict | None:
    """What the ending comment says in so many words: of the kinds it names the surest, where it first names it."""
    judged = [verdicts(sentence, thread.id) for sentence in _spoken(ending)]
    for rule in range(max(map(len, judged), default=0)):
        for index, found in enumerate(judged):
            verdict = found[rule]
            if verdict and (verdict.explicit or ending.gap <= _NEAR):
                return replace(verdict, sentence=index, confidence=_confidence(verdict, ending))
    return None


def _spoken(ending: _Ending) -> list[str]:
    """The sentences with code spans blanked: a function may be called ``obsolete``."""
    code = [span for span in read(ending.message.text).inline_code if len(span) > _SHORT_CODE]
    said = "\n".join(ending.said)
    for span in code:
        said = said.replace(" ".join(span.split()), "`")
    return said.split("\n")


def _confidence(verdict: Verdict, ending: _Ending) -> float:
    distance = 0.0 if ending.gap <= _AT_ONCE else 0.1 if ending.gap <= _NEAR else 0.2
    stranger = 0.0 if ending.by_closer or ending.message.by_maintainer else 0.05
    return round(verdict.confidence - distance - stranger, 2)


def _recorded(thread: Thread, closing: _Closing) -> Verdict | None:
    """What the events around the closing say."""
    until = closing.at + _DUPLICATE_AROUND
    marked = [event for event in thread.events if event.name.endswith("marked_as_duplicate") and event.at <= until]
    if marked and marked[-1].name == "marked_as_duplicate":
        return Verdict(OutcomeKind.DUPLICATE, ("marked as duplicate",), 0.95, duplicate_of=marked[-1].source)
    if thread.state_reason == "duplicate":
        return Verdict(OutcomeKind.DUPLICATE, ("closed as duplicate",), 0.95)
    fix = _recorded_fix(thread, closing)
    if fix:
        return fix
    if thread.state_reason == "not_planned":
        return Verdict(OutcomeKind.NOT_PLANNED, ("closed as not planned",), 0.6)
    return None


def _recorded_fix(thread: Thread, closing: _Closing) -> Verdict | None:
    event = closing.event
    if event and event.commit:
        return Verdict(OutcomeKind.FIXED, ("closing commit",), 0.95, fix=event.commit)
    if event and event.source is not None and event.source_kind is Kind.PULL:
        return Verdict(OutcomeKind.FIXED, ("closing pull request",), 0.95, fix=f"#{event.source}")
    known = [event for event in thread.events if closing.since is None or event.at > closing.since]
    commits = [event.commit for event in known if event.name == "referenced" and _is_around(event, closing)]
    if commits and commits[-1]:
        return Verdict(OutcomeKind.FIXED, ("commit shortly before closing",), 0.75, fix=commits[-1])
    pulls = {event.source for event in known if event.source_kind is Kind.PULL and _is_before(event, closing)}
    if len(pulls) == 1:
        return Verdict(OutcomeKind.FIXED, ("pull request shortly before closing",), 0.6, fix=f"#{pulls.pop()}")
    return None


def _is_around(event: TimelineEvent, closing: _Closing) -> bool:
    return closing.at - _COMMIT_BEFORE <= event.at <= closing.at + _COMMIT_AFTER


def _is_before(event: TimelineEvent, closing: _Closing) -> bool:
    return event.name == "cross-referenced" and closing.at - _PULL_BEFORE <= event.at <= closing.at


def _weigh(stated: Verdict | None, recorded: Verdict | None) -> Verdict | None:
    """Of words and events the surer; where both agree, what either knows."""
    if stated is None or recorded is None:
        return stated or recorded
    if stated.kind is recorded.kind:
        return replace(
            stated,
            fix=stated.fix or recorded.fix,
            duplicate_of=stated.duplicate_of if stated.duplicate_of is not None else recorded.duplicate_of,
            confidence=max(stated.confidence, recorded.confidence),
            evidence=(*recorded.evidence, *stated.evidence),
        )
    return stated if stated.confidence >= recorded.confidence else recorded


def _with_pull(verdict: Verdict | None, thread: Thread) -> Verdict | None:
    """The verdict, knowing when the fix that words only number is a pull request that refers to this thread."""
    pulls = {f"#{event.source}" for event in thread.events if event.source_kind is Kind.PULL}
    if verdict is None or verdict.fix not in pulls or any("pull" in words for words in verdict.evidence):
        return verdict
    return replace(verdict, evidence=(*verdict.evidence, "a pull request that refers to it"))


def _unquoted(verdict: Verdict | None, closing: _Closing) -> Outcome:
    if verdict is None:
        return Outcome()
    return Outcome(
        kind=verdict.kind,
        at=closing.at,
        fix=verdict.fix,
        duplicate_of=verdict.duplicate_of,
        evidence=verdict.evidence,
        confidence=verdict.confidence,
    )


def _quoted(ending: _Ending, stated: Verdict | None, verdict: Verdict | None) -> Outcome:
    message = ending.message
    plain = Outcome(
        comment=ending.index,
        comment_id=message.id,
        quote=_quote(ending.said, stated.sentence if stated else None),
        author=message.author,
        role=message.role,
        at=message.created_at,
        evidence=("last comment before closing",),
        confidence=_QUOTED_AT_ONCE if ending.gap <= _AT_ONCE else _QUOTED_NEAR,
    )
    if verdict is None:
        return plain
    return replace(
        plain,
        kind=verdict.kind,
        fix=verdict.fix,
        duplicate_of=verdict.duplicate_of,
        evidence=(*plain.evidence, *verdict.evidence),
        confidence=verdict.confidence,
    )


def _quote(said: tuple[str, ...], stated: int | None) -> str:
    """The sentence that states the ending (else the one that speaks of closing, else the first) and a neighbour."""
    if not said:
        return ""
    speaks = next((i for i, sentence in enumerate(said) if phrases.CLOSING.search(sentence)), None)
    at = stated if stated is not None else speaks if speaks is not None else 0
    best = said[at]
    after = said[at + 1] if at + 1 < len(said) else ""
    before = said[at - 1] if at else ""
    for pair in (f"{best} {after}" if after else "", f"{before} {best}" if before else ""):
        if pair and len(pair) <= MAX_QUOTE:
            return pair
    return best if len(best) <= MAX_QUOTE else best[: MAX_QUOTE - 1].rstrip() + "\u2026"
