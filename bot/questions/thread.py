"""A thread's conversation within a budget: all of it, or the messages that tell most."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from bot.comment.clean_text import account, cut
from bot.comment.prompt import visible
from bot.domain.card import Card
from bot.domain.thread import Message, Thread
from bot.questions.requests import Cards, ThreadRequest
from bot.questions.views import MESSAGE, Row, row_of
from bot.reading.endings.decisions import decisions
from bot.reading.endings.outcome import outcome

if TYPE_CHECKING:
    from bot.questions.related import Hop

OPENING_SHARE, LONGEST_SHARE = 0.35, 0.4
"""Parts of the budget for the opening text and for any one comment, where not all of it fits."""

_COSTS = 120
"""Characters of JSON around a message's text, at most."""

_LEAST = 100


class ConversationPart(NamedTuple):
    """Messages in order of time (`bot.questions.views.MESSAGE`), and how many were left out."""

    messages: list[Row]
    omitted: int


class ThreadAnswer(NamedTuple):
    """A thread, as much of its conversation as was asked for, and the threads one link away."""

    thread: Thread
    card: Card
    said: ConversationPart
    near: tuple[Hop, ...] = ()


def read_thread(request: ThreadRequest, thread: Thread, card: Card, cards: Cards) -> ThreadAnswer:
    answer = ThreadAnswer(thread, card, conversation(thread, request.chars))
    if not request.expand:
        return answer
    from bot.questions.related import expand

    return answer._replace(near=expand([thread.id], cards))


def conversation(thread: Thread, chars: int) -> ConversationPart:
    """The whole conversation where it fits into so many characters.

    Else the opening text, the messages that state how the thread ended and what was decided, then the newest ones;
    long ones are cut.
    """
    opening = Message(thread.author, thread.role, thread.created_at, thread.body)
    said = [_message(one) for one in (opening, *thread.comments)]
    if sum(map(_costs, said)) <= chars:
        return ConversationPart(said, 0)
    kept = dict(_chosen(thread, said, chars))
    return ConversationPart([kept[place] for place in sorted(kept)], len(said) - len(kept))


def _message(one: Message) -> Row:
    row: Row = plain(row_of(MESSAGE, one))
    return row | {"text": row["text"].strip()}


def _costs(message: Row) -> int:
    return len(json.dumps(message["text"], ensure_ascii=False)) + _COSTS


def _chosen(thread: Thread, said: Sequence[Row], chars: int) -> Iterator[tuple[int, Row]]:
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


def _shortened(message: Row, room: int) -> Row | None:
    """The message with at most so many characters; None where that would be too few to be of use."""
    if len(message["text"]) <= room:
        return message
    return message | {"text": cut(message["text"], room), "cut": True} if room >= _LEAST else None


MOST = 100_000
"""Characters of an answer, of its data and of its text each."""

INDENT = "    "
"""Before each line that other people wrote: we indent none of our own lines so far."""


def signed(author: str, role: str) -> str:
    """The author of a message, with a role if there is one."""
    return account(author) + (f", {role.lower()}" if role not in ("", "NONE") else "")


_LEFT_OUT = "left out, for the answer would be too long: narrow the search, or ask for fewer"


def plain(value: Any) -> Any:
    """The same with every text in it as a person sees it: no comments of HTML, nothing invisible or turned around."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


def indented(text: str) -> str:
    lines = (line.rstrip() for line in visible(text).strip().split("\n"))
    return "".join(f"{INDENT}{line}\n" if line else "\n" for line in lines)


def bounded(data: dict[str, Any], most: int = MOST) -> dict[str, Any]:
    """The same within so many characters of JSON: of its longest list the last are left out, which is noted."""
    dropped = 0
    lists = {name: value for name, value in data.items() if isinstance(value, list) and name != "notes"}
    sizes = {name: [_size(each) for each in value] for name, value in lists.items()}
    room = most - _size(data) - len(_LEFT_OUT) - 20
    kept = {name: list(value) for name, value in lists.items()}
    while room < 0 and any(sizes.values()):
        longest = max(sizes, key=lambda name: sum(sizes[name]))
        room += sizes[longest].pop() + 2
        kept[longest].pop()
        dropped += 1
    if not dropped:
        return data
    return data | kept | {"notes": [*data.get("notes", []), f"{dropped} {_LEFT_OUT}"]}


def _size(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False))
