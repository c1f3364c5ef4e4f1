"""Reads Markdown as GitHub does: prose, code, quotes, links and sentences, without mail footers and pasted lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import islice, pairwise
from typing import Any, NamedTuple

from markdown_it import MarkdownIt
from markdown_it.rules_block import StateBlock, table
from markdown_it.token import Token

from bot.reading import html
from bot.reading.html import ALERT, HtmlPage, HtmlParts, TextRun

MAX_SENTENCE_CHARS = 2_000
"""Maximum characters read of one sentence. Bounds the search for phrases; no real sentence is this long."""

MAX_CHARS = 65_536
"""Maximum characters read of a text: the longest comment that GitHub promises to accept. The rest is cut off."""

MAX_CELLS = MAX_CHARS // 2
"""Maximum table cells read in one text: as many as can be written in it.

The parser pads rows to the width of their table: without a limit, 64 KB of short rows under wide headings would
become millions of cells.
"""


def _table(state: StateBlock, first: int, after: int, silent: bool) -> bool:
    """The parser's rule for a table, stopping before the row that would exceed MAX_CELLS cells in the text."""
    if not table(state, first, after, True):
        return False
    delimiters = state.src[state.bMarks[first + 1] + state.tShift[first + 1] : state.eMarks[first + 1]]
    columns = delimiters.strip().strip("|").count("|") + 1
    remaining = state.env.get("cells", MAX_CELLS)
    rows = remaining // columns
    if not silent and rows:
        table(state, first, min(after, first + 1 + rows), False)
        state.env["cells"] = remaining - columns * (state.line - first - 1)
    return bool(rows)


def markdown_parser() -> MarkdownIt:
    """A parser for Markdown as GitHub has it.

    Its time for nested brackets grows with ``maxNesting``; anything nested deeper (a list in ten lists) is not read.
    """
    parser = MarkdownIt("commonmark", {"html": True, "maxNesting": 20}).enable(["table", "strikethrough"])
    parser.block.ruler.at("table", _table, {"alt": ["paragraph", "reference"]})
    return parser


_PARSER = markdown_parser()
_BLOCK_PARSER = markdown_parser().disable(["inline", "text_join"])
"""Finds blocks without reading what is in them: much less work for whoever needs only a few of them."""

_CDATA, _MAX_CDATA, _MAX_UNCLOSED_BRACKETS = "<![CDATA[", 100, 20
_BRACKET = re.compile(r"\\[\\\[\]]|[\[\]]")
"""A bracket, or a backslash with what it escapes."""

_QUOTE_OR_CODE = frozenset({"blockquote", "pre", "code", "tt"})
_TAG_LINE = re.compile(r"[ \t>]*</?[A-Za-z][A-Za-z0-9-]*(?:\s[^<>]*|/)?>[ \t]*$")
_UNREADABLE = re.compile("[\0\ud800-\udfff]")
_NEWLINE = re.compile(r"\r\n?")
_BLANK_LINE = re.compile(r"\n[ \t]*(?=\n)")
_MARKUP = re.compile(
    r"[`*<\\]|~~|\]\(|\]:|&[#A-Za-z]|(?<!\w)_|_(?!\w)|[^\S \n\t]"
    r"|^ {0,3}(?:[-+=#>|:]|[0-9]{1,9}[.)])|^ {4}|^ *\t",
    re.MULTILINE,
)
"""Anything that makes Markdown more than paragraphs. Text without it (half of all comments) skips the parser."""

_SENTENCE_END = re.compile(r"""(?<![.!?])[.!?]++["'”’»)\]*_`]*+(?=\s)|[。！？｡]++[」』”’）]*+""")
_CLOSERS = "\"'”’»)]*_`」』）"
_SPACE = re.compile(r"\s+")
_LAST_WORD = re.compile(r"[^\s(\[\"'“‘]*\Z")
_LOOKBACK_CHARS = 40
_ABBREVIATIONS = frozenset(
    {"e.g", "i.e", "a.k.a", "w.r.t", "cf", "vs", "approx", "resp", "incl", "excl", "viz", "est", "dept"}
    | {"mr", "mrs", "ms", "dr", "prof", "st", "jr", "sr", "jan", "feb", "aug", "sep", "sept", "oct", "nov", "dec"}
)
_NUMBER_ABBREVIATIONS = frozenset({"no", "nos", "nr", "sec", "ch", "fig", "figs", "eq", "vol", "ver", "pp", "p", "ca"})
_FINAL_ABBREVIATIONS = frozenset({"etc", "al", "inc", "ltd", "corp"})


@dataclass(frozen=True)
class MarkdownDocument:
    """A Markdown text, parsed once on first access."""

    source: str

    @cached_property
    def _parts(self) -> HtmlParts:
        return _read_markup(self.source) if _MARKUP.search(self.source) else _read_plain(self.source)

    @property
    def prose(self) -> tuple[str, ...]:
        """Visible paragraphs, list items and table rows: no headings, quotes, code blocks or comments.

        Inline code stays in as its text; lines keep their breaks.
        """
        return tuple(self._parts.prose)

    @property
    def code(self) -> tuple[str, ...]:
        """Fenced, indented and ``<pre>`` blocks outside quotes, without surrounding newlines."""
        return tuple(self._parts.code)

    @property
    def quotes(self) -> tuple[str, ...]:
        """The text of each outermost block quote, code included; an empty line separates its paragraphs."""
        return tuple(self._parts.quotes)

    @property
    def inline_code(self) -> tuple[str, ...]:
        """Code spans outside quotes."""
        return tuple(self._parts.inline_code)

    @property
    def links(self) -> tuple[tuple[str, str], ...]:
        """The text and target of each link that is not a bare URL, quotes included."""
        return tuple(self._parts.links)

    @property
    def runs(self) -> tuple[TextRun, ...]:
        """Text nodes and link targets in document order, quotes included. References are found in these."""
        return tuple(self._parts.runs)


class Heading(NamedTuple):
    """A heading on the lines from ``first`` up to but excluding ``after``, counted from 0."""

    level: int
    text: str
    first: int
    after: int


class Paragraph(NamedTuple):
    """A paragraph or heading outside quotes. ``first`` is the number of its first line, counted from 0.

    ``typed`` are its source lines, list marks included; ``shown`` are the lines as a reader sees them, except those
    that begin with code, emphasis or a tag.
    """

    first: int
    typed: tuple[str, ...]
    shown: tuple[str, ...]


@lru_cache(maxsize=256)
def read(text: str) -> MarkdownDocument:
    """The first MAX_CHARS characters as a document; NULs and lone surrogates become U+FFFD. Never raises."""
    return MarkdownDocument(readable(text))


def readable(text: str) -> str:
    """The part of a text that is read, with ``\\n`` as the only line break."""
    return _NEWLINE.sub("\n", _UNREADABLE.sub("\ufffd", text[:MAX_CHARS]))


def heading_lines(source: str, limit: int) -> list[Heading]:
    """The first ``limit`` headings of a `readable` text outside quotes, lists and HTML, in order.

    Texts are as a browser shows them, without markup and images.
    """
    if not _MARKUP.search(source):
        return []
    definitions: dict[str, Any] = {}
    tokens = _BLOCK_PARSER.parse(limit_openings(source), definitions)
    headings = (
        Heading(int(token.tag[1:]), _heading_text(inline.content, definitions), token.map[0], token.map[1])
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    )
    return list(islice(headings, limit))


def _heading_text(content: str, definitions: dict[str, Any]) -> str:
    (inline,) = _PARSER.parseInline(content, definitions)
    return _visible_text(inline.children or [])


def paragraphs(source: str) -> list[Paragraph]:
    """The paragraphs and headings of a `readable` text outside quotes, code and hidden comments, in order.

    Nothing after a fence, tag or hidden comment that its quotation or list left open, nor after indented lines that may
    continue a quotation: people, mail programs and parsers see the ends of these in different places.
    """
    rows, quotes, opened = source.split("\n"), 0, Counter[str]()
    result: list[Paragraph] = []
    for token in _PARSER.parse(limit_openings(source)):
        if _is_doubtful(token, rows):
            break
        if token.type in ("blockquote_open", "blockquote_close"):
            quotes += token.nesting
        elif token.type == "html_block":
            _count_elements(opened, token.content)
        elif token.type == "inline" and token.map:
            first, after = token.map
            is_hidden, shown = quotes or any(opened.values()), tuple(_plain_lines(token.children or [], opened))
            if is_hidden or (result and result[-1].first == first):
                continue  # another cell of the same table row
            result.append(Paragraph(first, tuple(rows[first:after]), shown))
    return result


def _is_doubtful(token: Token, rows: list[str]) -> bool:
    """Whether readers may see its end elsewhere: a fence or HTML that nothing closes, code directly below a text, and a
    tag alone on a line that continues a quotation or list, which is HTML only for GitHub."""
    first, after = token.map or (0, 0)
    match token.type:
        case "html_block":
            return html.is_unfinished(token.content)
        case "inline":
            is_open = any(child.type == "text" and "<!--" in child.content for child in token.children or ())
            return is_open or (token.level > 1 and any(map(_TAG_LINE.match, rows[first + 1 : after])))
        case "fence":
            return token.content.count("\n") == after - first - 1
    return token.type == "code_block" and first > 0 and bool(rows[first - 1].strip())


def _plain_lines(children: list[Token], opened: Counter[str]) -> Iterator[str]:
    begins, shown = "", ""
    for token in (*children, None):
        if token is None or token.type in ("softbreak", "hardbreak"):
            if begins == "text":
                yield shown
            begins = shown = ""
            continue
        begins = begins or ("code" if any(opened.values()) else token.type)
        if token.type == "html_inline":
            _count_elements(opened, token.content)
        shown += token.content if token.type in ("text", "code_inline") else ""


def _count_elements(opened: Counter[str], source: str) -> None:
    """Count the quotes and code elements that raw HTML opens and closes, which does not end with a paragraph."""
    for kind, name, _ in html.pieces(source):
        if name in _QUOTE_OR_CODE and kind != "text":
            opened[name] = max(0, opened[name] + (1 if kind == "open" else -1))


def _visible_text(children: list[Token]) -> str:
    shown = {"text", "code_inline"}
    return "".join(
        token.content if token.type in shown else " " if token.type.endswith("break") else "" for token in children
    ).strip()


def first_paragraph(text: str) -> str:
    """The first prose paragraph of a Markdown text, "" if it has none."""
    return next(iter(read(text).prose), "")


def sentences(paragraph: str) -> list[str]:
    """The sentences of one plain paragraph in order, white space collapsed, none of them empty.

    A full stop ends a sentence only before white space, and not after an abbreviation ("e.g."), an initial or a list
    number, so versions, file names and addresses stay whole. CJK stops need no space after them. A sentence longer than
    2,000 characters is cut there.
    """
    text = _SPACE.sub(" ", paragraph).strip()
    result, start = [], 0
    for end in _SENTENCE_END.finditer(text):
        if _ends_sentence(text, end):
            result.append(text[start : end.end()].strip())
            start = end.end()
    result.append(text[start:].strip())
    return [sentence[:MAX_SENTENCE_CHARS].rstrip() for sentence in result if sentence]


def _ends_sentence(text: str, end: re.Match[str]) -> bool:
    stop = end[0].rstrip(_CLOSERS)
    following = text[end.end() + 1 : end.end() + 2]
    if stop == ".":
        return not _is_abbreviation(text, end.start(), following)
    is_aside = set(stop) == {"."} or stop != end[0]  # an ellipsis, or the end of something quoted
    return not (is_aside and following.islower())


def _is_abbreviation(text: str, stop: int, following: str) -> bool:
    """Whether the full stop at ``stop`` belongs to the word before it; ``following`` begins the next word."""
    match = _LAST_WORD.search(text, max(0, stop - _LOOKBACK_CHARS), stop)
    word = match[0] if match else ""
    lowered = word.lower()
    if lowered in _NUMBER_ABBREVIATIONS:
        return following.isdigit() or following == "#"
    if lowered in _FINAL_ABBREVIATIONS:
        return not following.isupper()
    is_initial = len(word) == 1 and word.isupper() and word != "I" and following.isupper()
    is_list_number = word.isdigit() and stop == len(word)
    return lowered in _ABBREVIATIONS or is_initial or is_list_number


def _read_plain(source: str) -> HtmlParts:
    parts = HtmlParts()
    for block in _BLANK_LINE.sub("\n", source).split("\n\n"):
        paragraph = "\n".join(line.strip() for line in block.strip().split("\n"))
        if paragraph:
            parts.prose.append(paragraph)
            parts.add_text(paragraph)
            parts.add_gap()
    return parts


def limit_openings(source: str) -> str:
    """Defuses openings without an end, for which the parser would scan to the end of the text again and again."""
    if source.count(_CDATA) > _MAX_CDATA:
        source = source.replace(_CDATA, "&lt;![CDATA[")
    if source.count("[") - source.count("]") > _MAX_UNCLOSED_BRACKETS:
        brackets = Counter(match[0] for match in _BRACKET.finditer(source))
        if brackets["["] - brackets["]"] > _MAX_UNCLOSED_BRACKETS:
            source = _BRACKET.sub(lambda match: "&#91;" if match[0] == "[" else match[0], source)
    return source


def _read_markup(source: str) -> HtmlParts:
    page, tokens = HtmlPage(), _PARSER.parse(limit_openings(source))
    for index, token in enumerate(tokens):
        match token.type:
            case "inline":
                _read_inline(page, token.children or [])
            case "fence" | "code_block":
                page.add_code(token.content)
            case "html_block":
                page.html(token.content)
                page.end_block()
            case "blockquote_open":
                page.open_quote(alert=_is_alert(tokens[index + 1 : index + 3]))
            case "blockquote_close":
                page.close_quote()
            case "heading_open":
                page.open_heading(underlined=not token.markup.startswith("#"))
            case "td_open" | "th_open":
                pass
            case "td_close" | "th_close":
                page.end_cell()
            case _:
                page.end_block()
    return page.finish()


def _read_inline(page: HtmlPage, children: list[Token]) -> None:
    for token in children:
        match token.type:
            case "text":
                page.text(token.content)
            case "softbreak" | "hardbreak":  # in GitHub comments both are line breaks
                page.text("\n")
            case "code_inline":
                page.open_code()
                page.text(token.content)
                page.close_code()
            case "link_open":
                page.open_link(str(token.attrs.get("href", "")))
            case "link_close":
                page.close_link()
            case "html_inline":
                page.html(token.content)
            case _:
                page.end_node()


def _is_alert(tokens: list[Token]) -> bool:
    return [token.type for token in tokens] == ["paragraph_open", "inline"] and bool(ALERT.match(tokens[1].content))


_STRIKETHROUGH = re.compile(r"~~[^~\n]{1,2000}~~")
# Some people wrap lines by hand, others write one statement per line: a line that begins like a sentence is one.
_STATEMENT_BREAK = re.compile(r"\n(?=[A-Z*#@`(\[\u00c0-\U0010ffff-])")


def statements(text: str) -> tuple[str, ...]:
    """The sentences of the prose of ``text`` in order, white space collapsed.

    Leaves out quotes, code blocks, headings, hidden comments and struck-out text.
    """
    if "~~" in text:
        text = _STRIKETHROUGH.sub(" ", text)
    lines = (line for paragraph in read(text).prose for line in _STATEMENT_BREAK.split(_strip_lines(paragraph)))
    return tuple(sentence for line in lines for sentence in sentences(line))


def _strip_lines(paragraph: str) -> str:
    """The paragraph without empty lines and without white space around its lines."""
    return "\n".join(line for row in paragraph.split("\n") if (line := row.strip()))


OMISSION_MARK = "[…] "
"""Marks where a text was cut."""

_MAX_WORD_CHARS = 40


def tail(text: str, limit: int, *, is_cut: bool = False) -> str:
    """At most the last ``limit`` characters, starting at a word, with `OMISSION_MARK` in front if something was cut.

    ``is_cut``: ``text`` itself is the end of a longer text.
    """
    if len(text) <= limit and not is_cut:
        return text
    begin = max(0, len(text) - max(0, limit - len(OMISSION_MARK)))
    space = _SPACE.search(text, begin, begin + _MAX_WORD_CHARS) if begin and not text[begin - 1].isspace() else None
    return OMISSION_MARK + text[space.end() if space else begin :].lstrip()


_MAIL_HINTS = ("wrote:", "Sent from my ", "Reply to this email", "Sent via ")
_SIGNATURE = re.compile(r"[ \t]*Sent (?:from my|via) \S", re.ASCII)
_FOOTER = re.compile(r"[ \t]*Reply to this email directly(?:,| or) view it on GitHub")
_ATTRIBUTION = re.compile(r"[ \t]*(?:On|Am|Le|El) [^\n]{0,160}\d[^\n]{0,240}\bwrote:[ \t\r]*$", re.ASCII)
_SEPARATOR_LINES = frozenset({"", "-", "--", "---", "—", "–"})


def without_mail(text: str) -> str:
    """``text`` without its mail signature, the quoted lines it answers and the notification footer; unchanged if
    nothing else would be left. Linear in its length."""
    if not any(mark in text for mark in _MAIL_HINTS):
        return text
    lines = text.split("\n")
    own = _without_quoted_mail(lines[: _mail_end(lines)])
    while own and own[-1].strip() in _SEPARATOR_LINES:
        own.pop()
    return "\n".join(own).strip() or text


def _mail_end(lines: list[str]) -> int:
    """Where the signature or the footer begins. An unquoted footer also drops the unquoted mail above it."""
    first = None
    for at, line in enumerate(lines):
        if first is None and _is_attribution(lines, at):
            first = at
        if _SIGNATURE.match(line):
            return at
        if _FOOTER.match(line):
            return at if first is None else first
    return len(lines)


def _without_quoted_mail(lines: list[str]) -> list[str]:
    """The lines without attributions ("On …, … wrote:") and the quotations below them."""
    kept: list[str] = []
    is_quoted = False
    for at, line in enumerate(lines):
        if _is_attribution(lines, at):
            is_quoted = True
        elif is_quoted and line.strip() and line.lstrip()[:1] != ">" and not _is_attribution(lines, at - 1):
            is_quoted = False
        if not is_quoted:
            kept.append(line)
    return kept


def _is_attribution(lines: list[str], at: int) -> bool:
    """Whether this line, alone or with the next one, says who wrote what follows."""
    if lines[at].lstrip()[:3] not in ("On ", "Am ", "Le ", "El "):
        return False
    return bool(_ATTRIBUTION.match(lines[at]) or _ATTRIBUTION.match(" ".join(lines[at : at + 2])))
