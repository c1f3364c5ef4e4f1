"""The demo's repository in the state before a kill, the events in it, and runs of the Action on it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.fakes.archive import read_archive
from tests.fakes.state import BOT_LOGIN
from tests.kills.gated_servers import Gate, WatchedGit, WatchedGitHub
from tests.kills.process import ROOT, ActionProcess

SAMPLE = ROOT / "sample"
COMMAND = "/precedent search SESSION_PATH_MISMATCH cookie path"
SCENARIOS = ("opened", "comment", "command", "first")
"""What the killed run handles: a new issue, a comment that refers to another issue, a command, or the first run."""
STATES = {"opened": "remembered", "comment": "answered", "command": "answered", "first": "empty"}
"""The state of memory with which each scenario begins."""


@dataclass(frozen=True, slots=True)
class PostedComment:
    """A comment of ours that exists when a scenario begins."""

    id: int
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """The folder with the git repositories of each state, and our comment in the answered state."""

    folder: Path
    posted: PostedComment | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event as the runner delivers it. ``number`` and ``comment`` are the issue and the comment that it is about."""

    name: str
    action: str | None = None
    number: int | None = None
    comment: int | None = None


@cache
def load_story() -> dict[str, Any]:
    return json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))


@cache
def load_history() -> tuple[dict[str, Any], ...]:
    return tuple(read_archive(SAMPLE / "history.jsonl"))


@dataclass
class Repository:
    """A fresh copy of a prepared state in ``folder``, with its own servers; `close` stops them."""

    folder: Path
    prepared: Prepared | None
    state: str
    gate: Gate = field(default_factory=Gate)
    log: Path = field(init=False)
    temporary: Path = field(init=False)

    def __post_init__(self) -> None:
        self.name: str = load_story()["repository"]
        self.log, self.temporary = self.folder / "log", self.folder / "tmp"
        self.temporary.mkdir(parents=True)
        source = self.prepared.folder / self.state if self.prepared else None
        if source:
            shutil.copytree(source, self.folder / "git")
        self.git = WatchedGit(self.folder / "git", self.gate)
        if not source:
            self.git.create(self.name)
            self.git.commit(self.name, "README.md", "# Linkbarn\n")
        self.bare = self.folder / "git" / f"{self.name}.git"
        self.github = WatchedGitHub(self.name, load_story()["issue"]["created_at"], self.git.url, self.gate)
        self.github.load_archive(load_history())
        if self.state == "answered":
            self.open_issue()
            self._put_comment()

    @property
    def number(self) -> int:
        """The issue of the story."""
        return int(load_story()["issue"]["number"])

    def trigger(self, scenario: str) -> Event:
        """Make the change that the killed run handles; returns its event."""
        if scenario in ("opened", "first"):
            self.open_issue()
            return Event("issues", "opened", self.number)
        remark = load_story()["comment"]
        text = COMMAND if scenario == "command" else remark["body"]
        comment_id = self.github.comment(self.number, remark["author"], text, at=remark["created_at"])
        return Event("issue_comment", "created", self.number, comment_id)

    def open_issue(self) -> None:
        issue = load_story()["issue"]
        assert self.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"]) == 74

    def open_unrelated_issue(self) -> Event:
        """Open an issue about which memory knows nothing."""
        (issue,) = (entry["issue"] for entry in load_story()["more"] if entry["expect"] == "silent")
        return Event("issues", "opened", self.github.open_issue(issue["author"], issue["title"], issue["body"]))

    def start(self, event: Event) -> ActionProcess:
        """Start the Action on an event, at the fake's time."""
        payload = self.folder / "event.json"
        self.github.write_event(payload, event.name, event.action, event.number, event.comment)
        return ActionProcess(self._environment(event.name), self.github.clock.now, self.log)

    def comments(self) -> Mapping[int, list[str]]:
        """Issue number → the texts of our comments on it."""
        texts: dict[int, list[str]] = {}
        for comment in self.github.comments_by(BOT_LOGIN):
            texts.setdefault(comment.issue.number, []).append(comment.body)
        return texts

    def temporary_files(self) -> dict[str, int]:
        """The contents of the temporary folder: name → bytes."""
        return {path.name: _size(path) for path in sorted(self.temporary.iterdir())}

    def close(self) -> None:
        self.github.stop()
        self.git.stop()

    def _put_comment(self) -> None:
        posted = self.prepared.posted if self.prepared else None
        assert posted
        comment_id = self.github.comment(self.number, BOT_LOGIN, posted.text, at=posted.at)
        comment = self.github.repo.comments[posted.id] = self.github.repo.comments.pop(comment_id)
        comment.id = posted.id

    def _environment(self, event: str) -> dict[str, str]:
        return self.github.environment(event, self.folder) | {"TMPDIR": str(self.temporary)}


def prepare(folder: Path) -> Prepared:
    """Make the states with which the scenarios begin, by runs that are not killed."""
    repository = Repository(folder / "work", None, "empty")
    try:
        shutil.copytree(repository.folder / "git", folder / "empty")
        _run_undisturbed(repository, Event("schedule"))
        shutil.copytree(repository.folder / "git", folder / "remembered")
        _run_undisturbed(repository, repository.trigger("opened"))
        shutil.copytree(repository.folder / "git", folder / "answered")
        (comment,) = repository.github.comments_by(BOT_LOGIN)
        return Prepared(folder, PostedComment(comment.id, comment.body, comment.created_at))
    finally:
        repository.close()
        shutil.rmtree(folder / "work")


def _run_undisturbed(repository: Repository, event: Event) -> None:
    code = repository.start(event).wait()
    if code:
        raise SystemExit(f"a run that nobody killed failed:\n{repository.log.read_text(encoding='utf-8')}")


def _size(path: Path) -> int:
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file())
