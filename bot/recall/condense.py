"""A long thread within a budget of characters: its body, its latest comments, and those nearest to the question."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from math import floor, sqrt

from bot.model import MAINTAINER_ROLES, Message, Thread
from bot.reading.signals import strip_boilerplate
from bot.reading.words import terms

BODY_LIMIT = 500
CONDENSED_LIMIT = 750
LATEST_SHARE = 0.6
MIN_BUDGET, MAX_BUDGET = 1_000, 50_000
SCAN_LIMIT = 4_000
"""Characters of a comment that are compared with the question."""

LEAST_CUT = 200
"""A share smaller than this is not worth the beginning of a comment."""

CUT = "..."
_BLANK_LINES = re.compile(r"\n(?:[ \t\r]*\n){2,}")
_PARAGRAPHS = re.compile(r"\n[ \t\r]*\n")


def share_budget(similarities: Sequence[float], total: int) -> list[int]:
    """Characters for each hit, in proportion to its similarity and rounded down; one hit takes all.

    ``total`` is held within 1,000 to 50,000. Similarities count to four digits, as they are shown: in whole numbers
    0.9, 0.8 and 0.7 of 12,000 are 4,500, 4,000 and 3,500, which floats miss by one.
    """
    total = min(MAX_BUDGET, max(MIN_BUDGET, total))
    weights = [round(similarity * 10_000) for similarity in similarities]
    if sum(weights) <= 0:
        return [total // len(weights)] * len(weights)
    return [total * weight // sum(weights) for weight in weights]


def condense_body(body: str) -> str:
    """The body as it is up to 500 characters; else its first and last paragraph with ``[...]`` between them.

    Two paragraphs or fewer, or still over 750 characters: the first 500 and ``...``.
    """
    body = body.strip()
    if len(body) <= BODY_LIMIT:
        return body
    paragraphs = [part.strip() for part in _PARAGRAPHS.split(body) if part.strip()]
    if len(paragraphs) > 2:
        condensed = f"{paragraphs[0]}\n\n[...]\n\n{paragraphs[-1]}"
        if len(condensed) <= CONDENSED_LIMIT:
            return condensed
    return body[:BODY_LIMIT] + CUT


def condense(thread: Thread, question: Counter[str], budget: int) -> str:
    """The thread's conversation in at most ``budget`` characters, in order of time.

    First the body, without what an issue template put there. Of what is left 60 % for the latest comments, newest
    first; the rest, with what those leave over, for the ones nearest to ``question``, which counts analysed terms.

    A newest comment that alone is longer than the 60 % fills them with its beginning. It is the one that most often
    tells how the thread ended: left out, the latest would get nothing, and the budget would not be full.
    """
    body = condense_body(_BLANK_LINES.sub("\n\n", strip_boilerplate(thread.body)))
    opening = _spoken(thread.author, thread.role, f"{thread.created_at:%Y-%m-%d}", body)
    if len(opening) >= budget:
        return opening[:budget]
    left = budget - len(opening)
    share = floor(left * LATEST_SHARE)
    lines = [line_of(message) for message in thread.comments]
    if lines and sum(map(len, lines)) > left and len(lines[-1]) > share >= LEAST_CUT:
        lines[-1] = _cut(lines[-1], share)
    chosen = _latest(lines, share)
    left -= sum(len(lines[i]) for i in chosen)
    chosen |= _nearest(thread.comments, lines, chosen, question, left)
    return opening + "".join(lines[i] for i in sorted(chosen))


def _cut(line: str, length: int) -> str:
    end = f"{CUT}\n\n"
    return line[: length - len(end)].rstrip() + end


def line_of(message: Message) -> str:
    """One comment of a condensed conversation, with who said it and when."""
    return _spoken(message.author, message.role, f"{message.created_at:%Y-%m-%d}", message.text.strip())


def _spoken(author: str, role: str, day: str, text: str) -> str:
    who = f"{author} (maintainer)" if role in MAINTAINER_ROLES else author
    return f"{who}, {day}:\n{text}\n\n"


def _latest(lines: Sequence[str], budget: int) -> set[int]:
    """Newest first until the budget is full."""
    chosen: set[int] = set()
    for index in range(len(lines) - 1, -1, -1):
        if len(lines[index]) > budget:
            break
        budget -= len(lines[index])
        chosen.add(index)
    return chosen


def _nearest(
    messages: Sequence[Message], lines: Sequence[str], taken: set[int], question: Counter[str], budget: int
) -> set[int]:
    """Of the comments not taken, those most like the question that still fit; ties go to the earlier one."""
    rest = [i for i in range(len(lines)) if i not in taken and len(lines[i]) <= budget]
    likeness = {i: _cosine(question, Counter(terms(messages[i].text[:SCAN_LIMIT]))) for i in rest}
    chosen: set[int] = set()
    for index in sorted(rest, key=lambda i: (-likeness[i], i)):
        if len(lines[index]) <= budget:
            budget -= len(lines[index])
            chosen.add(index)
    return chosen


def _cosine(left: Counter[str], right: Counter[str]) -> float:
    if not left or not right:
        return 0.0
    dot = sum(count * right[term] for term, count in left.items() if term in right)
    return dot / sqrt(sum(c * c for c in left.values()) * sum(c * c for c in right.values()))
