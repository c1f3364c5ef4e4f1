"""The demo's repository in the state in which a kill finds it, what happens there, and runs of the Action on it."""

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
from tests.kills.process import ROOT, ActionProcess
from tests.kills.watched import Gate, WatchedGit, WatchedGitHub

SAMPLE = ROOT / "sample"
COMMAND = "/precedent search SESSION_PATH_MISMATCH cookie path"
SCENARIOS = ("opened", "comment", "command", "first")
"""What the killed run is for: a new issue, a comment that points at another issue, a command, or the very first run."""
STATES = {"opened": "remembered", "comment": "answered", "command": "answered", "first": "empty"}
"""The state of memory that each scenario begins with."""


@dataclass(frozen=True, slots=True)
class Standing:
    """A comment of ours that stands when a scenario begins."""

    id: int
    text: str
    at: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """Where the git repositories of each state lie, and our comment in the answered one."""

    folder: Path
    standing: Standing | None = None


@dataclass(frozen=True, slots=True)
class Event:
    """An event as the runner delivers it. ``number`` and ``comment`` are the issue and the comment that it is about."""

    name: str
    action: str | None = None
    number: int | None = None
    comment: int | None = None


@cache
def story() -> dict[str, Any]:
    return json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))


@cache
def history() -> tuple[dict[str, Any], ...]:
    return tuple(read_archive(SAMPLE / "history.jsonl"))


@dataclass
class Repository:
    """A fresh copy of a prepared state in ``folder``, with servers of its own; `close` stops them."""

    folder: Path
    prepared: Prepared | None
    state: str
    gate: Gate = field(default_factory=Gate)
    log: Path = field(init=False)
    temporary: Path = field(init=False)

    def __post_init__(self) -> None:
        self.name: str = story()["repository"]
        self.log, self.temporary = self.folder / "log", self.folder / "tmp"
        self.temporary.mkdir(parents=True)
        kept = self.prepared.folder / self.state if self.prepared else None
        if kept:
            shutil.copytree(kept, self.folder / "git")
        self.git = WatchedGit(self.folder / "git", self.gate)
        if not kept:
            self.git.create(self.name)
            self.git.commit(self.name, "README.md", "# Linkbarn\n")
        self.bare = self.folder / "git" / f"{self.name}.git"
        self.github = WatchedGitHub(self.name, story()["issue"]["created_at"], self.git.url, self.gate)
        self.github.load_archive(history())
        if self.state == "answered":
            self.open_issue()
            self._put_comment()

    @property
    def number(self) -> int:
        """The issue of the story."""
        return int(story()["issue"]["number"])

    def happen(self, scenario: str) -> Event:
        """Let that happen which the killed run is about."""
        if scenario in ("opened", "first"):
            self.open_issue()
            return Event("issues", "opened", self.number)
        remark = story()["comment"]
        text = COMMAND if scenario == "command" else remark["body"]
        made = self.github.comment(self.number, remark["author"], text, at=remark["created_at"])
        return Event("issue_comment", "created", self.number, made)

    def open_issue(self) -> None:
        issue = story()["issue"]
        assert self.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"]) == 74

    def open_another(self) -> Event:
        """Something else happens: an issue to which memory has nothing to say."""
        (issue,) = (one["issue"] for one in story()["more"] if one["expect"] == "silent")
        return Event("issues", "opened", self.github.open_issue(issue["author"], issue["title"], issue["body"]))

    def start(self, event: Event) -> ActionProcess:
        """The Action on an event, at the fake's time."""
        payload = self.folder / "event.json"
        self.github.write_event(payload, event.name, event.action, event.number, event.comment)
        return ActionProcess(self._environment(event.name), self.github.clock.now, self.log)

    def comments(self) -> Mapping[int, list[str]]:
        """The texts of our comments by issue, where there are any."""
        found: dict[int, list[str]] = {}
        for comment in self.github.comments_by(BOT_LOGIN):
            found.setdefault(comment.issue.number, []).append(comment.body)
        return found

    def left(self) -> dict[str, int]:
        """What lies in the temporary folder: name → bytes."""
        return {path.name: _size(path) for path in sorted(self.temporary.iterdir())}

    def close(self) -> None:
        self.github.stop()
        self.git.stop()

    def _put_comment(self) -> None:
        standing = self.prepared.standing if self.prepared else None
        assert standing
        made = self.github.comment(self.number, BOT_LOGIN, standing.text, at=standing.at)
        comment = self.github.repo.comments[standing.id] = self.github.repo.comments.pop(made)
        comment.id = standing.id

    def _environment(self, event: str) -> dict[str, str]:
        return self.github.environment(event, self.folder) | {"TMPDIR": str(self.temporary)}


def prepare(folder: Path) -> Prepared:
    """The states that the scenarios begin with, made by runs that nobody kills."""
    repository = Repository(folder / "work", None, "empty")
    try:
        shutil.copytree(repository.folder / "git", folder / "empty")
        _whole_run(repository, Event("schedule"))
        shutil.copytree(repository.folder / "git", folder / "remembered")
        _whole_run(repository, repository.happen("opened"))
        shutil.copytree(repository.folder / "git", folder / "answered")
        (mine,) = repository.github.comments_by(BOT_LOGIN)
        return Prepared(folder, Standing(mine.id, mine.body, mine.created_at))
    finally:
        repository.close()
        shutil.rmtree(folder / "work")


def _whole_run(repository: Repository, event: Event) -> None:
    code = repository.start(event).wait()
    if code:
        raise SystemExit(f"a run that nobody killed failed:\n{repository.log.read_text(encoding='utf-8')}")


def _size(path: Path) -> int:
    if path.is_symlink() or path.is_file():
        return path.lstat().st_size
    return sum(file.lstat().st_size for file in path.rglob("*") if file.is_file())
