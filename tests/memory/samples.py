"""Threads, requests, fixes and stores for the tests of memory."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from bot.domain.changes import Changes, FixInfo, Request
from bot.domain.thread import Record, Thread, ThreadId
from bot.index.protocol import Query
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.memory.message_index import MAX_THREADS_BEHIND
from bot.memory.store import Store
from bot.reading.analyzer import terms
from tests.memory.remotes import HostedRepository, open_store

START = datetime(2020, 1, 1, tzinfo=UTC)
WORDS = ("apricot", "bramble", "cinnamon", "damson", "elder", "fennel", "ginger", "hazel", "iris", "juniper")
ON_BRANCH_TOO = pytest.mark.parametrize(
    "stored", ["folder", pytest.param("branch", marks=pytest.mark.slow)], indirect=True
)
"""For the stories that are also told on a branch over HTTP. All other tests of memory use a folder."""


def at(hours: float) -> datetime:
    return START + timedelta(hours=hours)


def issue(key: ThreadId, revision: float = 0, body: str = "", **fields: object) -> Thread:
    """A thread with `word_of` its key, which is in no other thread, and ``revision`` in its title."""
    thread = Thread(
        key, f"{word_of(key)} fails, revision {revision:g}", body, "octocat", START, updated_at=at(revision)
    )
    return replace(thread, **fields)


def word_of(key: ThreadId) -> str:
    if isinstance(key, str):
        return key.lower().replace("-", "")
    return "".join(WORDS[int(digit)] for digit in str(key))


def query(text: str) -> Query:
    return Query(dict.fromkeys(terms(text), 1.0))


def find_threads(memory: Memory, text: str) -> list[ThreadId]:
    """The ids of the threads that a search finds."""
    return [hit.entry.id for hit in memory.search(query(text))]


def remember(memory: Memory, *records: Record) -> bool:
    memory.stage(Changes(records=records))
    return memory.commit("records")


@dataclass
class StoredMemory:
    """A memory in a folder, or on the branch of ``hosted``, for tests to inspect and damage."""

    folder: Path
    hosted: HostedRepository | None = None
    threads_behind: int = MAX_THREADS_BEHIND
    _open: list[Store] = field(default_factory=list)

    @cached_property
    def _own(self) -> Store:
        return self.store()

    def store(self) -> Store:
        """The store, as another process would open it."""
        self._open.append(open_store(self.hosted) if self.hosted else FolderStore(self.folder))
        return self._open[-1]

    def memory(self) -> Memory:
        """The stored memory, freshly opened."""
        memory = Memory(self.store(), sleep=lambda _: None)
        memory.threads_behind = self.threads_behind
        return memory.open()

    def close(self) -> None:
        while self._open:
            self._open.pop().close()

    def files(self, prefix: str = "") -> dict[str, bytes]:
        """The regular files of the newest state."""
        snapshot = self._own.open([prefix])
        return snapshot.read(snapshot.paths(prefix))

    def put(self, edits: dict[str, bytes | None]) -> None:
        """Overwrite files behind memory's back."""
        self._own.write(self._own.open(), edits, "by hand")


NAMES = ("search", "wrong", "off", "on", "help")


def ask(key: ThreadId, comment_id: int, name: str = "search", **fields: Any) -> Request:
    """A request by octocat, made ``comment_id`` hundredths of an hour after `START`."""
    values: dict[str, Any] = {"by": "octocat", "at": at(comment_id / 100), **fields}
    return Request(key, comment_id, name, **values)


def fix(key: ThreadId, hours: float = 1, **fields: Any) -> FixInfo:
    return FixInfo(key, "#9", at(hours), **fields)


def _any_request(comment_id: int, state: str, tried: int | None) -> Request:
    """A request whose text depends on the comment alone; its state does not."""
    return ask(
        comment_id % 3 + 1,
        comment_id,
        NAMES[comment_id % 5],
        by=("octocat", "hubot", "Monalisa")[comment_id % 7 % 3],
        at=at(comment_id / 10),
        about=(comment_id,) if comment_id % 5 == 1 else (),
        state=state,
        trying_since=None if tried is None else at(tried),
    )


ANY_REQUEST = st.builds(
    _any_request,
    st.integers(1, 40),
    st.sampled_from(["pending", "done", "refused"]),
    st.none() | st.integers(0, 9),
)
ANY_FIX = st.builds(
    lambda key, hours, release: fix(key, hours, release=release),
    st.integers(1, 3),
    st.integers(0, 4),
    st.none() | st.sampled_from(["v1", "v2"]),
)
