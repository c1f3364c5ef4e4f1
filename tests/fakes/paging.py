"""Pages of lists: ``per_page``, ``page`` and cursors, with `Link` headers as on GitHub."""

from __future__ import annotations

import base64
import bisect
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import parse_qsl, urlencode

from tests.fakes.exchange import Call, Refusal, Reply

T = TypeVar("T")

MAX_PAGES = 100
TOO_DEEP = (
    "Pagination with the page parameter is not supported for large datasets, "
    "please use cursor based pagination (after/before)"
)


@dataclass(frozen=True)
class Window:
    """The requested part of a list."""

    size: int
    page: int

    @property
    def start(self) -> int:
        return (self.page - 1) * self.size


def window_of(call: Call) -> Window:
    """``per_page`` is 30 by default and at most 100; anything but a number is ignored."""
    return Window(min(_positive(call.query.get("per_page"), 30), 100), _positive(call.query.get("page"), 1))


def _positive(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and int(text) > 0 else default


def page_reply(call: Call, items: Sequence[T], shape: Callable[[T], Any]) -> Reply:
    """A page by number, with links to the next, last, first and previous page."""
    window = window_of(call)
    shown = items[window.start : window.start + window.size]
    last = max(1, -(-len(items) // window.size))
    links: dict[str, dict[str, str | None]] = {}
    if window.page < last:
        links |= {"next": {"page": str(window.page + 1)}, "last": {"page": str(last)}}
    if window.page > 1:
        links |= {"first": {"page": "1"}, "prev": {"page": str(window.page - 1)}}
    return Reply(200, [shape(item) for item in shown], link_header(call, links))


@dataclass(frozen=True)
class KeyedList(Generic[T]):
    """A sorted list and its unique keys, ascending unless it is ``descending``."""

    keys: list[str]
    items: list[T]
    descending: bool = False

    @classmethod
    def sort(cls, items: Iterable[T], key: Callable[[T], str], descending: bool = False) -> KeyedList[T]:
        pairs = sorted(((key(item), item) for item in items), key=lambda pair: pair[0], reverse=descending)
        return cls([pair[0] for pair in pairs], [pair[1] for pair in pairs], descending)

    def after(self, cursor: str) -> int:
        """The index after the cursor, even if the item of the cursor is gone."""
        if self.descending:
            return len(self.keys) - bisect.bisect_left(self.keys[::-1], cursor)
        return bisect.bisect_right(self.keys, cursor)


def cached_view(call: Call, name: object, make: Callable[[], KeyedList[T]]) -> KeyedList[T]:
    """A sorted list, cached until the state changes: for a client that reads a thousand pages it is sorted once."""
    cached = call.server.views.get(name)
    if cached is None or cached[0] != call.world.version:
        cached = call.server.views[name] = (call.world.version, make())
    listed: KeyedList[T] = cached[1]
    return listed


def cursor_reply(call: Call, listed: KeyedList[T], shape: Callable[[T], Any]) -> Reply:
    """A page of a list that may be large: its link has a cursor, and page numbers end at 100."""
    window = window_of(call)
    after = call.query.get("after")
    if after is None and window.page > MAX_PAGES:
        raise Refusal(422, TOO_DEEP)
    try:
        start = window.start if after is None else listed.after(decode_cursor(after))
    except ValueError:
        raise Refusal(422, "The cursor is not valid") from None
    end = start + window.size
    links: dict[str, dict[str, str | None]] = {}
    if end < len(listed.items):
        links["next"] = {"after": encode_cursor(listed.keys[end - 1]), "page": str(window.page + 1)}
    if start > 0 and window.page > 1:
        links["prev"] = {"page": str(window.page - 1), "after": None}
    return Reply(200, [shape(item) for item in listed.items[start:end]], link_header(call, links))


def encode_cursor(key: str) -> str:
    return base64.urlsafe_b64encode(f"cursor:v2:{key}".encode()).decode()


def decode_cursor(cursor: str) -> str:
    """The key of a cursor; ValueError if it is none."""
    return base64.urlsafe_b64decode(cursor).decode().removeprefix("cursor:v2:")


def link_header(call: Call, links: dict[str, dict[str, str | None]]) -> dict[str, str]:
    """Links to pages under ``/repositories/{id}/``, whatever name the request used."""
    parts = []
    for relation, changes in links.items():
        query = dict(parse_qsl(call.request.query, keep_blank_values=True)) | changes
        parameters = urlencode({name: value for name, value in query.items() if value is not None})
        parts.append(f'<{call.request.base}{by_id(call)}?{parameters}>; rel="{relation}"')
    return {"Link": ", ".join(parts)} if parts else {}


def by_id(call: Call) -> str:
    if "repo" not in call.params:
        return call.request.path
    rest = call.request.path.split("/", 4)[4:]
    repo_id = call.world.names[f"{call.params['owner']}/{call.params['repo']}".lower()]
    return "/".join([f"/repositories/{repo_id}", *rest])
