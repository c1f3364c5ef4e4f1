"""A thread's conversation within a budget: all of it, or the messages that tell most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from bot.comment.visible import cut
from bot.doors.plain import plain
from bot.doors.rows import stamp
from bot.model import Thread
from bot.reading.decisions import decisions
from bot.reading.outcome import outcome

OPENING_SHARE, LONGEST_SHARE = 0.35, 0.4
"""Parts of the budget for the opening text and for any one comment, where not all of it fits."""

_COSTS = 120
"""Characters of JSON around a message's text, at most."""

_LEAST = 100
Message = dict[str, Any]


class Part(NamedTuple):
    """Messages in order of time, and how many were left out."""

    messages: list[Message]
    omitted: int


def conversation(thread: Thread, chars: int) -> Part:
    """The whole conversation where it fits into so many characters.

    Else the opening text, the messages that state how the thread ended and what was decided, then the newest ones;
    long ones are cut.
    """
    said = [_message(thread.author, thread.role, stamp(thread.created_at), thread.body)]
    said += [_message(one.author, one.role, stamp(one.created_at), one.text) for one in thread.comments]
    if sum(map(_costs, said)) <= chars:
        return Part(said, 0)
    kept = dict(_chosen(thread, said, chars))
    return Part([kept[place] for place in sorted(kept)], len(said) - len(kept))


def _message(author: str, role: str, at: str, text: str) -> Message:
    return {"author": plain(author), "role": plain(role), "at": at, "text": plain(text).strip(), "cut": False}


def _costs(message: Message) -> int:
    return len(json.dumps(message["text"], ensure_ascii=False)) + _COSTS


def _chosen(thread: Thread, said: Sequence[Message], chars: int) -> Iterator[tuple[int, Message]]:
    room = chars
    for place in _order(thread, len(said)):
        share = OPENING_SHARE if place == 0 else LONGEST_SHARE
        short = _shortened(said[place], min(room, int(chars * share)) - _COSTS)
        if short is None:
            return
        room -= _costs(short)
        yield place, short


def _order(thread: Thread, count: int) -> Iterator[int]:
    """The places of the messages, what tells most first; the opening text is 0."""
    told = [outcome(thread).comment, *(one.comment for one in decisions(thread))]
    telling = [place + 1 for place in told if place is not None]
    yield from dict.fromkeys([0, *telling, *range(count - 1, 0, -1)])


def _shortened(message: Message, room: int) -> Message | None:
    """The message with at most so many characters; None where that would be too few to be of use."""
    if len(message["text"]) <= room:
        return message
    return message | {"text": cut(message["text"], room), "cut": True} if room >= _LEAST else None
