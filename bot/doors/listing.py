"""Threads for people: lines of text where a program reads, something to look at where a person does."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from bot.card import Card, Passage
from bot.comment.visible import cut, one_line
from bot.doors.rows import cited, stamp


class Item(NamedTuple):
    """A thread in a list; ``words`` are what was looked for, to be seen in its title."""

    card: Card
    url: str
    score: float | None = None
    why: tuple[str, ...] = ()
    words: str = ""


class Section(NamedTuple):
    """Threads below a heading; ``name`` is what stands before each of them where a program reads."""

    name: str
    title: str
    items: Sequence[Item]


def listed(items: Sequence[Item]) -> str:
    """These threads, a line for each: id, state, score, title, reasons, with tabs between them."""
    if is_seen():
        from bot.doors.terminal import print_sections

        print_sections([Section("", "", items)])
        return ""
    return "".join(f"{_line(item)}\n" for item in items)


def sections(found: Sequence[Section]) -> str:
    """These threads, each line with the name of its section before it; sections without threads are left out."""
    if is_seen():
        from bot.doors.terminal import print_sections

        print_sections([section for section in found if section.items])
        return ""
    return "".join(f"{section.name}\t{_line(item)}\n" for section in found for item in section.items)


def passages(found: Iterable[Passage]) -> str:
    """Messages of sessions, a line for each: session, time, who, what."""
    if is_seen():
        from bot.doors.terminal import print_passages

        print_passages(list(found))
        return ""
    return "".join(
        f"{one_line(one.session)}\t{stamp(one.at)}\t{one.type}\t{cut(one_line(one.text), 200)}\n" for one in found
    )


def is_seen() -> bool:
    """Whether a person looks at the output."""
    return sys.stdout.isatty()


def ending(card: Card) -> str:
    """State and ending in a few words: ``closed, fixed by #50 in v2.3.0``."""
    if card.kind == "page":
        return "page"
    told = [card.state if card.kind == "issue" else f"{card.state} {card.kind}"]
    if card.duplicate_of is not None:
        told.append(f"duplicate of {cited(card.duplicate_of)}")
    elif card.ending.kind != "unknown":
        by = f" by {card.ending.fix}" if card.ending.fix else ""
        release = f" in {card.ending.release}" if card.ending.release else ""
        told.append(f"{card.ending.kind}{by}{release}")
    elif card.state_reason == "not_planned":
        told.append("not planned")
    return one_line(", ".join(told))


def gist(card: Card) -> str:
    """One sentence of the thread: what was decided, how it ended, else what was first answered."""
    said = card.decisions[-1].text if card.decisions else card.ending.quote or card.summary
    return one_line(said)


def _line(item: Item) -> str:
    score = "" if item.score is None else f"{item.score:.2f}"
    why = f"\t{one_line('; '.join(item.why))}" if item.why else ""
    return f"{one_line(str(item.card.id))}\t{item.card.state}\t{score}\t{one_line(item.card.title)}{why}"
