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
    """What GitHub's API answers when it is asked for releases."""

    items: list[dict[str, Any]] = field(default_factory=list)
    is_all: bool = True
    asked: list[str] = field(default_factory=list)

    def pages(self, path: str, query: Any, most: int) -> tuple[list[dict[str, Any]], bool]:
        self.asked.append(path)
        return self.items, self.is_all


class Project:
    """A project whose documentation, wiki and releases change, and a memory that follows."""

    def __init__(self, folder: Path, server: GitServer) -> None:
        self.server = server
        self.docs = server.create(REPO)
        self.releases = ReleaseList()
        self.memory = Memory(FolderStore(folder / "store")).open()
        self.wanted = PageSettings()
        self.notes: list[str] = []
        self.now = NOW

    @property
    def wiki(self) -> Path:
        path = self.server.folder / f"{REPO}.wiki.git"
        return path if path.exists() else self.server.create(f"{REPO}.wiki", "master")

    def write(self, repository: Path, texts: dict[str, str | bytes | tuple[str, bytes]], days: float = 0) -> str:
        """Make these the only files of the repository, by a commit of so many days before now."""
        entries = {path: text if isinstance(text, tuple) else (FILE, _bytes(text)) for path, text in texts.items()}
        ref = "refs/heads/main" if repository == self.docs else "refs/heads/master"
        tree = git(repository, "rev-parse", f"{commit(repository, entries, ref)}^{{tree}}")
        return self.stand(repository, tree, round((self.now - timedelta(days=days)).timestamp()))

    def stand(self, repository: Path, tree: str, stamp: int) -> str:
        """Put a commit of this tree and time on the default branch."""
        who = f"octocat <octocat@example.com> {stamp} +0000"
        text = f"tree {tree}\nauthor {who}\ncommitter {who}\n\nby hand\n"
        made = git(repository, "hash-object", "-t", "commit", "-w", "--stdin", given=text.encode())
        git(repository, "update-ref", git(repository, "symbolic-ref", "HEAD"), made)
        return made

    def open(self, name: str) -> AbstractContextManager[Head]:
        suffix = ".wiki" if name == "wiki" else ""
        return open_head(f"{self.server.url}/{REPO}{suffix}.git", self.server.token)

    def follow(self, known: dict[str, str] | None = None) -> Changes:
        """Read what is new, as a run does, and remember it."""
        sources = page_sources(self.wanted, REPO, self.releases, self.open)
        states = self.memory.state.manifest.pages if known is None else known
        changes = refresh_pages(sources, self.memory.state, states, self.now, self.notes.append)
        self.memory.stage(changes)
        self.memory.commit("Remember pages")
        self.memory.open()
        self.now += timedelta(hours=1)
        return changes

    def record(self, key: ThreadId) -> Record:
        return self.memory.records([key])[key]

    def page(self, key: ThreadId) -> Thread:
        found = self.record(key)
        assert isinstance(found, Thread)
        return found

    @property
    def ids(self) -> list[ThreadId]:
        return list(self.memory.state.page_ids())

    def want(self, **settings: Any) -> None:
        self.wanted = replace(self.wanted, **settings)


def _bytes(text: str | bytes) -> bytes:
    return text.encode() if isinstance(text, str) else text
