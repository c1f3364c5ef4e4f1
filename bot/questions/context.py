"""Selects recent conversations in a scope: an issue with its sessions, a person, a folder of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum
from typing import NamedTuple

from bot.domain.thread import Thread, ThreadId
from bot.questions.requests import DAYS, MAX_CHARS, MAX_DAYS, MIN_CHARS
from bot.reading.conversations import (
    CONVERSATION_GAP,
    Conversation,
    ConversationHistory,
    HistoryFormat,
    ShownConversation,
    Turn,
    conversations,
)
from bot.reading.markdown import OMISSION_MARK, tail


@dataclass(frozen=True, slots=True)
class RecentConversations:
    """The conversations of a scope that ended in the days before ``now``, newest first, or only the newest one, however
    old. Days and times are in the zone of ``now``."""

    conversations: tuple[Conversation, ...]
    now: datetime

    @property
    def zone(self) -> tzinfo:
        zone = self.now.tzinfo
        if zone is None:
            raise ValueError("now has no time zone")
        return zone

    def since(self, moment: datetime) -> timedelta:
        """How long ago, unaffected by clock changes."""
        return self.now.astimezone(UTC) - moment.astimezone(UTC)

    def days_since(self, moment: datetime) -> int:
        """How many midnights ago."""
        return (self.now.date() - moment.astimezone(self.zone).date()).days


def recent_conversations(
    threads: Iterable[Thread], me: Iterable[str], now: datetime, days: int = DAYS, *, keeps_newest: bool = False
) -> RecentConversations:
    """The conversations of these threads in the last days. ``me``: the agent's own logins.

    ``keeps_newest``: if there is none, the newest one.
    """
    own = frozenset(login.casefold() for login in me)
    instant = now.astimezone(UTC)
    since = instant - timedelta(days=min(MAX_DAYS, max(1, days)))
    earliest = _BEGINNING if keeps_newest else since
    found = [conversation for thread in threads for conversation in conversations(thread, own, earliest, instant)]
    found.sort(key=_time_order, reverse=True)
    recent = [conversation for conversation in found if conversation.end >= since]
    return RecentConversations(tuple(recent or found[:1]), now)


_BEGINNING = datetime.min.replace(tzinfo=UTC)


def _time_order(conversation: Conversation) -> tuple[datetime, datetime, bool, str]:
    """Sorts by time, then by thread."""
    return conversation.end, conversation.start, isinstance(conversation.thread, str), str(conversation.thread)


def threads_of_issue(threads: Iterable[Thread], number: int) -> list[Thread]:
    """The thread of an issue or pull request, and the sessions that worked on it."""
    return [thread for thread in threads if thread.id == number or _issue_of_session(thread) == number]


def _issue_of_session(thread: Thread) -> ThreadId | None:
    sources = (event.source for event in thread.events if event.name == "cross-referenced")
    return next(sources, None) if thread.kind.traits.is_local else None


def threads_of_participant(threads: Iterable[Thread], login: str) -> list[Thread]:
    wanted_login = login.casefold()
    return [thread for thread in threads if any(name.casefold() == wanted_login for name in _writers(thread))]


def _writers(thread: Thread) -> Iterator[str]:
    yield thread.author
    yield from (message.author for message in thread.comments)


FULL_TEXT_PERIOD = timedelta(hours=24)
"""Conversations are shown in full for this long after their end."""

RECENT_PERIOD = timedelta(hours=4)
_WEEK_DAYS = 7
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Tier(IntEnum):
    """How recent a conversation is. Tiers are filled in this order; the first two are shown in full."""

    ACTIVE = 1
    LAST_DAY = 2
    YESTERDAY = 3
    EARLIER = 4


class _Piece(NamedTuple):
    """A message of the conversation at ``position``, or its summary (``turn`` is None): shown whole or not at all."""

    position: int
    turn: Turn | None


@dataclass(slots=True)
class _Selection:
    recent: RecentConversations
    form: HistoryFormat
    labels: list[str]
    room: int
    turns: dict[int, list[Turn]] = field(default_factory=dict)

    def take(self, piece: _Piece) -> bool:
        cost = self._cost(piece)
        if cost > self.room:
            return False
        self.room -= cost
        turns_taken = self.turns.setdefault(piece.position, [])
        if piece.turn:
            turns_taken.append(piece.turn)
        return True

    def fits(self, piece: _Piece) -> bool:
        return self._cost(piece) <= self.room

    def shown(self, index: int, is_summary: bool) -> ShownConversation:
        conversation = self.recent.conversations[index]
        kept = reversed(self.turns.get(index, []))  # the newest was taken first
        return ShownConversation(conversation, tuple(kept), self.labels[index], is_summary)

    def _cost(self, piece: _Piece) -> int:
        conversation, separator = self.recent.conversations[piece.position], len(self.form.between)
        cost = len(self.form.message(conversation, piece.turn)) + separator if piece.turn else 0
        if piece.position in self.turns:
            return cost
        edges = self.form.edges(self.shown(piece.position, piece.turn is None), len(conversation.turns))
        return cost + sum(map(len, edges)) + separator


def history_of(past: RecentConversations, form: HistoryFormat, chars: int = MAX_CHARS) -> ConversationHistory:
    """Choose which conversations to show in at most ``chars`` characters (1,000 to 120,000).

    Fills the tiers in order, each from its newest message back, and stops at the first message that does not fit. If
    the newest message alone is too long, its end is shown.
    """
    recent = past.conversations
    is_continuation = bool(recent) and past.since(recent[0].end) < CONVERSATION_GAP
    tiers = tiers_of(past)
    frame = form.frame(is_continuation, len(recent))
    room = min(MAX_CHARS, max(MIN_CHARS, chars)) - sum(map(len, frame))
    selection = _Selection(past, form, [_label(past, *pair) for pair in zip(recent, tiers, strict=True)], room)
    for piece in _pieces(past, tiers):
        if not selection.take(piece):
            if not selection.turns and piece.turn:
                _take_end(selection, piece.position, piece.turn)
            break
    shown = tuple(selection.shown(index, tiers[index] > Tier.LAST_DAY) for index in sorted(selection.turns))
    return ConversationHistory(is_continuation, shown, len(recent) - len(shown))


def tiers_of(past: RecentConversations) -> list[Tier]:
    """The tier of each conversation. Active are the newest one, whatever its age, and those that led to it: each ended
    less than half an hour before a later active one began. Yesterday follows the calendar."""
    active = _active_count(past.conversations)
    return [
        Tier.ACTIVE if index < active else _tier_of(past, conversation.end)
        for index, conversation in enumerate(past.conversations)
    ]


def _tier_of(past: RecentConversations, end: datetime) -> Tier:
    if past.since(end) <= FULL_TEXT_PERIOD:
        return Tier.LAST_DAY
    return Tier.YESTERDAY if past.days_since(end) <= 1 else Tier.EARLIER


def _active_count(newest_first: tuple[Conversation, ...]) -> int:
    if not newest_first:
        return 0
    earliest = newest_first[0].start
    for index, conversation in enumerate(newest_first):
        if earliest - conversation.end >= CONVERSATION_GAP:
            return index
        earliest = min(earliest, conversation.start)
    return len(newest_first)


def _pieces(past: RecentConversations, tiers: list[Tier]) -> Iterator[_Piece]:
    """Everything that could be shown, in the order of selection."""
    recent = past.conversations
    active = [(turn.at, -index, position) for index, conversation in enumerate(recent) if tiers[index] is Tier.ACTIVE
              for position, turn in enumerate(conversation.turns)]  # fmt: skip
    for _, index, position in sorted(active, reverse=True):
        yield _Piece(-index, recent[-index].turns[position])
    for index, conversation in enumerate(recent):
        if tiers[index] is Tier.LAST_DAY:
            yield from (_Piece(index, turn) for turn in reversed(conversation.turns))
        elif tiers[index] > Tier.LAST_DAY:
            yield _Piece(index, None)


def _take_end(selection: _Selection, index: int, turn: Turn) -> None:
    low, high = len(OMISSION_MARK), len(turn.text)
    while low < high:
        middle = (low + high + 1) // 2
        if selection.fits(_Piece(index, replace(turn, text=tail(turn.text, middle)))):
            low = middle
        else:
            high = middle - 1
    if low > len(OMISSION_MARK):
        selection.take(_Piece(index, replace(turn, text=tail(turn.text, low))))


def _label(past: RecentConversations, conversation: Conversation, tier: Tier) -> str:
    """The day on which a conversation ended: today, yesterday or a weekday, with the date if it was more than a week
    ago."""
    days, day = past.days_since(conversation.end), conversation.end.astimezone(past.zone)
    name = "today" if days <= 0 else "yesterday" if days == 1 else _WEEKDAYS[day.weekday()]
    if days > _WEEK_DAYS:
        name = f"{name} {day:%Y-%m-%d}"
    is_recent = tier is Tier.LAST_DAY and past.since(conversation.end) <= RECENT_PERIOD
    return f"{name}, recent" if is_recent else name
