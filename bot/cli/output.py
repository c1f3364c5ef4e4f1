"""Prints answers: JSON or lines of text for programs, formatted lists for people."""

from __future__ import annotations

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from typing import Any, NamedTuple

from bot.comment.clean_text import one_line, printable, truncate
from bot.domain.card import SessionPassage
from bot.errors import WorldError
from bot.local_cache.local_memory import LocalMemory
from bot.questions.fields import Item, row_stamp
from bot.questions.views import COLUMNS, ItemSection, cells_of


def list_text(items: Sequence[Item], *, header: bool = False) -> str:
    """One line per thread, after a line with the names of the `COLUMNS` if ``header``. In a terminal, prints a
    formatted list at once and returns ""."""
    if is_terminal():
        from bot.cli.terminal import print_sections

        print_sections([ItemSection("", "", items)])
        return ""
    return table(COLUMNS, map(cells_of, items), header=header)


def sections_text(sections: Sequence[ItemSection], *, header: bool = False) -> str:
    """Like `list_text`, with the section name before each line; empty sections are omitted."""
    if is_terminal():
        from bot.cli.terminal import print_sections

        print_sections([section for section in sections if section.items])
        return ""
    rows = ([section.name, *cells_of(item)] for section in sections for item in section.items)
    return table(f"section\t{COLUMNS}", rows, header=header)


def passages_text(passages: Iterable[SessionPassage], *, header: bool = False) -> str:
    """One line per session message: session, time, author, text."""
    if is_terminal():
        from bot.cli.terminal import print_passages

        print_passages(list(passages))
        return ""
    rows = (
        (passage.session, row_stamp(passage.at), passage.type, truncate(one_line(passage.text), 200))
        for passage in passages
    )
    return table("session\ttime\ttype\ttext", rows, header=header)


def table(columns: str, rows: Iterable[Iterable[object]], *, header: bool) -> str:
    """A line for each row, its cells between tabs, after a line with the names of the ``columns`` if ``header``."""
    lines = ("\t".join(one_line(str(cell)) for cell in row) for row in rows)
    return "".join(f"{line}\n" for line in chain([columns] if header else [], lines))


def is_terminal() -> bool:
    """Whether the output goes to a terminal that can show formatted text.

    NO_COLOR only removes colours, which the terminal library handles. https://no-color.org
    """
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


_INVISIBLE = "[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
"""Control and invisible characters, such as those that reverse the text direction."""


class ColouredText(str):
    """Text with our own colours, in which everything else went through `log_line`."""

    __slots__ = ()


class CommandResult(NamedTuple):
    """The output of a command that finished, and its exit code."""

    output: object
    code: int


def show(result: object) -> int:
    """Print text, without what would control a terminal, or anything else as JSON, always in UTF-8. Returns the exit
    code.

    Raises WorldError if there is no room for the output, and BrokenPipeError if its reader is gone.
    """
    shown, code = (result.output, result.code) if isinstance(result, CommandResult) else (result, 0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    try:
        sys.stdout.write(_printable(shown))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_output()
        raise WorldError(f"the answer cannot be written: {error.strerror}", "check that there is room") from error
    return code


def _printable(shown: object) -> str:
    if isinstance(shown, ColouredText):
        return shown
    if isinstance(shown, str):
        return printable(shown)
    return f"{_escape_invisible(json.dumps(shown, ensure_ascii=False, indent=1))}\n"


def forget_output() -> None:
    """Discard buffered output, whose flush would fail again when Python exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escape_invisible(text: str) -> str:
    """Escape control and invisible characters in JSON; the data stay the same."""
    return text if text.isascii() and "\x7f" not in text else re.sub(_INVISIBLE, _escape_match, text)


def _escape_match(match: re.Match[str]) -> str:
    return json.dumps(match[0])[1:-1]  # a surrogate pair for a character beyond U+FFFF


SCHEMA_VERSION = 1
"""Schema version of answers that are objects. Fields may be added; none is renamed or removed."""

NO_RESULTS = "Nothing relevant."


def show_notes(memory: LocalMemory, unused: Iterable[str] = (), notes: Iterable[str] = ()) -> None:
    """Print what to know about an answer; ``notes`` are those on other things than the memory."""
    lines = [*memory.missing.split("\n"), *memory.note.split("\n"), *(f"Not used: {line}." for line in unused), *notes]
    for line in filter(None, lines):
        warn(line)


def facts_of_answer(
    memory: LocalMemory, used: Sequence[str], unused: Sequence[str], notes: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields about an answer: signals used and unused, notes on the memory and these, and the memory's size."""
    lines = (*memory.missing.split("\n"), *memory.note.split("\n"), *notes)
    facts = {"used": used, "unused": unused, "notes": [one_line(line) for line in lines if line]}
    return facts | {"searched": memory.local_cache.size}


def rank_table(figures: Mapping[str, Any]) -> list[str]:
    """How high the right thread ranked, with 95 % intervals."""
    return [
        f"{name:18}{figures[name]:.3f}   [{low:.3f}, {high:.3f}]" for name, (low, high) in figures["interval"].items()
    ]


def warn(note: str) -> None:
    """Print one line for people, on stderr."""
    print(one_line(note), file=sys.stderr)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; yields a function that takes the number of steps done since its last call. ``total``: None
    if unknown."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from bot.cli.terminal import progress_bar

    with progress_bar(label, total) as tick:
        yield tick
