"""Finds commands to the bot in a text, at the start of a line, and what a text says without its requests."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bot.domain.hosts import GITHUB_HOSTS
from bot.reading.lookalikes import ZERO_WIDTH_SPACE, plain
from bot.reading.markdown import Paragraph, paragraphs, readable
from bot.reading.questions import MAX_ISSUES, recall_question
from bot.reading.references import find_references

COMMAND_NAMES = (
    "search",
    "context",
    "refresh",
    "wrong",
    "same",
    "different",
    "original",
    "off",
    "on",
    "forget",
    "help",
)
ISSUE_COMMANDS = frozenset({"context", "wrong", "same", "different", "original"})
"""Commands that take issue numbers."""

WHICH = "which"
"""The name of a command about other issues that names none: `Command.words` is the command."""

MAX_COMMANDS = 3
"""Commands obeyed in one comment; the rest are ignored."""

MAX_ARGUMENT_CHARS = 200

_COMMAND_PREFIX = "/precedent"
_TYPED_COMMAND = re.compile(r"([ \t]*/precedent)(?![\w/.-])([^\n]*)", re.IGNORECASE)
_CODE_INDENT = re.compile(r" {4}| {0,3}\t")
"""What begins a line of code, except where a paragraph goes on."""

_COMMAND_LINE = re.compile(r"/precedent(?:\s+(.*))?\s*\Z", re.IGNORECASE | re.DOTALL)
_OWN_MARKER = "<!-- precedent:"
_MAX_QUESTION_CHARS = 300
"""A longer comment says something besides its question."""

_NUMBER = r"#?[1-9][0-9]{0,9}(?![\w-]|\.\w)"
_NUMBER_LIST = re.compile(
    rf"{_NUMBER}(?:[ ,;]{{1,3}}{_NUMBER}){{0,99}}\Z"
    rf"|(?:issues? )?{_NUMBER}(?:[ ,;/&(]{{0,3}}(?:[,;/&]|\b(?:and|or)\b) ?{_NUMBER}){{0,99}}",
    re.ASCII | re.IGNORECASE,
)
"""``48``, ``48 52``, ``#48 and 52``, ``issues 48, 52``; a number in a sentence after them does not count."""


@dataclass(frozen=True, slots=True)
class Command:
    """A request to the bot, typed in ``line``.

    ``name`` is one of COMMAND_NAMES, ``words`` is the search text, and ``about`` holds the named issues. A request that
    was not understood becomes a ``help`` that is not ``clear``, or ``which`` if only the number is missing.
    """

    name: str
    words: str = ""
    about: tuple[int, ...] = ()
    clear: bool = True
    line: str = ""


def commands(text: str, *, repo: str | None = None, hosts: Sequence[str] = GITHUB_HOSTS) -> tuple[Command, ...]:
    """The commands of a comment in order, at most three, without repetitions.

    A command must start a line, outside code, quotes, hidden comments and emphasis. ``repo`` and ``hosts`` define how
    issues of this repository may be written.
    """
    if _COMMAND_PREFIX not in plain(text).lower():
        return ()
    distinct: dict[Command, Command] = {}
    for line in _command_lines(text):
        command = _command(line.replace(ZERO_WIDTH_SPACE, ""), repo, hosts)
        distinct.setdefault(replace(command, line="") if command.clear else Command("help", clear=False), command)
    return tuple(distinct.values())[:MAX_COMMANDS]


def without_commands(text: str) -> str:
    """The text without the words after ``/precedent`` in its command lines. Line numbers do not change."""
    if _COMMAND_PREFIX not in plain(text).lower():
        return text
    rows = readable(text).split("\n")
    for part in _plain_paragraphs(rows):
        for index, line in enumerate(part.typed if _paragraph_commands(part) else (), part.first):
            if typed := _TYPED_COMMAND.match(line):
                rows[index] = typed[1]
    return "\n".join(rows)


def without_requests(text: str) -> str:
    """What a comment says to people: without its command lines; "" for a question to the bot, and for its own words.

    Nobody's words to the bot are a summary, a quotation or a search hit.
    """
    if text.lstrip("\ufeff \t\r\n").startswith(_OWN_MARKER):
        return ""
    if _COMMAND_PREFIX in plain(text).lower():
        rows = readable(text).split("\n")
        for part in _plain_paragraphs(rows):
            for index, line in enumerate(part.typed if _paragraph_commands(part) else (), part.first):
                rows[index] = "" if _TYPED_COMMAND.match(line) else rows[index]
        text = "\n".join(rows).strip()
    return "" if len(text) <= _MAX_QUESTION_CHARS and recall_question(text) else text


def _command_lines(text: str) -> Iterator[str]:
    for part in _plain_paragraphs(readable(text).split("\n")):
        yield from _paragraph_commands(part)


def _plain_paragraphs(rows: Sequence[str]) -> Iterator[Paragraph]:
    """The paragraphs as GitHub reads them, for which only ASCII is markup, and then with `plain` characters."""
    for part in paragraphs("\n".join(rows)):
        yield Paragraph(part.first, tuple(map(plain, part.typed)), tuple(map(plain, part.shown)))


def _paragraph_commands(part: Paragraph) -> list[str]:
    """The command lines of a paragraph, except lines that only look like one (typed as ``\\/precedent``)."""
    typed = [match for line in part.typed if (match := _TYPED_COMMAND.match(line))]
    shown = [line.strip() for line in part.shown]
    follows_mark = not _TYPED_COMMAND.match(part.typed[0]) and _COMMAND_PREFIX in part.typed[0].lower()
    lines = (line for line in shown[follows_mark:] if _COMMAND_LINE.match(line))
    return [line for line, match in zip(lines, typed, strict=False) if not _CODE_INDENT.match(match[0])]


def _command(line: str, repo: str | None, hosts: Sequence[str]) -> Command:
    match = _COMMAND_LINE.match(line)
    arguments = " ".join((match[1] or "").split()) if match else ""
    shown = line[: MAX_ARGUMENT_CHARS + len(_COMMAND_PREFIX)]
    name, _, rest = arguments.partition(" ")
    name, rest = name.lower().rstrip(".,:;!"), rest[:MAX_ARGUMENT_CHARS].strip()
    about = _numbers(rest, repo, hosts) if name in ISSUE_COMMANDS else ()
    if name in ISSUE_COMMANDS and name != "context" and not about:
        return Command(WHICH, name, clear=False, line=shown)
    is_incomplete = (name == "search" and not rest) or (name == "context" and not about)
    if (
        name not in COMMAND_NAMES or is_incomplete or (name == "forget" and rest)
    ):  # forget is only for the current issue
        return Command("help", clear=False, line=shown)
    return Command(name, rest if name == "search" else "", about, line=shown)


def _numbers(text: str, repo: str | None, hosts: Sequence[str]) -> tuple[int, ...]:
    """The issues of this repository named by an argument, or a list of numbers."""
    if listed := _NUMBER_LIST.match(text):
        return tuple(int(number.lstrip("#")) for number in re.findall(_NUMBER, listed[0]))[:MAX_ISSUES]
    references = find_references(f"of {text}", repo=repo, hosts=hosts)  # "of" because # at the start may be a heading
    return tuple(r.number for r in references if r.owner is None and r.kind is None)[:MAX_ISSUES]
