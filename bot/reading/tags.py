"""Raw HTML as it stands in Markdown, cut into text and tags in linear time.

The standard library's parser is not used: on unclosed tags and comments its time grows with the square of the length,
and it raises on some malformed declarations. This follows the tokenizer of the HTML standard as far as text, tags
and comments go (https://html.spec.whatwg.org/multipage/parsing.html).
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

FILTERED = frozenset({"title", "textarea", "style", "xmp", "iframe", "noembed", "noframes", "script", "plaintext"})
"""Tags that GitHub shows as text (https://github.github.com/gfm/#disallowed-raw-html-extension-)."""

_NAME = re.compile(r"[A-Za-z][^\s/>]*+")
_ATTRIBUTE = re.compile(r"""[\s/]*+([^\s/>=]++)(?:\s*+=\s*+("[^"]*+"?|'[^']*+'?|[^\s>]*+))?+""")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")


class Piece(NamedTuple):
    """One piece of HTML. ``kind`` is ``text``, ``open``, ``close`` or ``comment``.

    ``value`` is the decoded text, or the tag's name in lower case; ``href`` is the target of an ``a`` tag.
    """

    kind: str
    value: str
    href: str = ""


def pieces(source: str) -> Iterator[Piece]:
    """The text, tags and comments of ``source`` in order; never raises, an unfinished tag or comment ends it."""
    at = 0
    while at < len(source):
        start = source.find("<", at)
        if start < 0:
            start = len(source)
        if start > at:
            yield Piece("text", _decode(source[at:start]))
        if start == len(source):
            return
        piece, at = _markup(source, start)
        yield piece


def _markup(source: str, start: int) -> tuple[Piece, int]:
    """What begins with the ``<`` at ``start``, and where it ends."""
    if source.startswith("<!--", start):
        return Piece("comment", ""), _after(source, "-->", start + 2)
    closing = source.startswith("</", start)
    name = _NAME.match(source, start + 1 + closing)
    if name:
        return _tag(source, start, name, "close" if closing else "open")
    if closing or source.startswith(("<!", "<?"), start):
        return Piece("comment", ""), _after(source, ">", start)
    return Piece("text", "<"), start + 1


def _tag(source: str, start: int, name: re.Match[str], kind: str) -> tuple[Piece, int]:
    tag = name[0].lower()
    end, href = name.end(), ""
    while found := _ATTRIBUTE.match(source, end):
        if found[1].lower() == "href" and not href:
            href = _decode((found[2] or "").strip("\"'"))
        end = found.end()
    end = _after(source, ">", end)
    if tag in FILTERED:
        return Piece("text", source[start:end]), end
    return Piece(kind, tag, href if tag == "a" else ""), end


def _after(source: str, mark: str, start: int) -> int:
    found = source.find(mark, start)
    return len(source) if found < 0 else found + len(mark)


def _decode(text: str) -> str:
    return _ENTITY.sub(lambda found: html.unescape(found[0]), text) if "&" in text else text
