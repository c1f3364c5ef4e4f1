"""A thread's conversation within a budget: all of it, or the most informative messages."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.comment.clean_text import account, truncate, visible
from bot.domain.card import Card
from bot.domain.thread import Message, Thread
from bot.questions.fields import MESSAGE_FIELDS, Row, row_of
from bot.questions.requests import Cards, ThreadRequest

if TYPE_CHECKING:
    from bot.questions.related import Neighbour

OPENING_SHARE, COMMENT_SHARE = 0.35, 0.4
"""Shares of the budget for the opening text and for any one comment, if not everything fits."""

_JSON_OVERHEAD = 120
"""Maximum characters of JSON around a message's text."""

_MIN_CHARS = 100


class ConversationPart(NamedTuple):
    """Messages in order of time (`bot.questions.fields.MESSAGE_FIELDS`), and how many were left out."""

    messages: list[Row]
    omitted: int


class ThreadAnswer(NamedTuple):
    """A thread, as much of its conversation as was asked for, and the threads one link away."""

    thread: Thread
    card: Card
    conversation: ConversationPart
    neighbours: tuple[Neighbour, ...] = ()


def read_thread(request: ThreadRequest, thread: Thread, card: Card, cards: Cards) -> ThreadAnswer:
    answer = ThreadAnswer(thread, card, conversation(thread, request.chars))
    if not request.expand:
        return answer
    from bot.questions.related import expand

    return answer._replace(neighbours=expand([thread.id], cards))


def conversation(thread: Thread, chars: int) -> ConversationPart:
    """The whole conversation if it fits into so many characters.

    Otherwise the opening text, the messages that say how the thread ended and what was decided, then the newest ones;
    long ones are cut.
    """
    rows = [_message(message) for message in thread.messages]
    if sum(map(_cost, rows)) <= chars:
        return ConversationPart(rows, 0)
    chosen = dict(_choose(thread, rows, chars))
    return ConversationPart([chosen[position] for position in sorted(chosen)], len(rows) - len(chosen))


def _message(message: Message) -> Row:
    row: Row = visible_data(row_of(MESSAGE_FIELDS, message))
    return row | {"text": row["text"].strip()}


def _cost(message: Row) -> int:
    return len(json.dumps(message["text"], ensure_ascii=False)) + _JSON_OVERHEAD


def _choose(thread: Thread, rows: Sequence[Row], chars: int) -> Iterator[tuple[int, Row]]:
    room = chars
    for position in _by_importance(thread, len(rows)):
        share = OPENING_SHARE if position == 0 else COMMENT_SHARE
        shortened = _shorten(rows[position], min(room, int(chars * share)) - _JSON_OVERHEAD)
        if shortened is None:
            return
        room -= _cost(shortened)
        yield position, shortened


def _by_importance(thread: Thread, count: int) -> Iterator[int]:
    """The positions of the messages, the most informative first; the opening text is 0."""
    from bot.reading.endings.decisions import decisions  # slow to load, and most conversations are shown whole
    from bot.reading.endings.outcome import outcome

    ending = outcome(thread)
    positions = [ending.comment, *(decision.comment for decision in decisions(thread, ending))]
    important = [position + 1 for position in positions if position is not None]
    yield from dict.fromkeys([0, *important, *range(count - 1, 0, -1)])


def _shorten(message: Row, room: int) -> Row | None:
    """The message, cut to so many characters; None if too few are left to be useful."""
    if len(message["text"]) <= room:
        return message
    return message | {"text": truncate(message["text"], room), "cut": True} if room >= _MIN_CHARS else None


MAX_ANSWER_CHARS = 100_000
"""Characters of an answer: of its data, and of its text."""

INDENT = "    "
"""Starts each line that other people wrote: none of our own lines is indented this far."""


def author_label(author: str, role: str) -> str:
    """The author of a message, with a role if there is one."""
    return account(author) + (f", {role.lower()}" if role not in ("", "NONE") else "")


_LEFT_OUT_NOTE = "left out because the answer would be too long: narrow the search, or ask for fewer"


def visible_data(value: Any) -> Any:
    """The same data with each text as a person sees it: no HTML comments, no invisible or reordered characters."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: visible_data(item) for name, item in value.items()}
    return [visible_data(item) for item in value] if isinstance(value, list | tuple) else value


def indent(text: str) -> str:
    lines = (line.rstrip() for line in visible(text).strip().split("\n"))
    return "".join(f"{INDENT}{line}\n" if line else "\n" for line in lines)


def limit_size(data: dict[str, Any], limit: int = MAX_ANSWER_CHARS) -> dict[str, Any]:
    """The data within so many characters of JSON: the longest list loses its last items, and a note says so."""
    dropped = 0
    lists = {name: value for name, value in data.items() if isinstance(value, list) and name != "notes"}
    sizes = {name: [_size(item) for item in value] for name, value in lists.items()}
    room = limit - _size(data) - len(_LEFT_OUT_NOTE) - 20
    kept = {name: list(value) for name, value in lists.items()}
    while room < 0 and any(sizes.values()):
        longest = max(sizes, key=lambda name: sum(sizes[name]))
        room += sizes[longest].pop() + 2
        kept[longest].pop()
        dropped += 1
    if not dropped:
        return data
    return data | kept | {"notes": [*data.get("notes", []), f"{dropped} {_LEFT_OUT_NOTE}"]}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))
