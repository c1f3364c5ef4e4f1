"""Shows posts as GitHub would: one self-contained HTML page that looks like an issue, for people and screenshots.

Posts are shown as in a report (`bot.comment.shown`). The page holds no script and loads nothing, which its
Content-Security-Policy enforces, so a flaw in it does no harm.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from html.parser import HTMLParser
from pathlib import Path

from jinja2 import Environment, FileSystemLoader
from markupsafe import Markup

from bot.comment.shown import shown_html

REPOSITORY = "octo-org/linkbarn"

REFERENCE = re.compile(
    r"(?<![\w&/#@.-])(?:#(?P<number>[0-9]{1,9})|@(?P<login>[a-z0-9](?:[a-z0-9-]{0,38})(?:/[\w-]{1,99})?))(?![\w-])",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class PageComment:
    """The opening text of an issue, or a comment."""

    author: str
    text_markdown: str
    when: datetime
    is_bot: bool = False


def page(posts: Sequence[PageComment], title: str, number: int, repository: str = REPOSITORY) -> str:
    """An HTML document showing the open issue ``number`` with these posts, the opening one first.

    It depends on nothing outside itself and follows the reader's light or dark preference. Its only URLs are the
    targets of links.
    """
    return _document(posts=posts, title=title, number=number, repository=repository)


def comment(post: PageComment, repository: str = REPOSITORY) -> str:
    """An HTML document showing one comment and nothing around it."""
    return _document(posts=[post], title="A comment", number=None, repository=repository)


def _document(**values: object) -> str:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, trim_blocks=True, keep_trailing_newline=True
    )
    template = environment.get_template("preview.html.j2")
    return _printable(template.render(values, body=lambda *words: Markup(body(*words)), avatar=_avatar))


def body(markdown: str, repository: str = REPOSITORY) -> str:
    """The HTML of one post, with its references linked, as inside the page. Never raises, whatever the text."""
    return _link_references(shown_html(markdown), repository)


def _printable(text: str) -> str:
    """The text without characters that HTML cannot hold: NUL and lone surrogates become the replacement character."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").replace("\0", "\ufffd")


class _Linker(HTMLParser):
    """Rewrites the HTML with links for ``#N`` and ``@login`` outside links and code."""

    PLAIN = frozenset({"a", "code"})

    def __init__(self, repository: str) -> None:
        super().__init__(convert_charrefs=False)
        self.repository = repository
        self.out: list[str] = []
        self.plain = 0

    def handle_starttag(self, tag: str, attrs: object) -> None:  # noqa: ARG002 - as the parser calls it
        self.plain += tag in self.PLAIN
        self.out.append(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        self.plain -= tag in self.PLAIN
        self.out.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        self.out.append(data if self.plain else REFERENCE.sub(self._link, data))

    def handle_entityref(self, name: str) -> None:
        self.out.append(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self.out.append(f"&#{name};")

    def _link(self, match: re.Match[str]) -> str:
        if number := match["number"]:
            return f'<a href="https://github.com/{escape(self.repository)}/issues/{number}">#{number}</a>'
        return f'<a class="mention" href="https://github.com/{match["login"]}">@{match["login"]}</a>'


def _link_references(html: str, repository: str) -> str:
    linker = _Linker(repository)
    linker.feed(html)
    linker.close()
    return "".join(linker.out)


def _avatar(login: str) -> dict[str, object]:
    """A mirrored drawing of five by five squares, with a pattern and colour that depend on the login."""
    digest = hashlib.sha256(_printable(login).encode()).digest()
    squares = [(x, y) for y in range(5) for x in range(5) if digest[y * 3 + min(x, 4 - x)] % 2]
    cells = "".join(f"M{x + 1} {y + 1}h1v1h-1z" for x, y in squares)
    return {"cells": cells, "hue": int.from_bytes(digest[-2:], "big") % 360}
