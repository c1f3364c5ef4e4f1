"""A comment as HTML for a page of ours: of its Markdown only what has no power, whoever wrote what is quoted in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from typing import Any

from bot.reading.markdown import parse

_BLOCKS = frozenset(
    {"p", "blockquote", "ul", "ol", "li", "em", "strong", "s", "table", "thead", "tbody", "tr", "th", "td"}
)
"""Elements that the parser may open and close; a heading becomes a paragraph, as the page has headings of its own."""

_FOLDS = re.compile(r"<(/?)(details|summary|sub|span)>", re.ASCII)
"""The HTML that our own comments have; every other tag is text."""

_PLACE = re.compile(
    r"(?:issues|pull)/[0-9]{1,18}(?:#issuecomment-[0-9]{1,18})?|commit/[0-9a-f]{7,64}|releases/tag/[^/?#\\]{1,300}",
    re.ASCII,
)
"""What `Links` builds below the address of a repository."""

_HIDDEN = re.compile(r"<!--.*?-->", re.DOTALL)


def as_html(markdown: str, home: str) -> str:
    """The HTML of a comment. Links lead to threads, commits and releases below ``home``, the address of the
    repository; others are their text alone.

    No attribute but ``href`` is in it, and every element that it opens is closed.
    """
    shown = _Shown(home.rstrip("/") + "/")
    return "".join([*shown.tokens(parse(markdown)), *shown.rest()])


class _Shown:
    def __init__(self, home: str) -> None:
        self._home = home
        self._folds: list[str] = []
        self._links: list[bool] = []

    def tokens(self, tokens: list[Any]) -> Iterator[str]:
        for token in tokens:
            if token.type == "inline":
                yield from self.tokens(token.children or [])
            elif not token.hidden:
                yield from self._one(token)

    def rest(self) -> Iterator[str]:
        """The ends of what was folded and never unfolded."""
        while self._folds:
            yield f"</{self._folds.pop()}>"

    def _one(self, token: Any) -> Iterator[str]:
        match token.type:
            case "fence" | "code_block":
                yield f"<pre><code>{escape(token.content)}</code></pre>"
            case "code_inline":
                yield f"<code>{escape(token.content)}</code>"
            case "softbreak" | "hardbreak":  # in comments both are line breaks
                yield "<br>"
            case "hr":
                yield "<hr>"
            case "link_open" | "link_close":
                yield self._link(token)
            case "html_block" | "html_inline":
                yield from self._html(token.content)
            case _ if token.nesting:
                yield self._block(token)
            case _:
                yield escape(token.content)

    def _block(self, token: Any) -> str:
        is_heading = re.fullmatch("h[1-6]", token.tag)
        if not is_heading and token.tag not in _BLOCKS:
            return ""
        if token.nesting > 0:
            return "<p><strong>" if is_heading else f"<{token.tag}>"
        return "</strong></p>" if is_heading else f"</{token.tag}>"

    def _link(self, token: Any) -> str:
        if token.type == "link_close":
            return "</a>" if self._links and self._links.pop() else ""
        address = str(token.attrs.get("href", ""))
        is_home = address.startswith(self._home) and _PLACE.fullmatch(address.removeprefix(self._home))
        self._links.append(bool(is_home))
        return f'<a href="{escape(address)}">' if self._links[-1] else ""

    def _html(self, source: str) -> Iterator[str]:
        """Comments are left out; an end without its beginning is too."""
        source, end = _HIDDEN.sub("", source), 0
        for tag in _FOLDS.finditer(source):
            yield escape(source[end : tag.start()])
            end = tag.end()
            if not tag[1]:
                self._folds.append(tag[2])
                yield tag[0]
            elif self._folds and self._folds[-1] == tag[2]:
                self._folds.pop()
                yield tag[0]
        yield escape(source[end:])
