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

from bot.domain.bounds import MAX_NAME, MAX_TITLE
from bot.domain.changes import Changes
from bot.domain.thread import GHOST, Kind, Record, Thread, ThreadId, Tombstone
from bot.domain.thread_json import MAX_TEXT, parse_time, storable, storable_text
from bot.errors import WorldError
from bot.files import Globs
from bot.git.remote_files import Head
from bot.reading.pages import RELEASES, WIKI, page_key, page_title, source_of

PAGE_EVENTS = frozenset({"gollum", "push", "release"})
"""Events after which pages may have changed; maintenance looks too, others only if pages were never read."""

OFF = "off"
"""The state of a source that is switched off in the settings."""

_STEP = timedelta(seconds=1)


class PageStore(Protocol):
    """The stored pages."""

    def whole_records(self, ids: Iterable[ThreadId]) -> Mapping[ThreadId, Record]: ...

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

    def read(self, last_state: str, store: PageStore, note: Callable[[str], None]) -> PageReading | None:
        """Read the source; None if it is still in ``last_state``. Raises WorldError."""


@dataclass(frozen=True, slots=True)
class DisabledPages:
    """A source that is switched off: its stored pages are removed."""

    name: str

    def read(self, last_state: str, _: PageStore, __: Callable[[str], None]) -> PageReading | None:
        return None if last_state in ("", OFF) else PageReading(OFF, frozenset())


def refresh_pages(
    sources: Iterable[PageSource],
    store: PageStore,
    last_states: Mapping[str, str],
    now: datetime,
    note: Callable[[str], None],
) -> Changes:
    """Return the changes that bring the stored pages up to date; empty if no source has changed.

    ``last_states`` has the stored state of each source; empty to read all again. If a source cannot be read, this is
    noted and its stored pages stay.
    """
    records: list[Record] = []
    states: list[tuple[str, str]] = []
    for source in sources:
        try:
            reading = source.read(last_states.get(source.name, ""), store, note)
        except WorldError as error:
            note(f"The pages of {source.name} could not be read; the stored ones are kept: {error}")
            continue
        if reading is not None:
            records += _changed_pages(reading, store, now)
            records += _removed_pages(source.name, reading, store, now)
            states.append((source.name, reading.state))
    return Changes(records=tuple(records), pages=tuple(states))


def _changed_pages(reading: PageReading, store: PageStore, now: datetime) -> list[Record]:
    stored = store.whole_records(page.id for page in reading.pages)
    return [
        _revise(page, stored.get(page.id), now)
        for page in reading.pages
        if not _is_unchanged(page, stored.get(page.id))
    ]


def _is_unchanged(page: Thread, stored: Record | None) -> bool:
    fields = (page.title, page.body, page.author, page.labels)
    return isinstance(stored, Thread) and (stored.title, stored.body, stored.author, stored.labels) == fields


def _revise(page: Thread, stored: Record | None, now: datetime) -> Thread:
    """The page as the newest revision: commits may have any time, and a branch may go back to an older one."""
    at = min(page.revised_at, now)
    if stored is not None:
        at = max(at, stored.revised_at + _STEP)
    return replace(page, created_at=min(page.created_at, at), updated_at=at)


def _removed_pages(name: str, reading: PageReading, store: PageStore, now: datetime) -> list[Record]:
    missing = sorted(str(key) for key in store.page_ids() if source_of(key) == name and key not in reading.present)
    stored = store.whole_records(missing)
    return [Tombstone(key, max(now, record.revised_at)) for key, record in stored.items() if isinstance(record, Thread)]


MARKDOWN_SUFFIXES = frozenset({".md", ".markdown", ".mdown", ".mkd", ".mkdn"})
MAX_FILES = 500
MAX_FILE_BYTES = 1_048_576
"""Maximum bytes of a file to read; its first 65,536 characters are kept."""

MAX_TOTAL_BYTES = 10 * MAX_FILE_BYTES
"""Maximum bytes to read in one run; the next run continues."""

BATCH_SIZE = 50
"""Files fetched at once; small enough for the limit to stop the rest."""

_NO_NAMES = "their names are too long, unprintable or taken"

_FORMAT_VERSION = 1
"""Increased when the same files would give different pages, so that all are read again."""


@dataclass(frozen=True, slots=True)
class BranchPages:
    """The Markdown files of a branch that match some patterns. ``name`` is used in settings and ids."""

    name: str
    patterns: tuple[str, ...]
    open: Callable[[], AbstractContextManager[Head]]

    def read(self, last_state: str, store: PageStore, note: Callable[[str], None]) -> PageReading | None:
        """Read the pages; None if the branch has not moved. ``note`` receives what is left out by size or kind."""
        with self.open() as branch:
            tip = branch.tip()
            if self._state_of(tip) == last_state:
                return None
            if not tip:
                return PageReading(self._state_of(""), frozenset())
            commit, at = branch.fetch()
            files = self._list_files(branch, note)
            stored = store.whole_records(files)
            changed = {key: file for key, file in files.items() if not _is_same_file(stored.get(key), file[1])}
            texts = dict(self._read_texts(branch, changed, note))
        pages = tuple(
            self._page_of_file(key, files[key][0], text, at) for key, text in texts.items() if text is not None
        )
        too_long = {key for key, text in texts.items() if text is None}
        is_all = len(texts) == len(changed)
        return PageReading(self._state_of(commit) + ("" if is_all else "+"), frozenset(files.keys() - too_long), pages)

    def _state_of(self, commit: str) -> str:
        patterns_hash = hashlib.sha256(
            "\0".join([str(_FORMAT_VERSION), *self.patterns]).encode("utf-8", "replace")
        ).hexdigest()
        return f"{commit or 'none'}-{patterns_hash[:8]}"

    def _list_files(self, branch: Head, note: Callable[[str], None]) -> dict[ThreadId, tuple[str, str]]:
        """The id of each page → its path and the id of its file; the first of two files with one name."""
        globs = Globs(self.patterns)
        files, left_out = branch.files(lambda path: self._is_page(path) and globs.match(path), globs.may_match_below)
        for reason in left_out:
            note(f"Pages of {self.name}: {reason}")
        by_key: dict[ThreadId, tuple[str, str]] = {}
        for path in sorted(files, key=lambda path: (path.count("/"), path)):
            key = page_key(self.name, storable_text(PurePosixPath(path).stem if self.name == WIKI else path))
            if key is not None:
                by_key.setdefault(key, (path, files[path]))
        if len(by_key) < len(files):
            note(f"Pages of {self.name}: {len(files) - len(by_key)} were left out; {_NO_NAMES}")
        if len(by_key) > MAX_FILES:
            note(
                f"Pages of {self.name}: {len(by_key) - MAX_FILES} of {len(by_key)} were left out; {MAX_FILES} are kept"
            )
        return dict(list(by_key.items())[:MAX_FILES])

    def _is_page(self, path: str) -> bool:
        file = PurePosixPath(path)
        return file.suffix.lower() in MARKDOWN_SUFFIXES and not (self.name == WIKI and file.name.startswith("_"))

    def _read_texts(
        self, branch: Head, changed: Mapping[ThreadId, tuple[str, str]], note: Callable[[str], None]
    ) -> Iterator[tuple[ThreadId, str | None]]:
        """The text of each file, None for one that is too long, until MAX_TOTAL_BYTES were read."""
        total, keys = 0, list(changed)
        for start in range(0, len(keys), BATCH_SIZE):
            batch = keys[start : start + BATCH_SIZE]
            contents = branch.contents([changed[key][1] for key in batch], MAX_FILE_BYTES)
            for key in batch:
                path, oid = changed[key]
                total += len(contents.get(oid, b""))
                if total > MAX_TOTAL_BYTES:
                    note(
                        f"Pages of {self.name}: {MAX_TOTAL_BYTES:,} bytes were read; the next run continues from there"
                    )
                    return
                if oid not in contents:
                    note(f"Pages of {self.name}: {path} was left out; it has more than {MAX_FILE_BYTES:,} bytes")
                yield key, _decode(contents[oid]) if oid in contents else None

    def _page_of_file(self, key: ThreadId, path: str, text: str, at: datetime) -> Thread:
        file = PurePosixPath(storable_text(path))
        title = file.stem.replace("-", " ") if self.name == WIKI else storable(page_title(text)) or file.name
        return Thread(key, title[:MAX_TITLE], text, GHOST, at, kind=Kind.PAGE, updated_at=at)


def _decode(data: bytes) -> str:
    """The part of a file's text that is kept: whole lines from the start, where a changelog has its newest entries."""
    text = storable_text(data.decode("utf-8-sig", "replace"))
    if len(text) <= MAX_TEXT:
        return text
    return text[: text.rfind("\n", 0, MAX_TEXT) + 1] or text[:MAX_TEXT]


def _is_same_file(stored: Record | None, oid: str) -> bool:
    """Whether the page equals that file byte for byte: the id of a file in git is a hash of its content."""
    if not isinstance(stored, Thread):
        return False
    data = stored.body.encode()
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest() == oid


MAX_RELEASES = 100
"""The newest releases that are read: as many as GitHub returns in one response."""


PRE_RELEASE_LABEL = "pre-release"
"""The label of a page whose release GitHub marks as a pre-release."""


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

    def read(self, last_state: str, store: PageStore, note: Callable[[str], None]) -> PageReading | None:
        """Read the newest releases; None if nothing has changed. Older stored ones stay."""
        items, is_all = self.api.pages(f"/repos/{self.repo}/releases", {"per_page": MAX_RELEASES}, 1)
        published = [item for item in items if not item.get("draft")]
        pages = [page for page in map(_page, published) if page is not None]
        state = _state(pages)
        if state == last_state:
            return None
        if len(pages) < len(published):
            note(f"Pages of {self.name}: {len(published) - len(pages)} were left out; {_NO_NAMES}")
        older = () if is_all else _older_pages(store, min((page.created_at for page in pages), default=None))
        return PageReading(state, frozenset([*(page.id for page in pages), *older]), tuple(pages))


def _page(item: Mapping[str, Any]) -> Thread | None:
    key = page_key(RELEASES, _text_field(item.get("tag_name")))
    try:
        published = parse_time(item.get("published_at"))
        updated = parse_time(item.get("updated_at") or item.get("published_at"))
    except ValueError:
        return None
    if key is None:
        return None
    author = item.get("author")
    return Thread(
        id=key,
        title=(_text_field(item.get("name")) or _text_field(item.get("tag_name")))[:MAX_TITLE],
        body=_text_field(item.get("body"))[:MAX_TEXT],
        author=(_text_field(author.get("login")) if isinstance(author, Mapping) else "")[:MAX_NAME] or GHOST,
        created_at=published,
        labels=(PRE_RELEASE_LABEL,) if item.get("prerelease") is True else (),
        kind=Kind.PAGE,
        updated_at=max(published, updated),
    )


def _text_field(value: object) -> str:
    return storable_text(value).strip() if isinstance(value, str) else ""


def _state(pages: Iterable[Thread]) -> str:
    rows = sorted([str(page.id), page.title, page.body, page.author, *page.labels] for page in pages)
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()[:16]


def _older_pages(store: PageStore, moment: datetime | None) -> list[ThreadId]:
    stored = store.whole_records(key for key in store.page_ids() if str(key).startswith(f"{RELEASES}:"))
    return [
        key for key, record in stored.items() if isinstance(record, Thread) and moment and record.created_at < moment
    ]
