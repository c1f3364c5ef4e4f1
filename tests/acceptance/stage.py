"""A repository with a fake GitHub and a real git remote, on which the Action runs one event after another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Self

from bot.action.main import run
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.threats.runner import read_outputs_file

REPOSITORY = "octo-org/hello-world"
BOT = "github-actions[bot]"
DECISION = "We decided to go with PostgreSQL; Redis lost every session on restart."


class Stage:
    """One repository. `act` runs the Action on an event, in this process."""

    def __init__(self, folder: Path, now: str = "2026-01-05T12:00:00Z", *, validate: bool = True) -> None:
        self.folder = folder
        self.git = GitServer(folder / "git")
        self.bare = self.git.create(REPOSITORY)
        self.github = FakeGitHub(REPOSITORY, now, validate=validate, site=self.git.url)
        self.summary = folder / "summary.md"
        self.output = folder / "output"
        self.program = run
        self._opened: list[Memory] = []

    def environment(self, event: str, inputs: Mapping[str, str] | None = None) -> dict[str, str]:
        input_variables = {f"INPUT_{name.upper()}": value for name, value in (inputs or {}).items()}
        return self.github.environment(event, self.folder) | {"GITHUB_REPOSITORY": REPOSITORY} | input_variables

    def act(
        self,
        event: str,
        action: str | None = None,
        number: int | None = None,
        comment: int | None = None,
        inputs: Mapping[str, str] | None = None,
    ) -> int:
        """Run the Action on an event at the fake's time; returns its exit code."""
        self.github.write_event(self.folder / "event.json", event, action, number, comment)
        self.output.write_text("", encoding="utf-8")
        self.summary.write_text("", encoding="utf-8")
        before = len(self.github.requests)
        code = self.program(self.environment(event, inputs), datetime.fromisoformat(self.github.clock.now), write_gap=0)
        if (inputs or {}).get("run") != "rebuild":  # a rebuild waits for a short limit, then continues
            self.github.violations += self.github.wasted_requests(before)
        return code

    def comments(self, number: int) -> list[str]:
        """The texts of our comments on an issue."""
        return [str(comment.body) for comment in self.github.comments_by(BOT, number)]

    def memory(self) -> Memory:
        """The memory branch as anybody who clones it sees it."""
        self._opened.append(Memory(BranchStore(f"{self.git.url}/{REPOSITORY}.git", "precedent", self.git.token)))
        return self._opened[-1].open()

    def outputs(self) -> dict[str, str]:
        """The Action's outputs, read as the runner reads them."""
        return read_outputs_file(self.output.read_text(encoding="utf-8"))

    def close(self) -> None:
        for memory in self._opened:
            memory.close()
        self.github.stop()
        self.git.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close; fail a test that passed so far if a request or response does not match GitHub's API description."""
        self.close()
        assert kind or self.github.violations == []


def with_past(stage: Stage) -> Stage:
    """Add a decision (1) and a feature request that was declined (2), both closed long ago."""
    github = stage.github
    github.set_permission("octocat", "write")
    github.open_issue("monalisa", "Where should sessions live?", "Files are slow.", at="2025-07-15T10:00:00Z")
    github.comment(1, "octocat", DECISION, at="2025-07-22T10:00:00Z")
    github.close(1, "octocat", at="2025-07-23T10:00:00Z")
    github.open_issue("hubot", "Dark mode for the printer", "At night it glares.", at="2025-08-01T10:00:00Z")
    github.comment(2, "octocat", "We will not do that: paper is white.", at="2025-08-02T10:00:00Z")
    github.close(2, "octocat", "not_planned", at="2025-08-02T10:00:00Z")
    return stage


def with_issues(stage: Stage, count: int) -> Stage:
    """Add `count` open issues, none of them in memory."""
    for number in range(count):
        at = f"2026-01-01T{number // 60:02d}:{number % 60:02d}:00Z"
        stage.github.open_issue("octocat", f"Crash {number}", at=at)
    return stage


def rebuild(stage: Stage, **inputs: str) -> int:
    """Start a rebuild by hand; requests are counted from here on."""
    stage.github.mark()
    return stage.act("workflow_dispatch", inputs={"run": "rebuild"} | inputs)


def summary(stage: Stage) -> str:
    """The job summary of the last run."""
    return stage.summary.read_text(encoding="utf-8")


def graph_requests(stage: Stage) -> int:
    """GraphQL requests since the last mark."""
    return sum(request.path == "/graphql" for request in stage.github.recent)
