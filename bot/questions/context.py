"""Recent conversations in a scope: an issue with its sessions, a person, a folder of sessions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import IntEnum
from typing import NamedTuple

from bot.domain.thread import Thread, ThreadId
from bot.questions.requests import DAYS, MAX_CHARS, MAX_DAYS, MIN_CHARS, HistoryRequest
from bot.reading.conversations import (
    GAP,
    Conversation,
    ConversationHistory,
    Form,
    ShownConversation,
    Turn,
    conversations,
)
from bot.reading.markdown import LEFT_OUT, tail


@dataclass(frozen=True, slots=True)
class RecentConversations:
    """The conversations of a scope that ended in the last days before ``now``, newest first. ``now`` has a zone, whose
    calendar and clock count."""

    conversations: tuple[Conversation, ...]
    now: datetime

    @property
    def zone(self) -> tzinfo:
        zone = self.now.tzinfo
        if zone is None:
            raise ValueError("now has no time zone")
        return zone

    def since(self, moment: datetime) -> timedelta:
        """How long ago; both as instants, as clocks are set forward and back."""
        return self.now.astimezone(UTC) - moment.astimezone(UTC)

    def days_since(self, moment: datetime) -> int:
        """How many midnights ago."""
        return (self.now.date() - moment.astimezone(self.zone).date()).days


def recent_conversations(
    threads: Iterable[Thread], me: Iterable[str], now: datetime, days: int = DAYS
) -> RecentConversations:
    """The conversations of these threads in the last days. ``me``: the logins that are the agent's own."""
    own = frozenset(login.casefold() for login in me)
    instant = now.astimezone(UTC)
    since = instant - timedelta(days=min(MAX_DAYS, max(1, days)))
    found = [each for thread in threads for each in conversations(thread, own, since, instant)]
    found.sort(key=_place, reverse=True)
    return RecentConversations(tuple(found), now)


def _place(one: Conversation) -> tuple[datetime, datetime, bool, str]:
    """Its place in time; that of two at the same time differs by their threads."""
    return one.end, one.start, isinstance(one.thread, str), str(one.thread)


def of_issue(threads: Iterable[Thread], number: int) -> list[Thread]:
    """The thread of an issue or pull request, and the sessions that worked on it: those that it refers to."""
    return [thread for thread in threads if thread.id == number or _worked_on(thread) == number]


def _worked_on(thread: Thread) -> ThreadId | None:
    sources = (event.source for event in thread.events if event.name == "cross-referenced")
    return next(sources, None) if thread.kind.traits.is_local else None


def of_participant(threads: Iterable[Thread], login: str) -> list[Thread]:
    wanted = login.casefold()
    return [thread for thread in threads if any(name.casefold() == wanted for name in _writers(thread))]


def _writers(thread: Thread) -> Iterator[str]:
    yield thread.author
    yield from (message.author for message in thread.comments)


FULL = timedelta(hours=24)
"""So long after their end conversations are told in full."""

RECENT = timedelta(hours=4)
_WEEK = 7
_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


class Tier(IntEnum):
    """How near a conversation is. They are filled in this order; the first two are told in full."""

    ACTIVE = 1
    LAST_DAY = 2
    YESTERDAY = 3
    EARLIER = 4


class _Piece(NamedTuple):
    """A message of the conversation ``at``, or its summary (``turn`` is None): shown or left out as a whole."""

    at: int
    turn: Turn | None


@dataclass(slots=True)
class _Taken:
    past: RecentConversations
    form: Form
    labels: list[str]
    room: int
    turns: dict[int, list[Turn]] = field(default_factory=dict)

    def take(self, piece: _Piece) -> bool:
        costs = self._costs(piece)
        if costs > self.room:
            return False
        self.room -= costs
        taken = self.turns.setdefault(piece.at, [])
        if piece.turn:
            taken.append(piece.turn)
        return True

    def fits(self, piece: _Piece) -> bool:
        return self._costs(piece) <= self.room

    def shown(self, at: int, is_summary: bool) -> ShownConversation:
        one = self.past.conversations[at]
        kept = reversed(self.turns.get(at, []))  # the newest was taken first
        return ShownConversation(one, tuple(kept), self.labels[at], is_summary)

    def _costs(self, piece: _Piece) -> int:
        one, between = self.past.conversations[piece.at], len(self.form.between)
        costs = len(self.form.message(one, piece.turn)) + between if piece.turn else 0
        if piece.at in self.turns:
            return costs
        edges = self.form.edges(self.shown(piece.at, piece.turn is None), len(one.turns))
        return costs + sum(map(len, edges)) + between


def find_history(request: HistoryRequest, threads: Iterable[Thread], form: Form) -> ConversationHistory:
    """Choose what to show of the recent conversations of these threads."""
    return history_of(recent_conversations(threads, request.me, request.now, request.days), form, request.chars)


def history_of(past: RecentConversations, form: Form, chars: int = MAX_CHARS) -> ConversationHistory:
    """Choose what to show of the past in at most ``chars`` characters (1,000 to 120,000).

    Fills the tiers one after the other, each from its newest message on, and stops at the first that does not fit.
    If the newest message alone is too long, its end is shown.
    """
    known = past.conversations
    is_continuation = bool(known) and past.since(known[0].end) < GAP
    tiers = tiers_of(past)
    frame = form.frame(is_continuation, len(known))
    room = min(MAX_CHARS, max(MIN_CHARS, chars)) - sum(map(len, frame))
    taken = _Taken(past, form, [_label(past, *each) for each in zip(known, tiers, strict=True)], room)
    for piece in _pieces(past, tiers):
        if not taken.take(piece):
            if not taken.turns and piece.turn:
                _take_end(taken, piece.at, piece.turn)
            break
    shown = tuple(taken.shown(at, tiers[at] > Tier.LAST_DAY) for at in sorted(taken.turns))
    return ConversationHistory(is_continuation, shown, len(known) - len(shown))


def tiers_of(past: RecentConversations) -> list[Tier]:
    """The tier of each conversation. The active ones are the newest, whenever it was, and those that led to it: each
    ended less than half an hour before the earliest beginning after it. Yesterday follows the calendar."""
    chain = _chain(past.conversations)
    return [Tier.ACTIVE if at < chain else _tier(past, one.end) for at, one in enumerate(past.conversations)]


def _tier(past: RecentConversations, end: datetime) -> Tier:
    if past.since(end) <= FULL:
        return Tier.LAST_DAY
    return Tier.YESTERDAY if past.days_since(end) <= 1 else Tier.EARLIER


def _chain(known: tuple[Conversation, ...]) -> int:
    if not known:
        return 0
    earliest = known[0].start
    for at, one in enumerate(known):
        if earliest - one.end >= GAP:
            return at
        earliest = min(earliest, one.start)
    return len(known)


def _pieces(past: RecentConversations, tiers: list[Tier]) -> Iterator[_Piece]:
    """Everything that could be shown, in the order in which it is taken."""
    known = past.conversations
    active = [(turn.at, -at, place) for at, one in enumerate(known) if tiers[at] is Tier.ACTIVE
              for place, turn in enumerate(one.turns)]  # fmt: skip
    for _, at, place in sorted(active, reverse=True):
        yield _Piece(-at, known[-at].turns[place])
    for at, one in enumerate(known):
        if tiers[at] is Tier.LAST_DAY:
            yield from (_Piece(at, turn) for turn in reversed(one.turns))
        elif tiers[at] > Tier.LAST_DAY:
            yield _Piece(at, None)


def _take_end(taken: _Taken, at: int, turn: Turn) -> None:
    low, high = len(LEFT_OUT), len(turn.text)
    while low < high:
        middle = (low + high + 1) // 2
        if taken.fits(_Piece(at, replace(turn, text=tail(turn.text, middle)))):
            low = middle
        else:
            high = middle - 1
    if low > len(LEFT_OUT):
        taken.take(_Piece(at, replace(turn, text=tail(turn.text, low))))


def _label(past: RecentConversations, one: Conversation, tier: Tier) -> str:
    """The day on which a conversation ended, as seen from now: today, yesterday, a weekday, with its date if it was
    more than a week ago."""
    days, day = past.days_since(one.end), one.end.astimezone(past.zone)
    name = "today" if days <= 0 else "yesterday" if days == 1 else _WEEKDAYS[day.weekday()]
    if days > _WEEK:
        name = f"{name} {day:%Y-%m-%d}"
    is_recent = tier is Tier.LAST_DAY and past.since(one.end) <= RECENT
    return f"{name}, recent" if is_recent else name
