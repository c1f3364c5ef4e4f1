"""Condenses a thread to a number of characters: its body, its latest comments, and those nearest to the question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import floor, sqrt

from bot.domain.answer import CondensedTurn
from bot.domain.thread import Message, Thread
from bot.reading.analyzer import terms
from bot.reading.markdown import without_mail
from bot.reading.requests import without_requests
from bot.reading.signals import strip_boilerplate
from bot.reading.text_edges import nearest_edge

BODY_LIMIT = 500
CONDENSED_LIMIT = 750
LATEST_SHARE = 0.6
MIN_BUDGET, MAX_BUDGET = 1_000, 50_000
SCAN_LIMIT = 4_000
"""Characters of a comment that are compared with the question."""

MIN_CUT_CHARS = 200
"""Below this many characters, the beginning of a comment is not worth showing."""

ELLIPSIS = "..."
_BLANK_LINES = re.compile(r"\n(?:[ \t\r]*\n){2,}")
_PARAGRAPHS = re.compile(r"\n[ \t\r]*\n")


def share_budget(similarities: Sequence[float], total: int) -> list[int]:
    """Characters for each hit, in proportion to its similarity and rounded down.

    ``total`` is clamped to 1,000 to 50,000. Similarities count to four digits, as they are shown, and as integers: so
    0.9, 0.8 and 0.7 of 12,000 are 4,500, 4,000 and 3,500, where floats would be off by one.
    """
    total = min(MAX_BUDGET, max(MIN_BUDGET, total))
    weights = [round(similarity * 10_000) for similarity in similarities]
    if sum(weights) <= 0:
        return [total // len(weights)] * len(weights)
    return [total * weight // sum(weights) for weight in weights]


def condense_body(body: str) -> str:
    """The whole body up to 500 characters, else its first and last paragraph with ``[...]`` between them.

    If there are only two paragraphs, or that is over 750 characters: the first 500 characters and ``...``.
    """
    body = body.strip()
    if len(body) <= BODY_LIMIT:
        return body
    paragraphs = [part.strip() for part in _PARAGRAPHS.split(body) if part.strip()]
    if len(paragraphs) > 2:
        condensed = f"{paragraphs[0]}\n\n[...]\n\n{paragraphs[-1]}"
        if len(condensed) <= CONDENSED_LIMIT:
            return condensed
    return body[:BODY_LIMIT] + ELLIPSIS


def condense(thread: Thread, question: Counter[str], budget: int) -> tuple[CondensedTurn, ...]:
    """The turns of the conversation that fit into ``budget`` characters, in order of time.

    The body comes first, without the text of an issue template. 60 % of the rest is for the latest comments, newest
    first; what remains is for those nearest to ``question``, a count of analysed terms.

    If the newest comment alone exceeds the 60 %, its beginning fills them: that comment most often says how the thread
    ended.
    """
    comments = [
        replace(comment, text=text)
        for comment in thread.comments
        if (text := without_requests(comment.text)).strip() or not comment.text.strip()
    ]
    body = condense_body(_BLANK_LINES.sub("\n\n", strip_boilerplate(thread.body)))
    opening = CondensedTurn(thread.author, thread.role, thread.created_at, body)
    left = budget - opening.length
    if left <= 0:
        beginning = body[: max(0, left + len(body))]
        return (replace(opening, text=beginning, is_cut=len(beginning) < len(body)),) if beginning else ()
    share = floor(left * LATEST_SHARE)
    turns = [turn_of(message) for message in comments]
    if turns and sum(turn.length for turn in turns) > left and turns[-1].length > share >= MIN_CUT_CHARS:
        turns[-1] = _truncate(turns[-1], share)
    chosen = _latest(turns, share)
    left -= sum(turns[i].length for i in chosen)
    chosen |= _nearest(comments, turns, chosen, question, left)
    return (opening, *(turns[i] for i in sorted(chosen)))


def turn_of(message: Message) -> CondensedTurn:
    """A comment as a turn, without the text that a mail program added."""
    return CondensedTurn(message.author, message.role, message.created_at, without_mail(message.text).strip())


def _truncate(turn: CondensedTurn, length: int) -> CondensedTurn:
    room = max(0, length - (turn.length - len(turn.text)) - len(ELLIPSIS))
    return replace(turn, text=turn.text[: nearest_edge(turn.text, room)].rstrip() + ELLIPSIS, is_cut=True)


def _latest(turns: Sequence[CondensedTurn], budget: int) -> set[int]:
    chosen: set[int] = set()
    for index in range(len(turns) - 1, -1, -1):
        if turns[index].length > budget:
            break
        budget -= turns[index].length
        chosen.add(index)
    return chosen


def _nearest(
    messages: Sequence[Message], turns: Sequence[CondensedTurn], taken: set[int], question: Counter[str], budget: int
) -> set[int]:
    """The remaining comments most similar to the question that still fit; ties go to the earlier one."""
    rest = [i for i in range(len(turns)) if i not in taken and turns[i].length <= budget]
    likeness = {i: _cosine(question, Counter(terms(messages[i].text[:SCAN_LIMIT]))) for i in rest}
    chosen: set[int] = set()
    for index in sorted(rest, key=lambda i: (-likeness[i], i)):
        if turns[index].length <= budget:
            budget -= turns[index].length
            chosen.add(index)
    return chosen


def _cosine(left: Counter[str], right: Counter[str]) -> float:
    if not left or not right:
        return 0.0
    dot = sum(count * right[term] for term, count in left.items() if term in right)
    return dot / sqrt(sum(c * c for c in left.values()) * sum(c * c for c in right.values()))
