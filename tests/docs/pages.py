"""Reads Markdown pages for the tests of the documentation: prose, blocks, headings, tables and links."""

from __future__ import annotations

import argparse
import re
import subprocess
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token

from bot.cli.parser import parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
"""Pages for users, linked from the map."""

ALSO = sorted(
    path
    for folder in ("skills", "sample", "bench", "tests", "deploy", ".github")
    for path in (ROOT / folder).rglob("*.md")
    if not {"snapshots", "wiki", "docs", ".demo"} & {*path.relative_to(ROOT).parts}
)
"""Pages for others, whose links must lead somewhere too; not the pages of the made-up repository."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Link(NamedTuple):
    """The target of a link or image; ``alt`` describes the image (None for a link)."""

    target: str
    alt: str | None = None


def text(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def prose(page: Path) -> str:
    """A page without its fenced blocks."""
    return FENCE.sub("", page.read_text(encoding="utf-8"))


def blocks(page: str | Path, *languages: str) -> list[str]:
    """The fenced blocks of a page that are in one of these languages ("" for none)."""
    content = (ROOT / page).read_text(encoding="utf-8")
    return [body for language, body in FENCE.findall(content) if language in languages]


def code_of(page: Path) -> str:
    """All code of a page, in blocks and inline."""
    fenced = FENCE.findall(page.read_text(encoding="utf-8"))
    return "\n".join([*(body for _, body in fenced), *CODE.findall(prose(page))])


def section(page: str, heading: str, part: str = "") -> str:
    """The text below a heading of the second level; with ``part``, only that below this heading of the third level."""
    found = text(page)
    for level, name in (("##", heading), ("###", part)):
        if name:
            parts = re.split(rf"^{level} (.+)$", found, flags=re.MULTILINE)
            sections = dict(zip(parts[1::2], parts[2::2], strict=True))
            assert name in sections, f"{page} has no heading {name!r}"
            found = sections[name]
    return found


def rows(markdown: str) -> list[list[str]]:
    """The table rows whose first cell begins with code; a bar in a cell is written ``\\|``."""
    lines = [line for line in markdown.splitlines() if line.startswith("| `")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def table(markdown: str) -> set[str]:
    """The code in the first column of the tables."""
    return {name for row in rows(markdown) for name in CODE.findall(row[0])}


def parsers(of: argparse.ArgumentParser | None = None) -> dict[str, argparse.ArgumentParser]:
    """Name → parser of all commands, or of the subcommands of one; aliases are left out."""
    groups = [each for each in (of or parser())._actions if isinstance(each, argparse._SubParsersAction)]
    pairs = [(name, command) for group in groups for name, command in group.choices.items()]
    return {name: command for name, command in pairs if command.prog.split()[-1] == name}


# -- links ---------------------------------------------------------------------------------------------------------


def links(page: Path) -> list[Link]:
    """All links and images of a page, in Markdown and HTML; the text may span several lines."""
    result = []
    for token in _tokens(page):
        if token.type == "link_open":
            result.append(Link(str(token.attrs["href"])))
        elif token.type == "image":
            result.append(Link(str(token.attrs["src"]), token.content))
        elif token.type in ("html_inline", "html_block"):
            result += _in_html(token.content)
    return result


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments that GitHub gives the headings of a page, and the anchors written as HTML.

    Lower case, no punctuation, hyphens for spaces; the second heading with the same words gets ``-1``.
    """
    fragments = set(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))
    for heading in _headings(page):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        fragments.add(next(name for name in _numbered(plain) if name not in fragments))
    return frozenset(fragments)


def _numbered(name: str) -> Iterator[str]:
    yield name
    for number in range(1, 1_000):
        yield f"{name}-{number}"


def _headings(page: Path) -> Iterator[str]:
    tokens = _MARKDOWN.parse(_content(page))
    for before, token in pairwise(tokens):
        if before.type == "heading_open":
            yield "".join(each.content for each in token.children or [] if each.type in ("text", "code_inline"))


def _content(page: Path) -> str:
    """A page without the front matter of a skill."""
    return re.sub(r"\A---\n.*?^---\n", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _tokens(page: Path) -> Iterator[Token]:
    for token in _MARKDOWN.parse(_content(page)):
        yield token
        yield from token.children or []


class _LinkReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.collected: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.collected.append(Link(attributes["src"], attributes.get("alt", "")))
        for name in ("href", "srcset"):
            if name in attributes:
                self.collected.append(Link(attributes[name]))


def _in_html(html: str) -> list[Link]:
    reader = _LinkReader()
    reader.feed(html)
    return reader.collected


@cache
def tracked(*names: str) -> tuple[Path, ...]:
    """The repository's files at and below these paths; in a copy without `.git`, all files there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *names]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if (ROOT / ".git").exists() and result.returncode == 0:
        return tuple(path for name in result.stdout.decode().split("\0")[:-1] if (path := ROOT / name).is_file())
    candidates = [path for folder in names for path in (ROOT / folder, *(ROOT / folder).rglob("*"))]
    return tuple(sorted({path for path in candidates if path.is_file() and "__pycache__" not in path.parts}))
