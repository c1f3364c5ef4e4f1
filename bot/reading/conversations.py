"""Splits a thread into conversations: messages that follow one another within half an hour."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from bot.domain.change_state import number_of
from bot.domain.thread import Kind, Message, Thread, ThreadId
from bot.reading.endings.outcome import CLOSING_PULL, outcome

Speaker = Literal["you", "human"]

CONVERSATION_GAP = timedelta(minutes=30)
"""A message this long or longer after the previous one starts a new conversation."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One message of a conversation. ``speaker`` is ``you`` for the agent's own; ``at`` is in UTC."""

    speaker: Speaker
    name: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True)
class Conversation:
    """One or more messages of a thread, oldest first. ``ending`` says how the thread ended, "" while it is open."""

    thread: ThreadId
    kind: Kind
    title: str
    turns: tuple[Turn, ...]
    ending: str = ""

    @property
    def start(self) -> datetime:
        return self.turns[0].at

    @property
    def end(self) -> datetime:
        return self.turns[-1].at


@dataclass(frozen=True, slots=True)
class ShownConversation:
    """A conversation to show. ``turns`` are its newest turns, shown in full.

    ``relative`` is the day it ended, relative to now. A summary shows no turn in full.
    """

    conversation: Conversation
    turns: tuple[Turn, ...]
    relative: str
    is_summary: bool = False

    @property
    def omitted(self) -> int:
        """The number of messages left out; 0 for a summary."""
        return 0 if self.is_summary else len(self.conversation.turns) - len(self.turns)


@dataclass(frozen=True, slots=True)
class ConversationHistory:
    """Conversations to show, newest first. ``omitted`` is the number not shown at all.

    ``is_continuation``: the newest ended less than half an hour ago.
    """

    is_continuation: bool
    shown: tuple[ShownConversation, ...]
    omitted: int


class HistoryFormat(Protocol):
    """An output format for a history. The lengths of its pieces add up to at least that of the whole."""

    @property
    def between(self) -> str:
        """The separator of conversations and of messages."""
        ...

    @property
    def head(self) -> str:
        """What is known about the thread that all conversations are about, in this format; "" for none."""
        ...

    def frame(self, is_continuation: bool, omitted: int, /) -> tuple[str, str]:
        """The text before and after all conversations, ``omitted`` of which are not shown. It includes the head."""
        ...

    def edges(self, shown: ShownConversation, omitted: int, /) -> tuple[str, str]:
        """The text before and after the messages of a conversation, ``omitted`` of which are not shown.

        For a summary this is the whole text. It does not depend on which messages are shown.
        """
        ...

    def message(self, conversation: Conversation, turn: Turn, /) -> str: ...


def conversations(thread: Thread, me: Collection[str], since: datetime, now: datetime) -> tuple[Conversation, ...]:
    """The conversations of the thread that ended between ``since`` and ``now``, oldest first.

    Messages after ``now`` are ignored. ``me`` holds the agent's own logins, case-folded; in a session, a bot's messages
    are the agent's too. Pages have no conversations.
    """
    if not thread.kind.traits.is_conversation or thread.created_at > now:
        return ()
    snapshot = thread if thread.revised_at <= now else thread.as_of(now)
    recent = [turns for turns in _split(_turns(snapshot, me)) if turns[-1].at >= since]
    ending = _ending(snapshot) if recent else ""
    return tuple(Conversation(snapshot.id, snapshot.kind, snapshot.title, tuple(turns), ending) for turns in recent)


def _turns(thread: Thread, me: Collection[str]) -> list[Turn]:
    return sorted((_turn(message, thread.kind, me) for message in thread.messages), key=lambda turn: turn.at)


def _turn(message: Message, kind: Kind, me: Collection[str]) -> Turn:
    is_own = message.author.casefold() in me or (kind.traits.is_local and message.is_bot)
    return Turn("you" if is_own else "human", message.author, message.created_at.astimezone(UTC), message.text)


def _split(turns: list[Turn]) -> list[list[Turn]]:
    parts: list[list[Turn]] = []
    for turn in turns:
        if parts and turn.at - parts[-1][-1].at < CONVERSATION_GAP:
            parts[-1].append(turn)
        else:
            parts.append([turn])
    return parts


def _ending(thread: Thread) -> str:
    """How a closed thread ended. A fix given only as a number may be an issue, so it does not count."""
    if not thread.is_closed:
        return ""
    ending = outcome(thread)
    is_certain = ending.kind.is_known and (number_of(ending.fix) is None or CLOSING_PULL in ending.evidence)
    return ending.kind.value if is_certain else "closed"
