"""A repository with a fake forge and a real git remote, and the Action's door opened on one event after another."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from bot.doors.action import run
from bot.memory.branch import BranchStore
from bot.memory.memory import Memory
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

REPOSITORY = "octo-org/hello-world"
BOT = "github-actions[bot]"


class Stage:
    """One repository. `act` runs the Action in this process; what it logged is in ``log``."""

    def __init__(self, folder: Path, now: str = "2026-01-05T12:00:00Z", *, validate: bool = True) -> None:
        self.folder = folder
        self.git = GitServer(folder / "git")
        self.bare = self.git.create(REPOSITORY)
        self.github = FakeGitHub(REPOSITORY, now, validate=validate, site=self.git.url)
        self.summary = folder / "summary.md"
        self.output = folder / "output"

    def environment(self, event: str, inputs: Mapping[str, str] | None = None) -> dict[str, str]:
        given = {f"INPUT_{name.upper()}": value for name, value in (inputs or {}).items()}
        return {
            "GITHUB_EVENT_NAME": event,
            "GITHUB_EVENT_PATH": str(self.folder / "event.json"),
            "GITHUB_REPOSITORY": REPOSITORY,
            "GITHUB_API_URL": self.github.url,
            "GITHUB_SERVER_URL": self.git.url,
            "GITHUB_OUTPUT": str(self.output),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "RUNNER_TEMP": str(self.folder),
            "INPUT_TOKEN": self.github.token,
        } | given

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
        return run(self.environment(event, inputs), datetime.fromisoformat(self.github.clock.now), write_gap=0)

    def comments(self, number: int) -> list[str]:
        """The texts of our comments on an issue."""
        return [str(comment.body) for comment in self.github.comments_by(BOT, number)]

    def memory(self) -> Memory:
        """The memory branch as anybody who clones it sees it."""
        return Memory(BranchStore(f"{self.git.url}/{REPOSITORY}.git", "precedent", self.git.token)).open()

    def outputs(self) -> dict[str, str]:
        """The Action's outputs, read as the runner reads them."""
        found: dict[str, str] = {}
        lines = iter(self.output.read_text(encoding="utf-8").splitlines())
        for line in lines:
            name, _, fence = line.partition("<<")
            value = []
            for part in lines:
                if part == fence:
                    break
                value.append(part)
            found[name] = "\n".join(value)
        return found

    def close(self) -> None:
        self.github.stop()
        self.git.stop()
