"""A session of a coding agent: its messages, and the thread that is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from bot.domain.bounds import MAX_NAME, MAX_TITLE
from bot.domain.thread import Kind, Message, Thread, TimelineEvent
from bot.domain.thread_json import MAX_TEXT
from bot.reading.markdown import tail
from bot.sources.sessions.formats import USER


class Utterance(NamedTuple):
    """A message of a session. ``type`` is ``user`` or ``assistant``; ``at`` is None if the line has no time.

    ``files`` come from the tool calls up to the next message, relative to the session's folder if they are in it. The
    text is empty for files touched before the first message.
    """

    type: str
    text: str
    at: datetime | None = None
    files: tuple[str, ...] = ()


class Session(NamedTuple):
    """A session in a file, with its messages in the order of the lines.

    ``issue`` is the number of the issue it worked on, from a mapping file. ``broken`` is the number of lines skipped in
    the file; they belong to no session, so every session of the file has the same number.
    """

    id: str
    path: str
    utterances: tuple[Utterance, ...]
    issue: int | None = None
    broken: int = 0


# -- a session as a thread ---------------------------------------------------------------------------------------------

HUMAN, MACHINE = "human", "assistant"
"""The authors of a session's messages, who have no names."""

UNKNOWN_TIME = datetime(1970, 1, 1, tzinfo=UTC)
"""The time of a session without times."""

NO_TITLE = "(nothing was asked)"


def thread_of(session: Session) -> Thread:
    """Convert a session to a thread. A message without a time gets that of the previous one; touched files are listed
    below the previous message. The issue it worked on becomes a cross-reference."""
    times = _times(session.utterances)
    messages = [
        Message(HUMAN if utterance.type == USER else MACHINE, "NONE", at, text, is_bot=utterance.type != USER)
        for utterance, at in zip(session.utterances, times, strict=True)
        if (text := _with_files(utterance))
    ]
    first = messages[0] if messages else Message(HUMAN, "NONE", UNKNOWN_TIME, "")
    reference = session.issue and TimelineEvent(
        "cross-referenced", first.created_at, source=session.issue, source_kind=Kind.ISSUE
    )
    return Thread(
        id=session.id[:MAX_NAME],
        title=_title(session.utterances),
        body=first.text,
        author=first.author,
        role=first.role,
        is_bot=first.is_bot,
        created_at=first.created_at,
        updated_at=max(times, default=first.created_at),
        kind=Kind.SESSION,
        comments=tuple(messages[1:]),
        events=(reference,) if reference else (),
    )


def _title(utterances: Sequence[Utterance]) -> str:
    question = next(
        (utterance.text for utterance in utterances if utterance.type == USER and utterance.text.strip()), ""
    )
    return question.strip().partition("\n")[0].strip()[:MAX_TITLE] or NO_TITLE


def _with_files(utterance: Utterance) -> str:
    files = "Files: " + ", ".join(f"`{path}`" for path in utterance.files) if utterance.files else ""
    room = MAX_TEXT - len(files) - 2
    return "\n\n".join(filter(None, (tail(utterance.text, room), files)))[:MAX_TEXT]


def _times(utterances: Sequence[Utterance]) -> list[datetime]:
    """The time of each message, never earlier than that of the previous one."""
    time = next((utterance.at for utterance in utterances if utterance.at), UNKNOWN_TIME)
    times = []
    for utterance in utterances:
        time = max(time, utterance.at or time)
        times.append(time)
    return times
