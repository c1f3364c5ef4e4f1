"""Threads for people: lines of text where a program reads, something to look at where a person does."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

from bot.card import Passage
from bot.comment.visible import cut, one_line
from bot.doors.items import Item, Section
from bot.doors.rows import stamp


def listed(items: Sequence[Item]) -> str:
    """These threads, a line for each: id, state (or `page`), score, title, reasons, decision, with tabs between them.

    The last two only where there are any. A person gets something to look at instead.
    """
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
    """Whether a person looks at the output, in a terminal that is more than a typewriter.

    NO_COLOR takes away colours alone, which the library for terminals sees to. https://no-color.org
    """
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def _line(item: Item) -> str:
    score = "" if item.score is None else f"{item.score:.2f}"
    more = "".join(f"\t{one_line(each)}" for each in ("; ".join(item.why), item.said) if each)
    state = "page" if item.card.kind == "page" else item.card.state
    return f"{one_line(str(item.card.id))}\t{state}\t{score}\t{one_line(item.card.title)}{more}"
