"""Shows a comment as GitHub would: its Markdown as HTML that runs nothing, loads nothing and stays in its place."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from html import escape, unescape

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.reading.markdown import limit_openings, markdown_parser, readable

BLOCK_TAGS, INLINE_TAGS = frozenset({"details", "summary", "sub", "span"}), frozenset({"sub", "span"})
"""The elements of our own comments: on lines of their own, and within a paragraph. Other tags are shown as typed."""

LINK_RELATION = "noopener noreferrer nofollow"

_TAG_OR_NOTE = re.compile(r"<(?P<close>/?)(?P<name>[a-z]+)>|<!--(?:.*?-->|.*)", re.DOTALL)
_WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_BLOCK = ""
"""Stands for an element of Markdown among the open tags."""


def shown_html(markdown: str) -> str:
    """The HTML of a comment: every element is closed, images are their descriptions, and links lead to http(s) only.

    Headings are paragraphs of the class ``heading``, so that the page keeps its own. Never raises.
    """
    parser = _parser()
    tokens = parser.parse(limit_openings(readable(markdown)))
    return str(parser.renderer.render(list(_harmless(tokens, BLOCK_TAGS)), parser.options, {}))


@cache
def _parser() -> MarkdownIt:
    parser = markdown_parser()
    parser.options["breaks"], parser.options["xhtmlOut"] = True, False
    return parser


def _harmless(tokens: Iterable[Token], allowed: frozenset[str]) -> Iterator[Token]:
    """The tokens with harmless attributes and HTML; a tag is closed within the element of Markdown that holds it."""
    tags, is_linked = _OpenTags(allowed), False
    for token in tokens:
        token.attrs = {name: value for name, value in token.attrs.items() if name in ("href", "start")}
        token.info = ""  # the language of code
        match token.type:
            case "html_block" | "html_inline":
                yield _html(tags.html(token.content) + (tags.end_line() if token.type == "html_block" else ""))
                continue
            case "image":
                yield _html(escape(token.content))
                continue
            case "link_open":
                is_linked = bool(_WEB_ADDRESS.match(str(token.attrs.get("href", ""))))
                token.attrs["rel"] = LINK_RELATION
            case "s_open" | "s_close":
                token.tag = "del"
            case "heading_open" | "heading_close":
                token.tag, token.attrs = "p", {"class": "heading"} if token.nesting > 0 else {}
        if token.type in ("link_open", "link_close") and not is_linked:
            continue
        if token.children:
            token.children = list(_harmless(token.children, INLINE_TAGS))
        if token.nesting > 0:
            tags.open_block()
        elif token.nesting < 0:
            yield _html(tags.close_block())
        yield token
    yield _html(tags.close_block())


def _html(content: str) -> Token:
    return Token("html_inline", "", 0, content=content)


class _OpenTags:
    """The tags that are open, so that no stranger's tag closes our own or the page's."""

    def __init__(self, allowed: frozenset[str]) -> None:
        self._allowed = allowed
        self._open: list[str] = []

    def html(self, source: str) -> str:
        """Raw HTML with our own tags; other tags are text, and hidden comments are left out."""
        shown, at = "", 0
        for match in _TAG_OR_NOTE.finditer(source):
            is_text = match["name"] is not None and match["name"] not in self._allowed
            tag = _text(match[0]) if is_text else self._tag(match["name"] or "", is_end=bool(match["close"]))
            shown += _text(source[at : match.start()]) + tag
            at = match.end()
        return shown + _text(source[at:])

    def _tag(self, name: str, *, is_end: bool) -> str:
        """The tag, "" where it has no place."""
        last = self._open[-1] if self._open else _BLOCK
        if is_end:
            return self._close_last() if name and last == name else ""
        has_place = {"summary": last == "details", "details": last in ("details", _BLOCK)}.get(name, bool(name))
        if not has_place:
            return ""
        self._open.append(name)
        return f"<{name}>"

    def open_block(self) -> None:
        self._open.append(_BLOCK)

    def close_block(self) -> str:
        """The ends of all tags that were opened in the last block."""
        ends = ""
        while self._open and (end := self._close_last()):
            ends += end
        return ends

    def end_line(self) -> str:
        """The ends of all tags but ``details``, which alone may hold paragraphs."""
        ends = ""
        while self._open and self._open[-1] not in ("details", _BLOCK):
            ends += self._close_last()
        return ends

    def _close_last(self) -> str:
        name = self._open.pop()
        return f"</{name}>" if name else ""


def _text(source: str) -> str:
    return escape(unescape(source))
