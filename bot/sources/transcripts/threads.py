"""A session as a thread: what a person and an assistant said to each other."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from bot.archive import MAX_NAME, MAX_TEXT, MAX_TITLE
from bot.model import Kind, Message, Thread, TimelineEvent
from bot.reading.tail import tail
from bot.sources.transcripts.nouns import USER, Session, Utterance

HUMAN, MACHINE = "human", "assistant"
"""Who speaks in a session; its lines tell no names."""

LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)
"""When a session happened none of whose lines tell a time."""

NO_TITLE = "(nothing was asked)"


def thread_of(session: Session) -> Thread:
    """The session as a thread. A message without a time has that of the one before it; the files that were touched
    stand below what was said before. The issue that it worked on refers to it."""
    times = _times(session.utterances)
    said = [
        Message(*_speaker(each), at, text, is_bot=each.type != USER)
        for each, at in zip(session.utterances, times, strict=True)
        if (text := told(each))
    ]
    first = said[0] if said else Message(HUMAN, "NONE", LONG_AGO, "")
    refers = session.issue and TimelineEvent(
        "cross-referenced", first.created_at, source=session.issue, source_kind=Kind.ISSUE
    )
    return Thread(
        id=session.id[:MAX_NAME],
        title=title_of(session.utterances),
        body=first.text,
        author=first.author,
        role=first.role,
        is_bot=first.is_bot,
        created_at=first.created_at,
        updated_at=max(times, default=first.created_at),
        kind=Kind.SESSION,
        comments=tuple(said[1:]),
        events=(refers,) if refers else (),
    )


def title_of(utterances: Sequence[Utterance]) -> str:
    """The first line of the first prompt."""
    asked = next((each.text for each in utterances if each.type == USER and each.text.strip()), "")
    return asked.strip().partition("\n")[0].strip()[:MAX_TITLE] or NO_TITLE


def told(utterance: Utterance) -> str:
    """The text, and below it the files that the tools were called with."""
    files = "Files: " + ", ".join(f"`{path}`" for path in utterance.files) if utterance.files else ""
    room = MAX_TEXT - len(files) - 2
    return "\n\n".join(filter(None, (tail(utterance.text, room), files)))[:MAX_TEXT]


def _speaker(utterance: Utterance) -> tuple[str, str]:
    return (HUMAN if utterance.type == USER else MACHINE), "NONE"


def _times(utterances: Sequence[Utterance]) -> list[datetime]:
    """When each was said, never before the one that stands before it."""
    now = next((each.at for each in utterances if each.at), LONG_AGO)
    times = []
    for each in utterances:
        now = max(now, each.at or now)
        times.append(now)
    return times
