"""Threads in a list for people, and what is said of each in a few words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from bot.card import Card
from bot.comment.visible import one_line
from bot.doors.rows import cited

_COMMIT = 10
"""Characters of a commit's id that tell it from others."""

_SHA = re.compile(r"[0-9a-f]{7,64}", re.ASCII | re.IGNORECASE)


class Item(NamedTuple):
    """A thread in a list; ``words`` are what was looked for, to be seen in its title, ``said`` the decision that is
    meant where it is one."""

    card: Card
    url: str
    score: float | None = None
    why: tuple[str, ...] = ()
    words: str = ""
    said: str = ""


class Section(NamedTuple):
    """Threads below a heading; ``name`` is what stands before each of them where a program reads."""

    name: str
    title: str
    items: Sequence[Item]


def ending(card: Card) -> str:
    """State and ending in a few words: ``closed, fixed by #50 in v2.3.0``."""
    if card.kind == "page":
        return "page"
    told = [card.state if card.kind == "issue" else f"{card.state} {card.kind}"]
    if card.duplicate_of is not None:
        told.append(f"duplicate of {cited(card.duplicate_of)}")
    elif card.ending.kind != "unknown":
        told.append(how(card.ending.kind, card.ending.fix, card.ending.release))
    elif card.state_reason == "not_planned":
        told.append("not planned")
    return one_line(", ".join(told))


def how(kind: str, fix: str | None, release: str | None) -> str:
    """How something ended: ``fixed by #50 in v2.3.0``; ``kind`` is a value of `bot.model.OutcomeKind`."""
    by = f" by {_short(fix)}" if fix else ""
    return f"{kind}{by}{f' in {release}' if release else ''}"


def gist(card: Card) -> str:
    """One sentence of the thread: what was decided, how it ended, else what was first answered."""
    said = card.decisions[-1].text if card.decisions else card.ending.quote or card.summary
    return one_line(said)


def _short(fix: str) -> str:
    """A commit as people write it, also one of another repository (``owner/name@SHA``); a reference as it is."""
    place, at, sha = fix.rpartition("@")
    return f"{place}{at}{sha[:_COMMIT]}" if _SHA.fullmatch(sha) else fix
