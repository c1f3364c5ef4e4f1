"""The Markdown pages as the tests of the documentation read them: prose, blocks, headings, tables and links."""

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

from bot.cli.main import parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")])
"""What users read, and what the map leads to."""

ALSO = sorted([*(ROOT / "skills").rglob("*.md"), ROOT / "sample/README.md", ROOT / "tests/upgrades/branches/README.md"])
"""Pages for others, whose links have to lead somewhere too."""

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_MARKDOWN = MarkdownIt("commonmark").enable("table")


class Link(NamedTuple):
    """Where something leads; of an image, ``alt`` tells what can be seen there (None for what is no image)."""

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
    """All code of a page, in blocks and in lines."""
    fenced = FENCE.findall(page.read_text(encoding="utf-8"))
    return "\n".join([*(body for _, body in fenced), *CODE.findall(prose(page))])


def section(page: str, heading: str) -> str:
    """The part of a page below a heading of the second level."""
    parts = re.split(r"^## (.+)$", text(page), flags=re.MULTILINE)
    found = dict(zip(parts[1::2], parts[2::2], strict=True))
    assert heading in found, f"{page} has no heading {heading!r}"
    return found[heading]


def rows(markdown: str) -> list[list[str]]:
    """The rows of the tables of which the first cell begins with code; a bar in a cell is written ``\\|``."""
    lines = [line for line in markdown.splitlines() if line.startswith("| `")]
    return [[cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def table(markdown: str) -> set[str]:
    """What stands as code in the first column of the tables."""
    return {name for row in rows(markdown) for name in CODE.findall(row[0])}


def parsers(of: argparse.ArgumentParser | None = None) -> dict[str, argparse.ArgumentParser]:
    """Name → parser of all commands, or of those of one command; a second name of one is left out."""
    groups = [each for each in (of or parser())._actions if isinstance(each, argparse._SubParsersAction)]
    found = [(name, one) for group in groups for name, one in group.choices.items()]
    return {name: one for name, one in found if one.prog.split()[-1] == name}


# -- links ---------------------------------------------------------------------------------------------------------


def links(page: Path) -> list[Link]:
    """All links and images of a page, of Markdown and of HTML, in which the text may go over several lines."""
    found = []
    for token in _tokens(page):
        if token.type == "link_open":
            found.append(Link(str(token.attrs["href"])))
        elif token.type == "image":
            found.append(Link(str(token.attrs["src"]), token.content))
        elif token.type in ("html_inline", "html_block"):
            found += _in_html(token.content)
    return found


@cache
def anchors(page: Path) -> frozenset[str]:
    """The fragments by which GitHub knows the headings of a page, and those that it is given as HTML.

    Small letters, no punctuation, hyphens for spaces; the second heading of the same words gets ``-1``.
    """
    found = set(re.findall(r'<a (?:id|name)="([^"]+)"', prose(page)))
    for heading in _headings(page):
        plain = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found.add(next(name for name in _numbered(plain) if name not in found))
    return frozenset(found)


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
    """A page without the settings that a skill begins with."""
    return re.sub(r"\A---\n.*?^---\n", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def _tokens(page: Path) -> Iterator[Token]:
    for token in _MARKDOWN.parse(_content(page)):
        yield token
        yield from token.children or []


class _Html(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[Link] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "img":
            self.found.append(Link(given["src"], given.get("alt", "")))
        for name in ("href", "srcset"):
            if name in given:
                self.found.append(Link(given[name]))


def _in_html(html: str) -> list[Link]:
    reader = _Html()
    reader.feed(html)
    return reader.found


@cache
def tracked(*places: str) -> tuple[Path, ...]:
    """The files of the repository at and below these places; in a copy without git's folder, all that are there."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *places]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, check=False)
    if (ROOT / ".git").exists() and listed.returncode == 0:
        return tuple(path for name in listed.stdout.decode().split("\0")[:-1] if (path := ROOT / name).is_file())
    found = [path for place in places for path in (ROOT / place, *(ROOT / place).rglob("*"))]
    return tuple(sorted({path for path in found if path.is_file() and "__pycache__" not in path.parts}))
