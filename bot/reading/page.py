"""The page that a browser would build from a comment: what is open at a place decides what the text there is."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from bot.reading import tags
from bot.reading.runs import GAP, Run, split_urls

MAX_HEADING = 120
"""Longer underlined headings are taken for prose: somebody wrote a paragraph and then ``---`` to draw a line."""

ALERT = re.compile(r"\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*", re.IGNORECASE)
"""The first line of a block quote that is no quote but a box (GitHub's alerts)."""

_BLOCKS = frozenset(
    {"address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt", "footer", "form"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary"}
    | {"table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)
_CODE = frozenset({"code", "tt"})
_CELL = " | "


class Link(NamedTuple):
    """A link and the text that it shows."""

    href: str
    text: str


class Heading(NamedTuple):
    """A heading of ``level`` 1..6; ``position`` is the number of prose paragraphs before it."""

    level: int
    text: str
    position: int


@dataclass(frozen=True, slots=True)
class Parts:
    """What a page holds, by what it is; see ``bot.reading.markdown.Document`` for the meaning of each."""

    prose: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)
    inline_code: list[str] = field(default_factory=list)
    links: list[Link] = field(default_factory=list)
    headings: list[Heading] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def add_text(self, node: str) -> None:
        """Takes one text node into the runs."""
        for run in split_urls(node):
            self.runs.append(run)
            if run.kind == "link":
                self.links.append(Link(run.value, run.value))

    def add_gap(self) -> None:
        if self.runs and self.runs[-1] is not GAP:
            self.runs.append(GAP)


class Page:
    """Takes text, tags and block boundaries in document order; ``finish`` gives the parts."""

    def __init__(self) -> None:
        self._parts = Parts()
        self._paragraph: list[str] = []
        self._node: list[str] = []
        self._pre: list[str] = []
        self._pre_depth = 0
        self._quote: list[str] = []
        self._quoting: list[bool] = []
        self._links: list[tuple[str, int]] = []
        self._codes: list[int] = []
        self._heading: tuple[int, bool] | None = None

    def finish(self) -> Parts:
        """Closes whatever is open."""
        self.end_block()
        while self._quoting:
            self.close_quote()
        if self._pre:
            self._end_pre()
        return self._parts

    def text(self, text: str) -> None:
        if self._pre_depth:
            self._pre.append(text)
            return
        self._paragraph.append(text)
        if not (self._codes or self._links):
            self._node.append(text)

    def html(self, source: str) -> None:
        """Raw HTML, whole or the beginning of something that later pieces go on with."""
        for kind, value, href in tags.pieces(source):
            if kind == "text":
                self.text(value)
                continue
            self.end_node()
            if kind != "comment" and value in _BLOCKS:
                self.end_block()
            if kind == "open":
                self._open_tag(value, href)
            elif kind == "close":
                self._close_tag(value)

    def _open_tag(self, name: str, href: str) -> None:
        if name == "pre":
            self._pre_depth += 1
        elif name == "blockquote":
            self.open_quote()
        elif name in _CODE:
            self.open_code()
        elif name == "a":
            self.close_link()
            self.open_link(href)
        elif name == "br":
            self.text("\n")

    def _close_tag(self, name: str) -> None:
        if name == "pre" and self._pre_depth:
            self._pre_depth -= 1
            self._end_pre()
        elif name == "blockquote":
            self.close_quote()
        elif name in _CODE:
            self.close_code()
        elif name == "a":
            self.close_link()

    def open_code(self) -> None:
        self.end_node()
        self._codes.append(len(self._paragraph))

    def close_code(self) -> None:
        if not self._codes:
            return
        text = "".join(self._paragraph[self._codes.pop() :]).strip()
        if text and not self._is_quoting:
            self._parts.inline_code.append(text)
        self._parts.add_gap()

    def open_link(self, href: str) -> None:
        self.end_node()
        self._links.append((href, len(self._paragraph)))
        if href:
            self._parts.runs.append(Run("link", href))

    def close_link(self) -> None:
        if not self._links:
            return
        href, start = self._links.pop()
        if href:
            self._parts.links.append(Link(href, "".join(self._paragraph[start:]).strip()))

    def open_quote(self, *, alert: bool = False) -> None:
        self.end_block()
        self._quoting.append(not alert)

    def close_quote(self) -> None:
        self.end_block()
        if self._quoting:
            self._quoting.pop()
        if self._quote and not self._is_quoting:
            self._parts.quotes.append("\n\n".join(self._quote))
            self._quote = []

    def open_heading(self, level: int, *, underlined: bool) -> None:
        self.end_block()
        self._heading = (level, underlined)

    def add_code(self, content: str) -> None:
        """A whole code block."""
        self.end_block()
        content = content.strip("\n")
        if content:
            (self._quote if self._is_quoting else self._parts.code).append(content)

    def end_node(self) -> None:
        """Ends the text node: what is inside an element and what is outside are never read together."""
        if self._node:
            node = "".join(self._node)
            self._node = []
            self._parts.add_text(node)

    def end_cell(self) -> None:
        self.end_node()
        self._parts.add_gap()
        self._paragraph.append(_CELL)

    def end_block(self) -> None:
        self.end_node()
        self._parts.add_gap()
        while self._paragraph and self._paragraph[-1] is _CELL:
            self._paragraph.pop()
        text = "".join(self._paragraph).strip()
        self._paragraph = []
        if text:
            self._add_paragraph(text)
        self._heading = None

    @property
    def _is_quoting(self) -> bool:
        return True in self._quoting

    def _end_pre(self) -> None:
        content = "".join(self._pre)
        self._pre = []
        self.add_code(content)

    def _add_paragraph(self, text: str) -> None:
        level, underlined = self._heading or (0, False)
        if self._is_quoting:
            self._quote.append(text)
        elif level and not (underlined and (len(text) > MAX_HEADING or "\n" in text)):
            self._parts.headings.append(Heading(level, text, len(self._parts.prose)))
        else:
            self._parts.prose.append(ALERT.sub("", text, count=1) if self._quoting else text)
