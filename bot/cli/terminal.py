"""Lists of threads and progress bars in a terminal. The only importer of rich."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.progress import Progress
from rich.style import Style
from rich.text import Text

from bot.comment.clean_text import cut, one_line
from bot.domain.card import SessionPassage
from bot.questions.views import Item, ItemSection, cited, ending, gist
from bot.reading.analyzer import terms, token_terms, tokens

WIDEST = 110
_LINES = 2
_LONGEST_ID = 60


def print_sections(sections: Sequence[ItemSection]) -> None:
    """Each section with its heading, each thread with what matters of it."""
    console = _console()
    for section in sections:
        if section.title:
            console.print(Text(section.title, style="bold"))
        for item in section.items:
            console.print(_item(item, console.width))
        console.print()


def print_passages(found: Sequence[SessionPassage]) -> None:
    """Messages of sessions, each below who said it and when."""
    console = _console()
    for one in found:
        at = f"{one.at:%Y-%m-%d %H:%M}" if one.at else "at an unknown time"
        console.print(Text.assemble((one_line(one.session), "bold"), (f"  {one.type}, {at}", "dim")))
        console.print(Padding(Text(cut(one_line(one.text), 500)), (0, 0, 1, 4)))


@contextmanager
def bar(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on stderr, gone when it is done."""
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=total)
        yield lambda steps: shown.advance(task, steps)


def _console() -> Console:
    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    console.width = min(console.width, WIDEST)
    return console


def _item(item: Item, width: int) -> Group:
    card = item.card
    style = Style(color="cyan", bold=True, link=item.url or None)
    number = Text(cut(one_line(cited(card.id)), _LONGEST_ID), style=style)
    head = Text.assemble(number, "  ", _title(item))
    facts = [ending(card), _age(card.updated_at), one_line(card.author)]
    lines: list[RenderableType] = [head, Padding(Text(" · ".join(filter(None, facts)), style="dim"), (0, 0, 0, 4))]
    if said := one_line(item.said) or gist(card):
        lines.append(Padding(Text(cut(said, _LINES * (width - 6))), (0, 0, 0, 4)))
    if item.passage:
        lines.append(Padding(Text(cut(item.passage, _LINES * (width - 6)), style="italic"), (0, 0, 0, 4)))
    if item.why:
        lines.append(Padding(Text(f"because {one_line('; '.join(item.why))}", style="dim italic"), (0, 0, 0, 4)))
    return Group(*lines)


def _title(item: Item) -> Text:
    title = one_line(item.card.title)
    shown = Text(title)
    wanted = set(terms(item.words))
    for token in dict.fromkeys(tokens(title)) if wanted else ():
        if wanted.intersection(token_terms(token)):
            shown.highlight_regex(rf"(?<!\w){re.escape(token)}(?!\w)", style="bold yellow")
    return shown


def _age(moment: datetime) -> str:
    days = (datetime.now(UTC) - moment).days
    if days <= 0:
        return "today"
    if days < 60:
        return f"{days} day{'s' * (days > 1)} ago"
    return f"{moment:%Y-%m-%d}"
