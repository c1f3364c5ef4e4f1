"""Reads the HTML of a comment as a browser would: its text, links and runs."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

MAX_HEADING_CHARS = 120
"""Longer underlined headings count as prose: the author wrote a paragraph and then ``---`` to draw a line."""

ALERT = re.compile(r"\[!(?:NOTE|TIP|IMPORTANT|WARNING|CAUTION)\]\s*", re.IGNORECASE)
"""The first line of an alert, a box that GitHub writes as a block quote."""

_BLOCK_TAGS = frozenset(
    {"address", "article", "aside", "blockquote", "center", "dd", "details", "div", "dl", "dt", "footer", "form"}
    | {"h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "li", "main", "nav", "ol", "p", "pre", "section", "summary"}
    | {"table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul"}
)
_CODE_TAGS = frozenset({"code", "tt"})
_CELL_SEPARATOR = " | "


@dataclass(frozen=True, slots=True)
class HtmlParts:
    """The parts of a page, as described in ``bot.reading.markdown.MarkdownDocument``."""

    prose: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    quotes: list[str] = field(default_factory=list)
    inline_code: list[str] = field(default_factory=list)
    links: list[tuple[str, str]] = field(default_factory=list)
    runs: list[TextRun] = field(default_factory=list)

    def add_text(self, node: str) -> None:
        """Adds one text node to the runs."""
        self.runs.extend(split_urls(node))

    def add_gap(self) -> None:
        if self.runs and self.runs[-1] is not GAP_RUN:
            self.runs.append(GAP_RUN)


class HtmlPage:
    """Collects text, tags and block boundaries in document order; ``finish`` returns the parts."""

    def __init__(self) -> None:
        self._parts = HtmlParts()
        self._paragraph: list[str] = []
        self._node: list[str] = []
        self._pre: list[str] = []
        self._pre_depth = 0
        self._quote: list[str] = []
        self._quoting: list[bool] = []
        self._links: list[tuple[str, int]] = []
        self._codes: list[int] = []
        self._is_heading = self._is_underlined = False

    def finish(self) -> HtmlParts:
        """Closes whatever is open and returns the parts."""
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
        """Adds raw HTML: a whole element, or the beginning of one that later pieces continue."""
        for kind, value, href in pieces(source):
            if kind == "text":
                self.text(value)
                continue
            self.end_node()
            if kind != "comment" and value in _BLOCK_TAGS:
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
        elif name in _CODE_TAGS:
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
        elif name in _CODE_TAGS:
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
            self._parts.runs.append(TextRun("link", href))

    def close_link(self) -> None:
        if not self._links:
            return
        href, begin = self._links.pop()
        text = "".join(self._paragraph[begin:]).strip()
        if href and text:
            self._parts.links.append((text, href))

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

    def open_heading(self, *, underlined: bool) -> None:
        self.end_block()
        self._is_heading, self._is_underlined = True, underlined

    def add_code(self, content: str) -> None:
        self.end_block()
        content = content.strip("\n")
        if content:
            (self._quote if self._is_quoting else self._parts.code).append(content)

    def end_node(self) -> None:
        """Ends the text node: text inside an element is never joined with text outside it."""
        if self._node:
            node = "".join(self._node)
            self._node = []
            self._parts.add_text(node)

    def end_cell(self) -> None:
        self.end_node()
        self._parts.add_gap()
        self._paragraph.append(_CELL_SEPARATOR)

    def end_block(self) -> None:
        self.end_node()
        self._parts.add_gap()
        while self._paragraph and self._paragraph[-1] is _CELL_SEPARATOR:
            self._paragraph.pop()
        text = "".join(self._paragraph).strip()
        self._paragraph = []
        if text:
            self._add_paragraph(text)
        self._is_heading = False

    @property
    def _is_quoting(self) -> bool:
        return True in self._quoting

    def _end_pre(self) -> None:
        content = "".join(self._pre)
        self._pre = []
        self.add_code(content)

    def _add_paragraph(self, text: str) -> None:
        if self._is_quoting:
            self._quote.append(text)
        elif not self._is_heading or (self._is_underlined and (len(text) > MAX_HEADING_CHARS or "\n" in text)):
            self._parts.prose.append(ALERT.sub("", text, count=1) if self._quoting else text)


_URL = re.compile(r"(?<![A-Za-z0-9])(?:https?://|www\.)[^\s<]+", re.IGNORECASE | re.ASCII)


class TextRun(NamedTuple):
    """``kind`` is ``text`` (one text node outside code and links), ``link`` (its target) or ``gap``.

    A gap marks the end of a block, or code: words before it do not belong to what follows.
    """

    kind: str
    value: str


GAP_RUN = TextRun("gap", "")


def split_urls(text: str) -> Iterator[TextRun]:
    """Splits plain text into runs, with bare URLs as links (https://github.github.com/gfm/#autolinks-extension-)."""
    at = 0
    for match in _URL.finditer(text):
        url = _trim(match[0])
        if match.start() > at:
            yield TextRun("text", text[at : match.start()])
        yield TextRun("link", url)
        at = match.start() + len(url)
    if at < len(text):
        yield TextRun("text", text[at:])


def _trim(url: str) -> str:
    """A bare URL without the punctuation of the sentence around it."""
    surplus = url.count(")") - url.count("(")
    end = len(url)
    while end:
        last = url[end - 1]
        if last == ")" and surplus > 0:
            surplus -= 1
        elif last not in "?!.,:;*_~'\"":
            break
        end -= 1
    return url[:end]


FILTERED_TAGS = frozenset({"title", "textarea", "style", "xmp", "iframe", "noembed", "noframes", "script", "plaintext"})
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
    """The text, tags and comments of ``source`` in order. Never raises; an unfinished tag or comment ends it.

    The standard library's parser takes time that grows with the square of the length on unclosed tags and comments.
    This follows the standard's tokenizer where it matters here, in linear time: https://html.spec.whatwg.org/multipage/parsing.html
    """
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


def is_unfinished(source: str) -> bool:
    """Whether ``source`` ends within a tag or comment."""
    at = 0
    while (start := source.find("<", at)) >= 0:
        at = _markup(source, start)[1]
    return at == len(source) and not source.endswith(">")


def _markup(source: str, start: int) -> tuple[Piece, int]:
    """The piece that begins with the ``<`` at ``start``, and its end."""
    if source.startswith("<!--", start):
        return Piece("comment", ""), _end_of(source, "-->", start + 2)
    closing = source.startswith("</", start)
    name = _NAME.match(source, start + 1 + closing)
    if name:
        return _tag(source, start, name, "close" if closing else "open")
    if closing or source.startswith(("<!", "<?"), start):
        return Piece("comment", ""), _end_of(source, ">", start)
    return Piece("text", "<"), start + 1


def _tag(source: str, start: int, name: re.Match[str], kind: str) -> tuple[Piece, int]:
    tag = name[0].lower()
    end, href = name.end(), ""
    while attribute := _ATTRIBUTE.match(source, end):
        if attribute[1].lower() == "href" and not href:
            href = _decode((attribute[2] or "").strip("\"'"))
        end = attribute.end()
    end = _end_of(source, ">", end)
    if tag in FILTERED_TAGS:
        return Piece("text", source[start:end]), end
    return Piece(kind, tag, href if tag == "a" else ""), end


def _end_of(source: str, mark: str, start: int) -> int:
    at = source.find(mark, start)
    return len(source) if at < 0 else at + len(mark)


def _decode(text: str) -> str:
    return _ENTITY.sub(lambda match: html.unescape(match[0]), text) if "&" in text else text
