"""Prints answers: JSON or lines of text for programs, formatted lists for people."""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from bot.comment.clean_text import cut, one_line
from bot.domain.card import SessionPassage
from bot.errors import WorldError
from bot.local_cache.local_memory import LocalMemory
from bot.questions.views import COLUMNS, Item, ItemSection, line_of, row_stamp


def list_text(items: Sequence[Item], *, header: bool = False) -> str:
    """A line for each thread, below one that names the `COLUMNS` if ``header``. For a person in a terminal the list
    is printed at once, and the text is ""."""
    if is_seen():
        from bot.cli.terminal import print_sections

        print_sections([ItemSection("", "", items)])
        return ""
    return table(COLUMNS, map(line_of, items), header=header)


def sections_text(found: Sequence[ItemSection], *, header: bool = False) -> str:
    """As `list_text`, with the name of its section before each line; empty sections are left out."""
    if is_seen():
        from bot.cli.terminal import print_sections

        print_sections([section for section in found if section.items])
        return ""
    lines = (f"{section.name}\t{line_of(item)}" for section in found for item in section.items)
    return table(f"section\t{COLUMNS}", lines, header=header)


def passages_text(found: Iterable[SessionPassage], *, header: bool = False) -> str:
    """A line for each message of a session: session, time, author, text."""
    if is_seen():
        from bot.cli.terminal import print_passages

        print_passages(list(found))
        return ""
    cells = ((one_line(one.session), row_stamp(one.at), one.type, cut(one_line(one.text), 200)) for one in found)
    return table("session\ttime\ttype\ttext", map("\t".join, cells), header=header)


def table(columns: str, lines: Iterable[str], *, header: bool) -> str:
    """Lines with tabs between their cells, below a line of the names of their ``columns`` if ``header``."""
    return "".join(f"{line}\n" for line in ([columns] if header else []) + list(lines))


def is_seen() -> bool:
    """Whether the output goes to a terminal that can show formatted text.

    NO_COLOR only removes colours, which the terminal library handles. https://no-color.org
    """
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


_UNSEEN = "[\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff\U000e0000-\U000e0fff]"
"""Control characters and invisible characters, such as those that reverse a line."""


class CommandResult(NamedTuple):
    """The output of a command that finished, and its exit code."""

    shown: object
    code: int


def show(result: object) -> int:
    """Print text as it is, anything else as JSON, in UTF-8 whatever the terminal's language. Returns the exit code.

    Raises WorldError if the output is full, and BrokenPipeError if its reader is gone.
    """
    shown, code = (result.shown, result.code) if isinstance(result, CommandResult) else (result, 0)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8")
    text = shown if isinstance(shown, str) else f"{_escaped(json.dumps(shown, ensure_ascii=False, indent=1))}\n"
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        forget_output()
        raise WorldError(f"the answer cannot be written: {error.strerror}", "see that there is room for it") from error
    return code


def forget_output() -> None:
    """Discard what is still buffered, which would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _escaped(text: str) -> str:
    """The JSON with control and invisible characters as escapes; the data stay the same."""
    return text if text.isascii() and "\x7f" not in text else re.sub(_UNSEEN, _number, text)


def _number(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]  # two numbers for a character beyond the first 65,536


SCHEMA = 1
"""Of the answers that are objects. Fields are added to it, and none is renamed or taken away."""

NOTHING = "Nothing relevant."


def show_notes(place: LocalMemory, more: Iterable[str] = ()) -> None:
    lines = [*place.missing.split("\n"), *place.note.split("\n"), *(f"Not used: {line}." for line in more)]
    for line in filter(None, lines):
        print(one_line(line), file=sys.stderr)


def facts_of_answer(place: LocalMemory, used: Sequence[str], unused: Sequence[str]) -> dict[str, Any]:
    """The fields about an answer: the signals that counted, those that did not, and notes on the memory."""
    notes = [one_line(line) for line in (*place.missing.split("\n"), *place.note.split("\n")) if line]
    return {"used": used, "unused": unused, "notes": notes, "searched": place.local_cache.size}


def command_result(
    shown: object, given: argparse.Namespace, *, found: bool, searched: bool = True, looked: str = ""
) -> CommandResult:
    """The answer, and the exit code that it ends with. ``searched``: there is a memory to search; ``looked`` says what
    was looked through."""
    if searched and not found and not wants_json(given):
        print(f"{NOTHING} {looked}." if looked else NOTHING, file=sys.stderr)
    return CommandResult(shown, 1 if getattr(given, "exit_code", False) and not found else 0)


def rank_table(figures: Mapping[str, Any]) -> list[str]:
    """How high the right thread ranked, with the ends of the 95 % intervals."""
    return [
        f"{name:18}{figures[name]:.3f}   [{low:.3f}, {high:.3f}]" for name, (low, high) in figures["interval"].items()
    ]


def warn(note: str) -> None:
    print(one_line(note), file=sys.stderr)


@contextmanager
def progress(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """Show a progress bar; gives a function that takes the number of steps done since its last call. ``total``: None if
    unknown."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from bot.cli.terminal import bar

    with bar(label, total) as tick:
        yield tick


def wants_json(given: argparse.Namespace) -> bool:
    """Whether JSON is wanted; `context --branch` has it as a format."""
    return bool(getattr(given, "json", False)) or getattr(given, "format", "") == "json"
