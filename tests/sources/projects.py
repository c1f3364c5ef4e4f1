"""A project on the fake of GitHub's git server, with documentation, a wiki and releases, and a memory of its pages."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bot.domain.changes import Changes
from bot.domain.thread import Record, Thread, ThreadId
from bot.git.remote_files import Head, open_head
from bot.memory.folder_store import FolderStore
from bot.memory.memory import Memory
from bot.pipeline.setup import page_sources
from bot.settings.schema import PageSettings
from bot.sources.pages import refresh_pages
from tests.fakes.git_http import GitServer
from tests.memory.remotes import commit, git

REPO = "octocat/hello"
FILE = "100644"
NOW = datetime(2024, 6, 1, 12, 0, tzinfo=UTC)


@dataclass
class ReleaseList:
    """The answer of GitHub's API to a request for releases."""

    items: list[dict[str, Any]] = field(default_factory=list)
    is_all: bool = True
    requested_paths: list[str] = field(default_factory=list)

    def pages(self, path: str, query: Any, most: int) -> tuple[list[dict[str, Any]], bool]:
        self.requested_paths.append(path)
        return self.items, self.is_all


class Project:
    """A project whose documentation, wiki and releases change, and a memory of them."""

    def __init__(self, folder: Path, server: GitServer) -> None:
        self.server = server
        self.docs = server.create(REPO)
        self.releases = ReleaseList()
        self.memory = Memory(FolderStore(folder / "store")).open()
        self.page_settings = PageSettings()
        self.notes: list[str] = []
        self.now = NOW

    @property
    def wiki(self) -> Path:
        path = self.server.folder / f"{REPO}.wiki.git"
        return path if path.exists() else self.server.create(f"{REPO}.wiki", "master")

    def write(self, repository: Path, texts: dict[str, str | bytes | tuple[str, bytes]], days: float = 0) -> str:
        """Commit these as the only files of the repository, ``days`` before now."""
        entries = {path: text if isinstance(text, tuple) else (FILE, _bytes(text)) for path, text in texts.items()}
        ref = "refs/heads/main" if repository == self.docs else "refs/heads/master"
        tree = git(repository, "rev-parse", f"{commit(repository, entries, ref)}^{{tree}}")
        return self.commit_tree(repository, tree, round((self.now - timedelta(days=days)).timestamp()))

    def commit_tree(self, repository: Path, tree: str, stamp: int) -> str:
        """Put a commit with this tree and time on the default branch."""
        identity = f"octocat <octocat@example.com> {stamp} +0000"
        text = f"tree {tree}\nauthor {identity}\ncommitter {identity}\n\nby hand\n"
        commit_id = git(repository, "hash-object", "-t", "commit", "-w", "--stdin", stdin=text.encode())
        git(repository, "update-ref", git(repository, "symbolic-ref", "HEAD"), commit_id)
        return commit_id

    def open(self, name: str) -> AbstractContextManager[Head]:
        suffix = ".wiki" if name == "wiki" else ""
        return open_head(f"{self.server.url}/{REPO}{suffix}.git", self.server.token)

    def refresh(self, stored_states: dict[str, str] | None = None) -> Changes:
        """Read what is new, as a run does, and commit it to the memory."""
        sources = page_sources(self.page_settings, REPO, self.releases, self.open)
        states = self.memory.state.manifest.pages if stored_states is None else stored_states
        changes = refresh_pages(sources, self.memory, states, self.now, self.notes.append)
        self.memory.stage(changes)
        self.memory.commit("Remember pages")
        self.memory.open()
        self.now += timedelta(hours=1)
        return changes

    def record(self, key: ThreadId) -> Record:
        return self.memory.records([key])[key]

    def page(self, key: ThreadId) -> Thread:
        thread = self.record(key)
        assert isinstance(thread, Thread)
        return thread

    @property
    def ids(self) -> list[ThreadId]:
        return sorted(self.memory.page_ids(), key=str)

    def change_settings(self, **settings: Any) -> None:
        self.page_settings = replace(self.page_settings, **settings)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
