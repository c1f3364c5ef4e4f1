"""What a message of a session says, and the files that its tool calls name; thinking and tool output are neither."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from bot.archive import MAX_TEXT
from bot.reading.tail import tail

MAX_PARTS = 1_000
"""Parts of one message that are read, the last ones."""

MAX_FILES = 50
"""Files of one message that are kept, the first ones."""

MAX_PATH = 500
_MAX_ARGUMENTS = 1 << 20

_TEXT = frozenset({"text", "input_text", "output_text"})
_CALL = frozenset({"toolCall", "tool_call", "tool_use", "toolUse", "function_call", "server_tool_use"})
_ARGUMENTS = ("arguments", "input", "args", "parameters")
_PATH = frozenset({"path", "file_path", "filePath", "file", "filename", "fileName", "notebook_path", "notebookPath"})
_PATHS = frozenset({"paths", "files", "file_paths", "filePaths", "edits"})

_NEWLINE = re.compile("\r\n?")
_ESCAPE = re.compile("(?:\x1b\\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]|\x1b\\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\\\)")
_UNSEEN = re.compile(
    "[\0-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e0fff]"
)
_BROKEN = re.compile("[\ud800-\udfff]")


class Unreadable(Exception):
    """A line that should be a message and is of no known shape."""


class Content(NamedTuple):
    """The text of a message and the files that its tool calls name."""

    text: str
    files: tuple[str, ...] = ()


def content_of(value: Any, folder: str = "") -> Content:
    """What the content of a message says: a string, or a list of parts. ``folder`` is where the session worked.

    Raises Unreadable.
    """
    if value is None:
        return Content("")  # calls tools and says nothing
    if isinstance(value, str):
        return Content(plain(value))
    if not isinstance(value, list):
        raise Unreadable(type(value).__name__)
    parts = value[-MAX_PARTS:]
    said = "\n\n".join(filter(None, map(_text, parts)))
    return Content(
        plain(said, is_cut=len(value) > MAX_PARTS),
        _unique(_short(path, folder) for part in parts for path in _named(part)),
    )


def plain(text: str, *, is_cut: bool = False) -> str:
    """The text as a person sees it: without colours and other orders to a terminal, and without what is not seen.

    Of a long one the end. ``is_cut``: its beginning is missing already.
    """
    most = 2 * MAX_TEXT  # what is removed is rarely half of it
    is_cut, text = is_cut or len(text) > most, text[-most:]
    text = _UNSEEN.sub("", _ESCAPE.sub("", _NEWLINE.sub("\n", text)))
    return tail(_BROKEN.sub("\ufffd", text).strip(), MAX_TEXT, is_cut=is_cut)


def line_of(value: Any, most: int) -> str:
    """A name in one line, "" where it is none or longer than ``most``."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63:
        return str(value)
    if not isinstance(value, str) or not 0 < len(value) <= most:
        return ""
    return " ".join(plain(value).split())


def _text(part: Any) -> str:
    if isinstance(part, str):
        return part
    text = part.get("text") if _is(part, _TEXT) else None
    return text if isinstance(text, str) else ""


def _is(part: Any, names: frozenset[str]) -> bool:
    return isinstance(part, dict) and isinstance(part.get("type"), str) and part["type"] in names


def _named(part: Any) -> Iterator[str]:
    """The files that a tool was called with."""
    if not _is(part, _CALL):
        return
    for name in _ARGUMENTS:
        given = part.get(name)
        if isinstance(given, str) and len(given) <= _MAX_ARGUMENTS:
            try:
                given = json.loads(given)
            except (ValueError, RecursionError):
                continue
        if isinstance(given, dict):
            yield from _paths(given)
            for key in sorted(_PATHS & given.keys()):
                yield from _listed(given[key])


def _paths(given: Mapping[str, Any]) -> Iterator[str]:
    yield from (given[key] for key in sorted(_PATH & given.keys()) if isinstance(given[key], str))


def _listed(value: Any) -> Iterator[str]:
    for item in value[:MAX_FILES] if isinstance(value, list) else ():
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            yield from _paths(item)


def _short(path: str, folder: str) -> str:
    """The path below the folder where it is in it; "" for what is no file."""
    if not 0 < len(path) <= MAX_PATH or "\n" in path:
        return ""
    path, folder = (plain(each).replace("\\", "/") for each in (path, folder))
    if folder and path.startswith(f"{folder.rstrip('/')}/"):
        path = path[len(folder.rstrip("/")) + 1 :]
    while path.startswith("./"):
        path = path[2:]
    return "" if path.endswith(("/", "..")) or path in (".", "~") else path


def _unique(paths: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, paths)))[:MAX_FILES]
