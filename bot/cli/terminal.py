"""Lists of threads and progress bars in a terminal. The only importer of rich."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console, Group
from rich.padding import Padding
from rich.progress import Progress
from rich.style import Style
from rich.text import Text

from bot.comment.clean_text import cut, one_line
from bot.domain.card import SessionPassage
from bot.questions.views import Item, ItemSection, cited, ending, gist
from bot.reading.analyzer import terms, token_terms, tokens

WIDEST = 110
_INDENT = " " * 4
_GAP = 2
_FILES = 2
_LONGEST_ID = 60


def print_sections(sections: Sequence[ItemSection]) -> None:
    console = _console()
    for section in sections:
        if section.title:
            console.print(Text(section.title, style="bold"))
        for item in section.items:
            console.print(_item(item, console.width))
        console.print()


def print_passages(found: Sequence[SessionPassage]) -> None:
    console = _console()
    for one in found:
        at = f"{one.at:%Y-%m-%d %H:%M}" if one.at else "at an unknown time"
        console.print(Text.assemble((one_line(one.session), "bold"), (f"  {one.type}, {at}", "dim")))
        console.print(Padding(Text(cut(one_line(one.text), 500)), (0, 0, 1, 4)))


@contextmanager
def bar(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=total)
        yield lambda steps: shown.advance(task, steps)


def _console() -> Console:
    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    console.width = min(console.width, WIDEST)
    return console


def _item(item: Item, width: int) -> Group:
    """Three lines at most: number, title and score; ending, age, reasons, files, author; what was said."""
    card = item.card
    style = Style(color="cyan", bold=True, link=item.url or None)
    number = Text(cut(one_line(cited(card.id)), _LONGEST_ID), style=style)
    score = "" if item.score is None else f"{item.score:.2f}"
    head = _fitted(Text.assemble(number, "  ", _marked(card.title, item.words)), width - len(score) - _GAP)
    head.append(" " * (width - len(score) - head.cell_len)).append(score, style="dim")
    why = one_line("; ".join(item.why))
    facts = (ending(card), _age(card.updated_at), why, _files(card.files), one_line(card.author))
    lines = [head, _fitted(Text(_INDENT + " · ".join(filter(None, facts)), style="dim"), width)]
    if said := item.passage or item.said or gist(card):
        lines.append(_fitted(Text(_INDENT) + _marked(said, item.words), width))
    for line in lines:
        line.rstrip()
    return Group(*lines)


def _fitted(line: Text, width: int) -> Text:
    """The line within so many columns; an ellipsis stands for what is missing."""
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _files(files: Sequence[str]) -> str:
    """The first files, each once however a thread spells its folder, and how many others there are."""
    found = list({path.rpartition("/")[2]: path for path in reversed(files)}.values())[::-1]
    more = f" and {len(found) - _FILES} more" if len(found) > _FILES else ""
    return one_line(", ".join(found[:_FILES])) + more


def _marked(text: str, words: str) -> Text:
    """The text on one line, with the words that were searched for in another colour."""
    line = one_line(text)
    shown = Text(line)
    wanted = set(terms(words))
    for token in dict.fromkeys(tokens(line)) if wanted else ():
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
