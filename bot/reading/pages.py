"""Pages: their ids (``docs:docs/setup.md``, ``wiki:Home``, ``releases:v2.3.0``), addresses, sections and anchors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import quote

from bot.domain.thread import ThreadId
from bot.reading.markdown import Heading, heading_lines, read, readable, sentences
from bot.reading.text_edges import cut_at_edge

DOCS, WIKI, RELEASES = SOURCES = ("docs", "wiki", "releases")
"""The sources of pages; page ids start with their source."""

MAX_ID_CHARS = 200
"""Longest id of a page, in characters."""


def page_key(source: str, name: str) -> str | None:
    """The id of a page, from a file's path, a wiki page's name or a release's tag; None if the name cannot be an id."""
    key = f"{source}:{name}"
    return key if name not in ("", ".", "..") and len(key) <= MAX_ID_CHARS and name.isprintable() else None


def source_of(key: ThreadId) -> str | None:
    """The source of the page with this id, None if it is no page id."""
    source, colon, name = key.partition(":") if isinstance(key, str) else ("", "", "")
    return source if colon and name and source in SOURCES else None


def page_url(key: ThreadId, server: str, repo: str | None, anchor: str = "") -> str:
    """The address of a page, or of its section, on a server such as ``https://github.com``; empty without ``repo``.

    Sections of releases have no address of their own.
    """
    source = source_of(key)
    if source is None or not repo:
        return ""
    name = quote(str(key).partition(":")[2], safe="/" if source == DOCS else "")
    path = {DOCS: "blob/HEAD", WIKI: "wiki", RELEASES: "releases/tag"}[source]
    fragment = f"#{quote(anchor, safe='')}" if anchor and source != RELEASES else ""
    return f"{server}/{repo}/{path}/{name}{fragment}"


MAX_SECTIONS = 1_000
MAX_EXCERPT_CHARS = 280
"""Longest excerpt, in characters."""

_CELL_SEPARATOR = " | "
"""The separator of cells in a table."""

_ANCHOR_CATEGORIES = frozenset({"Nd", "Nl", "Pc"})
_FRONT_MATTER = re.compile(r"---[ \t]*\n(?:(?!---[ \t]*(?:\n|\Z)).*\n)*---[ \t]*(?:\n|\Z)")
_YAML_TITLE = re.compile(r"^title[ \t]*:[ \t]*([^\n]{1,300})$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class MarkdownSection:
    """The Markdown between a heading and the next one, whatever their levels.

    ``path`` holds its own heading and those above it, outermost first; ``anchor`` is the fragment of its address. Both
    are empty for text before the first heading.
    """

    path: tuple[str, ...]
    anchor: str
    text: str


def sections(markdown: str) -> tuple[MarkdownSection, ...]:
    """The sections of a page in order, at most MAX_SECTIONS.

    Headings in code, quotes, lists and HTML do not count. YAML at the beginning of the page is skipped.
    """
    text = _without_front_matter(readable(markdown))
    lines, headings = text.split("\n"), heading_lines(text, MAX_SECTIONS)
    ends = [*(heading.first for heading in headings), len(lines)]
    first = MarkdownSection((), "", "\n".join(lines[: ends[0]]).strip())
    result = [first] if first.text else []
    for path, anchor, heading, end in zip(_paths(headings), _anchors(headings), headings, ends[1:], strict=True):
        result.append(MarkdownSection(path, anchor, "\n".join(lines[heading.after : end]).strip()))
    return tuple(result)


def page_title(markdown: str) -> str:
    """The title of a page from its first heading or the YAML before it, empty if it has neither."""
    text = readable(markdown)
    front = _FRONT_MATTER.match(text)
    yaml_title = _YAML_TITLE.search(front[0]) if front else None
    first = next(iter(heading_lines(_without_front_matter(text), 1)), None)
    if first is not None and first.level == 1 and first.text:
        return " ".join(first.text.split())
    return yaml_title[1].strip().strip("\"'") if yaml_title else ""


def first_sentences(section: MarkdownSection, limit: int = MAX_EXCERPT_CHARS) -> str:
    """The first whole sentences of a section, at most ``limit`` characters; a longer sentence is cut and ends in ``…``.

    For a section without prose, its first block of code on one line.
    """
    document = read(section.text)
    paragraphs = [paragraph for paragraph in document.prose if _CELL_SEPARATOR not in paragraph] or list(document.prose)
    excerpt = ""
    for sentence in (sentence for paragraph in paragraphs[:5] for sentence in sentences(paragraph)):
        longer = f"{excerpt} {sentence}".strip()
        if len(longer) > limit:
            return excerpt or _truncate(longer, limit)
        excerpt = longer
    return excerpt or _truncate(next((" ".join(code.split()) for code in document.code), ""), limit)


def anchor_of(heading: str) -> str:
    """The fragment that GitHub makes from a heading's text: lower case, only word characters and hyphens.

    https://github.com/gjtorikian/html-pipeline (its table of contents) and https://github.com/Flet/github-slugger,
    whose test cases come from the site.
    """
    return "".join("-" if char == " " else char for char in heading.lower() if _is_anchor_char(char))


def _is_anchor_char(char: str) -> bool:
    kind = unicodedata.category(char)
    return char in " -" or kind[0] in "LM" or kind in _ANCHOR_CATEGORIES


def _anchors(headings: Iterable[Heading]) -> list[str]:
    """The anchors of these headings; repeated ones get the next free number."""
    repeats: dict[str, int] = {}
    anchors = []
    for heading in headings:
        base = anchor = anchor_of(heading.text)
        while anchor in repeats:
            repeats[base] += 1
            anchor = f"{base}-{repeats[base]}"
        repeats[anchor] = 0
        anchors.append(anchor)
    return anchors


def _paths(headings: Iterable[Heading]) -> list[tuple[str, ...]]:
    above: list[Heading] = []
    paths = []
    for heading in headings:
        above = [*(one for one in above if one.level < heading.level), heading]
        paths.append(tuple(" ".join(one.text.split()) for one in above))
    return paths


def _without_front_matter(text: str) -> str:
    front = _FRONT_MATTER.match(text)
    return text[front.end() :] if front else text


def _truncate(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    head = text[: limit - 1]
    return f"{head[: head.rfind(' ')]}…" if " " in head[limit // 2 :] else cut_at_edge(text, limit)


_UPGRADE_HEADING = re.compile(
    r"\b(?:breaking|incompatible|upgrad(?:e|es|ing)|migrat(?:e|ing|ions?)|update notes?|before you update)\b",
    re.IGNORECASE,
)
_NO_ACTION = re.compile(
    r"\W*(?:no\b(?! (?:longer|more)\b)|none\b(?! of\b)|nothing\b|n/?a\b"
    r"|not (?:applicable|needed|necessary|required)\b)",
    re.IGNORECASE,
)
"""The beginning of a note that there is nothing to do."""


def upgrade_note(release: str) -> str:
    """The first sentences below the first heading about upgrading or breaking changes, "" if there are none or nothing
    needs to be done."""
    for section in sections(release):
        heading = section.path[-1] if section.path else ""
        if not _UPGRADE_HEADING.search(heading) or _NO_ACTION.match(heading):
            continue
        if (note := first_sentences(section)) and not _NO_ACTION.match(note):
            return note
    return ""
