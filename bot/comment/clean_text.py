"""Cleans a stranger's text: removes invisible, reordering and broken characters, and shortens it."""

from __future__ import annotations

import re
import unicodedata
from functools import cache

from bot.reading.lookalikes import without_quotation_marks
from bot.reading.text_edges import MAX_BACKTRACK, cut_at_edge, nearest_edge

ELLIPSIS = "…"

_SPACES = re.compile(r"\s+")
_INVALID_NAME_CHAR = re.compile(r"[^\w.@+\[\]-]")
MAX_NAME_CHARS = 60
_INVISIBLE = (
    "[\0-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Controls, bidirectional marks, zero-width, filler and tag characters, variation selectors (Unicode's list of default
ignorable code points, UAX #44, and characters that merely look blank)."""

_JOINING_SCRIPTS = "\u0590-\u1fff\u2190-\u2bff\ufe0f\U0001f000-\U0001faff"
_STRAY_JOINER = f"(?<![{_JOINING_SCRIPTS}])[\u200c\u200d]|[\u200c\u200d](?![{_JOINING_SCRIPTS}])"
"""Joiners that join nothing; between emoji and in Persian or Indic scripts they are part of the spelling."""

_STRAY_STYLE = "(?<![\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff#*0-9])[\ufe0e\ufe0f]|(?<=[#*0-9])\ufe0f(?!\u20e3)"
_COMBINING_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"


@cache
def _patterns() -> tuple[re.Pattern[str], ...]:
    """Compiled on first use, as compiling takes as long as a search."""
    return (
        re.compile("\r\n?|[\v\f\u0085\u2028\u2029]"),
        re.compile("[\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"),
        re.compile(_INVISIBLE),
        re.compile(_STRAY_JOINER),
        re.compile(_STRAY_STYLE),
        re.compile(f"([{_COMBINING_MARKS}]{{3}})[{_COMBINING_MARKS}]+"),
    )


_MAX_CLUSTER = 64
_JOINER = "\u200d"


def visible_text(text: str) -> str:
    """The text with ``\\n`` newlines, without invisible characters, and with at most three accents on a letter."""
    if text.isascii() and text.isprintable():
        return text
    newline, broken, invisible, stray_joiner, stray_style, pile = _patterns()
    text = broken.sub("\ufffd", newline.sub("\n", text))
    text = stray_style.sub("", invisible.sub("", text))
    return pile.sub(r"\1", stray_joiner.sub("", text))


def one_line(text: str) -> str:
    """Clean text on one line, white space collapsed."""
    return _SPACES.sub(" ", visible_text(text)).strip()


def quoted(text: str) -> str:
    """The text on one line in quotation marks, which it cannot end itself."""
    return f"“{without_quotation_marks(one_line(text))}”"


def account(name: str) -> str:
    """The name of an account as one word, so that a name cannot forge other parts of our lines."""
    return _INVALID_NAME_CHAR.sub("", visible_text(without_comments(name)))[:MAX_NAME_CHARS] or "somebody"


def visible(text: str) -> str:
    """The text as a person sees it, without HTML comments, invisible and reordering characters."""
    return visible_text(without_comments(text))


def without_comments(text: str) -> str:
    """The text without HTML comments."""
    parts: list[str] = []
    position = 0
    while (opened := text.find("<!--", position)) >= 0:
        parts.append(text[position:opened])
        closed = text.find("-->", opened + 4)
        position = closed + 3 if closed >= 0 else len(text)
    return "".join([*parts, text[position:]])


def truncate(text: str, limit: int) -> str:
    """At most ``limit`` (at least one) characters, with an ellipsis for what is missing.

    Cuts between words or after full-width punctuation; in a word of more than 40 characters, between characters as
    readers see them.
    """
    if len(text) <= limit:
        return text
    end = max(limit, 1) - 1
    space = max(
        text.rfind(" ", max(0, end - MAX_BACKTRACK), end + 1), text.rfind("\n", max(0, end - MAX_BACKTRACK), end + 1)
    )
    edge = nearest_edge(text, end)
    if space < edge < end:
        return cut_at_edge(text, limit)
    end = space if space > 0 else _before_cluster(text, end)
    return text[:end].rstrip() + ELLIPSIS


def _before_cluster(text: str, end: int) -> int:
    """The last position at or before ``end`` that is not inside a single character as readers see it."""
    for at in range(end, max(0, end - _MAX_CLUSTER), -1):
        if not (_extends(text[at]) or text[at - 1] == _JOINER or _splits_flag(text, at)):
            return at
    return end


def _extends(character: str) -> bool:
    return (
        character == _JOINER
        or "\U0001f3fb" <= character <= "\U0001f3ff"
        or unicodedata.category(character) in ("Mn", "Me", "Mc")
    )


def _splits_flag(text: str, at: int) -> bool:
    """Whether ``at`` is between the two regional indicators of a flag."""
    start = at
    while start > 0 and at - start < _MAX_CLUSTER and _is_regional(text[start - 1]):
        start -= 1
    return _is_regional(text[at]) and (at - start) % 2 == 1


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


_CONTROL_CHARS = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
"""Compiled on use, as a search from a shell needs none of it."""


def printable(text: str) -> str:
    """Text of many lines that controls neither a terminal nor a page: control and direction characters become U+FFFD.

    What prevents pings in Markdown stays.
    """
    return text if text.isascii() and text.replace("\n", "").isprintable() else re.sub(_CONTROL_CHARS, "\ufffd", text)


def log_line(text: str) -> str:
    """One log line that the runner never reads as a command: ``%``, line ends, ``::`` and ``##[`` are escaped.

    Other control and direction characters become U+FFFD, so that a terminal shows them. Source of the rules:
    https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
    """
    line = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace("\t", " ")
    line = re.sub(_CONTROL_CHARS, "\ufffd", line)
    return line.replace("::", ": :").replace("::", ": :").replace("##[", "# #[")


def plain_log_line(text: str) -> str:
    """One log line that is never a command, for logs where a per cent sign needs no escape."""
    return log_line(text).replace("%25", "%")
