"""Reads the notes of releases as pages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from bot.domain.thread import GHOST, Kind, Thread, ThreadId
from bot.domain.thread_json import MAX_NAME, MAX_TEXT, MAX_TITLE, clean, parse_time
from bot.reading.pages import RELEASES, page_key
from bot.sources.pages import PageReading, PageStore

MOST = 100
"""Number of newest releases that are read: what GitHub gives in one answer."""


class ReleaseApi(Protocol):
    """The part of GitHub's REST API that is used here."""

    def pages(self, path: str, query: Mapping[str, Any], most: int) -> tuple[list[dict[str, Any]], bool]:
        """Return the items of a list, up to ``most`` pages, and whether these are all. Raises WorldError."""


@dataclass(frozen=True, slots=True)
class ReleasePages:
    """The published releases of ``repo`` (``owner/name``) as pages."""

    api: ReleaseApi
    repo: str
    name: str = RELEASES

    def read(self, known: str, store: PageStore, _: Callable[[str], None]) -> PageReading | None:
        """Read the newest releases; None if nothing has changed. Older stored ones stay."""
        items, is_all = self.api.pages(f"/repos/{self.repo}/releases", {"per_page": MOST}, 1)
        pages = [page for page in map(_page, items) if page is not None]
        state = _state(pages)
        if state == known:
            return None
        older = () if is_all else _older(store, min((page.created_at for page in pages), default=None))
        return PageReading(state, frozenset([*(page.id for page in pages), *older]), tuple(pages))


def _page(item: Mapping[str, Any]) -> Thread | None:
    key = page_key(RELEASES, _text(item.get("tag_name")))
    try:
        published = parse_time(item.get("published_at"))
        updated = parse_time(item.get("updated_at") or item.get("published_at"))
    except ValueError:
        return None
    if key is None or item.get("draft"):
        return None
    author = item.get("author")
    return Thread(
        id=key,
        title=(_text(item.get("name")) or _text(item.get("tag_name")))[:MAX_TITLE],
        body=_text(item.get("body"))[:MAX_TEXT],
        author=(_text(author.get("login")) if isinstance(author, Mapping) else "")[:MAX_NAME] or GHOST,
        created_at=published,
        kind=Kind.PAGE,
        updated_at=max(published, updated),
    )


def _text(value: object) -> str:
    return clean(value).strip() if isinstance(value, str) else ""


def _state(pages: Iterable[Thread]) -> str:
    told = sorted([str(page.id), page.title, page.body, page.author] for page in pages)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _older(store: PageStore, than: datetime | None) -> list[ThreadId]:
    held = store.records(key for key in store.page_ids() if str(key).startswith(f"{RELEASES}:"))
    return [key for key, one in held.items() if isinstance(one, Thread) and than and one.created_at < than]
