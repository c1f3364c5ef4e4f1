"""Reads pages (docs, wiki, releases) again when their source has changed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any, Protocol

from bot.domain.changes import Changes
from bot.domain.thread import GHOST, Kind, Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import MAX_NAME, MAX_TEXT, MAX_TITLE, clean, parse_time
from bot.errors import WorldError
from bot.files import Globs
from bot.git.remote_files import Head
from bot.reading.pages import RELEASES, WIKI, page_key, page_title, source_of

EVENTS = frozenset({"gollum", "push", "release", "schedule", "workflow_dispatch"})
"""Events after which pages may have changed; after others, pages are read only if they never were."""

OFF = "off"
"""The state of a source that is switched off in the settings."""

_STEP = timedelta(seconds=1)


class PageStore(Protocol):
    """The stored pages."""

    def records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]: ...

    def page_ids(self) -> Iterable[ThreadId]:
        """Return the ids of the stored pages, in any order."""


@dataclass(frozen=True, slots=True)
class PageReading:
    """The content of a source. ``state`` identifies it; ``present`` has the ids of all its pages, and ``pages`` those
    that may have changed, with the time of the version read."""

    state: str
    present: frozenset[ThreadId]
    pages: tuple[Thread, ...] = ()


class PageSource(Protocol):
    """A source of pages; ``name`` is the first part of their ids."""

    @property
    def name(self) -> str: ...

    def read(self, known: str, store: PageStore, note: Callable[[str], None]) -> PageReading | None:
        """Read the source; None if it still is in the state ``known``. Raises WorldError."""


@dataclass(frozen=True, slots=True)
class DisabledPages:
    """A source that is switched off: its stored pages are removed."""

    name: str

    def read(self, known: str, _: PageStore, __: Callable[[str], None]) -> PageReading | None:
        return None if known in ("", OFF) else PageReading(OFF, frozenset())


def fresh_pages(
    sources: Iterable[PageSource],
    store: PageStore,
    known: Mapping[str, str],
    now: datetime,
    note: Callable[[str], None],
) -> Changes:
    """Return the changes that bring the stored pages up to date; empty if no source has changed.

    ``known`` is the stored state of each source, empty to read all again. A source that cannot be read only causes a
    note, and its stored pages stay.
    """
    records: list[Record] = []
    states: list[tuple[str, str]] = []
    for source in sources:
        try:
            reading = source.read(known.get(source.name, ""), store, note)
        except WorldError as error:
            note(f"The pages of {source.name} could not be read, and stay as they are remembered: {error}")
            continue
        if reading is not None:
            records += _changed(reading, store, now)
            records += _gone(source.name, reading, store, now)
            states.append((source.name, reading.state))
    return Changes(records=tuple(records), pages=tuple(states))


def _changed(reading: PageReading, store: PageStore, now: datetime) -> list[Record]:
    held = store.records(page.id for page in reading.pages)
    return [_revised(page, held.get(page.id), now) for page in reading.pages if not _is_same(page, held.get(page.id))]


def _is_same(page: Thread, held: Record | None) -> bool:
    told = (page.title, page.body, page.author, page.labels)
    return isinstance(held, Thread) and (held.title, held.body, held.author, held.labels) == told


def _revised(page: Thread, held: Record | None, now: datetime) -> Thread:
    """The page as the newest revision: commits may have any time, and a branch may go back to an older one."""
    at = min(page.revised_at, now)
    if held is not None:
        at = max(at, held.revised_at + _STEP)
    return replace(page, created_at=min(page.created_at, at), updated_at=at)


def _gone(name: str, reading: PageReading, store: PageStore, now: datetime) -> list[Record]:
    missing = sorted(str(key) for key in store.page_ids() if source_of(key) == name and key not in reading.present)
    held = store.records(missing)
    return [Tombstone(key, max(now, record.revised_at)) for key, record in held.items() if isinstance(record, Thread)]


MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mkdn"})
MAX_FILES = 500
MAX_BYTES = 1_048_576
"""Bytes of the longest file that is read; the first 65,536 characters of it are kept."""

MAX_TOTAL = 10 * MAX_BYTES
"""Bytes that are read in one run; the next run goes on."""

BATCH = 50
"""Files that are fetched at once, so that the limit can stop the rest."""

_FORMAT = 1
"""Increased when the same files would give other pages, so that all are read again."""


@dataclass(frozen=True, slots=True)
class BranchPages:
    """The Markdown files of a branch that match some patterns. ``name`` is used in settings and ids."""

    name: str
    patterns: tuple[str, ...]
    open: Callable[[], AbstractContextManager[Head]]

    def read(self, known: str, store: PageStore, note: Callable[[str], None]) -> PageReading | None:
        """Read the pages; None if the branch has not moved. ``note`` receives what is left out for size or kind."""
        with self.open() as branch:
            tip = branch.tip()
            if self._state(tip) == known:
                return None
            if not tip:
                return PageReading(self._state(""), frozenset())
            commit, at = branch.fetch()
            named = self._named(branch, note)
            held = store.records(named)
            news = {key: file for key, file in named.items() if not _is_held(held.get(key), file[1])}
            texts = dict(self._texts(branch, news, note))
        pages = tuple(self._page(key, named[key][0], text, at) for key, text in texts.items() if text is not None)
        too_long = {key for key, text in texts.items() if text is None}
        is_all = len(texts) == len(news)
        return PageReading(self._state(commit) + ("" if is_all else "+"), frozenset(named.keys() - too_long), pages)

    def _state(self, commit: str) -> str:
        wanted = hashlib.sha256("\0".join([str(_FORMAT), *self.patterns]).encode("utf-8", "replace")).hexdigest()
        return f"{commit or 'none'}-{wanted[:8]}"

    def _named(self, branch: Head, note: Callable[[str], None]) -> dict[ThreadId, tuple[str, str]]:
        """The id of each page → its path and the id of its file; the first of two files with one name."""
        globs = Globs(self.patterns)
        files, left_out = branch.files(lambda path: self._is_page(path) and globs.match(path), globs.lead)
        for words in left_out:
            note(f"Pages of {self.name}: {words}")
        found: dict[ThreadId, tuple[str, str]] = {}
        for path in sorted(files, key=lambda path: (path.count("/"), path)):
            key = page_key(self.name, PurePosixPath(path).stem if self.name == WIKI else path)
            if key is not None:
                found.setdefault(key, (path, files[path]))
        if len(found) > MAX_FILES:
            note(f"Pages of {self.name}: {len(found) - MAX_FILES} of {len(found)} were left out; {MAX_FILES} are kept")
        return dict(list(found.items())[:MAX_FILES])

    def _is_page(self, path: str) -> bool:
        file = PurePosixPath(path)
        return file.suffix.lower() in MARKDOWN and not (self.name == WIKI and file.name.startswith("_"))

    def _texts(
        self, branch: Head, news: Mapping[ThreadId, tuple[str, str]], note: Callable[[str], None]
    ) -> Iterator[tuple[ThreadId, str | None]]:
        """The text of each file, None for one that is too long, until MAX_TOTAL bytes were read."""
        total, keys = 0, list(news)
        for start in range(0, len(keys), BATCH):
            batch = keys[start : start + BATCH]
            contents = branch.contents([news[key][1] for key in batch], MAX_BYTES)
            for key in batch:
                path, oid = news[key]
                total += len(contents.get(oid, b""))
                if total > MAX_TOTAL:
                    note(f"Pages of {self.name}: {MAX_TOTAL:,} bytes were read, the next run goes on from there")
                    return
                if oid not in contents:
                    note(f"Pages of {self.name}: {path} was left out; it has more than {MAX_BYTES:,} bytes")
                yield key, _text(contents[oid]) if oid in contents else None

    def _page(self, key: ThreadId, path: str, text: str, at: datetime) -> Thread:
        file = PurePosixPath(path)
        title = file.stem.replace("-", " ") if self.name == WIKI else clean(page_title(text)) or file.name
        return Thread(key, title[:MAX_TITLE], text, GHOST, at, kind=Kind.PAGE, updated_at=at)


def _text(data: bytes) -> str:
    """The part of a file's text that is kept: whole lines from the start, where a changelog has its newest entries."""
    text = clean(data.decode("utf-8-sig", "replace"))
    if len(text) <= MAX_TEXT:
        return text
    return text[: text.rfind("\n", 0, MAX_TEXT) + 1] or text[:MAX_TEXT]


def _is_held(held: Record | None, oid: str) -> bool:
    """Whether the page equals that file to the byte: the id of a file in git is a hash of its content."""
    if not isinstance(held, Thread):
        return False
    data = held.body.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == oid


MOST = 100
"""Number of newest releases that are read: what GitHub gives in one answer."""


PRE_RELEASE = "pre-release"
"""The label of the page of a release that GitHub marks as a pre-release."""


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
    key = page_key(RELEASES, _field(item.get("tag_name")))
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
        title=(_field(item.get("name")) or _field(item.get("tag_name")))[:MAX_TITLE],
        body=_field(item.get("body"))[:MAX_TEXT],
        author=(_field(author.get("login")) if isinstance(author, Mapping) else "")[:MAX_NAME] or GHOST,
        created_at=published,
        labels=(PRE_RELEASE,) if item.get("prerelease") is True else (),
        kind=Kind.PAGE,
        updated_at=max(published, updated),
    )


def _field(value: object) -> str:
    return clean(value).strip() if isinstance(value, str) else ""


def _state(pages: Iterable[Thread]) -> str:
    told = sorted([str(page.id), page.title, page.body, page.author, *page.labels] for page in pages)
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()[:16]


def _older(store: PageStore, than: datetime | None) -> list[ThreadId]:
    held = store.records(key for key in store.page_ids() if str(key).startswith(f"{RELEASES}:"))
    return [key for key, one in held.items() if isinstance(one, Thread) and than and one.created_at < than]
