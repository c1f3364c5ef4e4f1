"""Separates what a person typed from what programs put into the person's messages.

Agents wrap their additions in tags of their own, or begin them with fixed sentences. All of these are in one table.
Linear in the length of the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, auto
from typing import NamedTuple


class ClosingTag(Enum):
    """The tag that ends wrapped text: ``LAST`` for wrappers whose content may hold anything, such as the output of a
    command that prints the closing tag; the person's next words are in another message then."""

    FIRST = auto()
    LAST = auto()


WRAPPERS = {
    # Claude Code: slash commands, commands of the shell, notes of the program, the editor
    **dict.fromkeys(("command-name", "command-message", "command-args", "command-contents"), ClosingTag.FIRST),
    **dict.fromkeys(("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr"), ClosingTag.LAST),
    **dict.fromkeys(
        ("bash-input", "local-command-caveat", "system-reminder", "user-prompt-submit-hook"), ClosingTag.FIRST
    ),
    **dict.fromkeys(("task-notification", "teammate-message"), ClosingTag.LAST),
    **dict.fromkeys(("ide_opened_file", "ide_selection", "ide_diagnostics"), ClosingTag.FIRST),
    # Codex
    **dict.fromkeys(("skill", "user_shell_command", "subagent_notification"), ClosingTag.LAST),
    **dict.fromkeys(("environment_context", "user_instructions", "permissions instructions"), ClosingTag.FIRST),
    **dict.fromkeys(("collaboration_mode", "turn_aborted", "in-app-browser-context"), ClosingTag.FIRST),
    # Gemini CLI and Qwen Code
    **dict.fromkeys(("session_context", "state_snapshot", "hook_context"), ClosingTag.FIRST),
    # Cursor
    **dict.fromkeys(("system_reminder", "attached_files", "open_and_recently_viewed_files"), ClosingTag.FIRST),
}
"""The tags that surround text of programs."""

_INTERRUPTED = re.compile(r"^[ \t]*\[Request interrupted by user(?: for tool use)?\][ \t]*$", re.MULTILINE)

_INSTRUCTIONS = re.compile(r"\s*# AGENTS\.md instructions\b")
_INSTRUCTIONS_END = "</INSTRUCTIONS>"
_IDE_CONTEXT = re.compile(r"\s*# (?:Context from my IDE setup|Files mentioned by the user):")
_REQUEST = re.compile(r"^## My request(?: for Codex)?:[ \t]*$", re.MULTILINE)
"""The heading before the words of the person. The last one counts, as in the editor: a selection may contain it."""

_TAG = re.compile(rf"<(/?)({'|'.join(sorted(map(re.escape, WRAPPERS), reverse=True))})(?:[ \t][^<>\n]{{0,500}})?>")
_QUERY = re.compile(r"</?user_query>")


class _Tag(NamedTuple):
    start: int
    end: int
    name: str
    is_closing: bool


def spoken(text: str) -> str:
    """Return what a person typed of a message. An opening tag that is never closed is the person's own word."""
    if _INSTRUCTIONS.match(text):
        text = text.rpartition(_INSTRUCTIONS_END)[2] if _INSTRUCTIONS_END in text else ""
    if _IDE_CONTEXT.match(text):
        text = "".join(_REQUEST.split(text)[1:][-1:])
    if "[Request interrupted" in text:
        text = _INTERRUPTED.sub("", text)
    return "".join(_outside(text)).strip() if "<" in text else text


def query_of(text: str) -> str:
    """Return the words in ``<user_query>``, as Cursor wraps those of the person; all of the text without the tag."""
    first = _QUERY.search(text)
    return spoken(_QUERY.split(text[first.start() :], maxsplit=2)[1] if first else text)


def _outside(text: str) -> Iterator[str]:
    """The pieces of a text outside of all wrappers."""
    tags = [_Tag(match.start(), match.end(), match[2], bool(match[1])) for match in _TAG.finditer(text)]
    closings: dict[str, list[_Tag]] = {}
    for tag in reversed(tags):
        if tag.is_closing:
            closings.setdefault(tag.name, []).append(tag)  # the next one is the last of the list
    position = 0
    for tag in tags:
        if tag.is_closing or tag.start < position:
            continue
        ends = closings.get(tag.name, [])
        while ends and ends[-1].start < tag.end:
            ends.pop()
        if ends:
            yield text[position : tag.start]
            position = (ends[-1] if WRAPPERS[tag.name] is ClosingTag.FIRST else ends[0]).end
    yield text[position:]
