"""Reads Markdown files of a default branch as pages: of the repository, and of its wiki."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from pathlib import PurePosixPath

from bot.domain.thread import GHOST, Kind, Record, Thread, ThreadId
from bot.domain.thread_json import MAX_TEXT, MAX_TITLE, clean
from bot.files import Globs
from bot.git.remote_files import Head
from bot.reading.pages import WIKI, page_key, page_title
from bot.sources.pages import PageReading, PageStore

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
