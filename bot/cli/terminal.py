"""Lists of threads and progress bars in a terminal. The only importer of rich."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from rich.console import Console
from rich.padding import Padding
from rich.progress import Progress
from rich.style import Style
from rich.text import Text

from bot.cli.colours import ACCENT
from bot.comment.clean_text import one_line, printable, truncate
from bot.domain.ages import days_ago
from bot.domain.card import SessionPassage
from bot.questions.addresses import citation
from bot.questions.fields import Item
from bot.questions.views import ItemSection, ending, quotation
from bot.reading.analyzer import terms, token_terms, tokens

MAX_WIDTH = 110
_INDENT = " " * 4
_MAX_FILES = 2
_MAX_ID_CHARS = 60


def print_sections(sections: Sequence[ItemSection]) -> None:
    console = _console()
    for section in sections:
        if section.title:
            _print(console, Text(section.title, style="bold"))
        for item in section.items:
            _print(console, *_format_item(item, console))
        console.print()


def print_passages(passages: Sequence[SessionPassage]) -> None:
    console = _console()
    for passage in passages:
        at = f"{passage.at:%Y-%m-%d %H:%M}" if passage.at else "at an unknown time"
        _print(console, Text.assemble((one_line(passage.session), "bold"), f"  {passage.type}, {at}"))
        _print(console, Text(truncate(one_line(passage.text), 500)), padding=(0, 0, 1, 4))


@contextmanager
def progress_bar(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(label, total=total)
        yield lambda steps: progress.advance(task, steps)


def _console() -> Console:
    console = Console(file=sys.stdout, highlight=False, soft_wrap=False)
    console.width = min(console.width, MAX_WIDTH)
    return console


def _print(console: Console, *lines: Text, padding: tuple[int, int, int, int] = (0, 0, 0, 0)) -> None:
    """Print the lines, without what would control the terminal."""
    for line in lines:
        line.plain = printable(line.plain)
        console.print(Padding(line, padding, expand=False))


def _format_item(item: Item, console: Console) -> list[Text]:
    """Number and title; ending, age, reasons, files and author; a quotation, which is whole if it is a decision.

    A score is not shown: it says nothing without those of the other hits, and these are in its order.
    """
    card, width = item.card, console.width
    style = Style(color=f"color({ACCENT})", bold=True, link=item.url or None)
    number = Text(truncate(one_line(citation(card.id)), _MAX_ID_CHARS), style=style)
    head = _truncate(Text.assemble(number, "  ", _highlight(card.title, item.words)), width)
    why = one_line("; ".join(item.why))
    facts = (ending(card), _age(card.updated_at), why, _format_files(card.files), one_line(card.author))
    lines = [head, _truncate(Text(_INDENT + " · ".join(filter(None, facts))), width)]
    if quote := quotation(item):
        words, room = _highlight(quote, item.words), max(1, width - len(_INDENT))
        is_passage = item.passage is not None and not item.hides
        parts = [_truncate(words, room)] if is_passage else words.wrap(console, room)
        lines += [Text(_INDENT) + part for part in parts]
    for line in lines:
        line.rstrip()
    return lines


def _truncate(line: Text, width: int) -> Text:
    """Truncate the line to ``width`` columns, with an ellipsis."""
    line.truncate(max(1, width), overflow="ellipsis")
    return line


def _format_files(files: Sequence[str]) -> str:
    """The first files by distinct file name, and how many more there are."""
    paths = list({path.rpartition("/")[2]: path for path in reversed(files)}.values())[::-1]
    more = f" and {len(paths) - _MAX_FILES} more" if len(paths) > _MAX_FILES else ""
    return one_line(", ".join(paths[:_MAX_FILES])) + more


def _highlight(text: str, words: str) -> Text:
    """The text on one line, with the searched words highlighted."""
    line = one_line(text)
    highlighted = Text(line)
    query_terms = set(terms(words))
    for token in dict.fromkeys(tokens(line)) if query_terms else ():
        if query_terms.intersection(token_terms(token)):
            highlighted.highlight_regex(rf"(?<!\w){re.escape(token)}(?!\w)", style="bold underline")
    return highlighted


def _age(moment: datetime) -> str:
    days = (datetime.now(UTC) - moment).days
    if days <= 0:
        return "today"
    if days < 60:
        return days_ago(days)
    return f"{moment:%Y-%m-%d}"
