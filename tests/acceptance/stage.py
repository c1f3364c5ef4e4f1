"""A repository with a fake GitHub and a real git remote, on which the Action runs one event after another.

A stage can return to a moment that it was at before: `begin` runs a set-up once and then only copies what it left.
"""

from __future__ import annotations

import copy
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Self

from bot.action.main import run
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from tests.acceptance.bare_repository import Bare, BranchTipStore
from tests.fakes.faults import FaultPlan
from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes.state import World
from tests.threats.runner import read_outputs_file

REPOSITORY = "octo-org/hello-world"
BOT = "github-actions[bot]"
BRANCH = "refs/heads/precedent"
DECISION = "We decided to go with PostgreSQL; Redis lost every session on restart."
KEPT = ("accounts", "repositories", "names", "tokens", "last_id")
"""The parts of the fake's world that a saved state consists of, apart from the time."""


@dataclass(frozen=True)
class SavedState:
    """A moment: the fake's world, its repository and time, a copy of the git server's folder, and its tokens."""

    world: Mapping[str, Any]
    repository: int
    now: str | None
    git: Path
    tokens: Mapping[str, str]


class Stage:
    """One repository. `act` runs the Action on an event, in this process; ``folder`` is the runner's.

    ``github`` and ``git`` make the servers.
    """

    def __init__(
        self,
        folder: Path,
        now: str | None = "2026-01-05T12:00:00Z",
        *,
        validate: bool = True,
        repository: str = REPOSITORY,
        github: Callable[..., FakeGitHub] = FakeGitHub,
        git: Callable[[Path], GitServer] = GitServer,
    ) -> None:
        self.root = self.folder = folder
        self.repository, self.validate, self._make_github = repository, validate, github
        self.git = git(folder / "git")
        self.bare = self.git.create(repository)
        Bare(self.bare).configure()
        self.github = self._new_github(now)
        self.program = run
        self.clock_error = timedelta()
        """How far the runner's clock is ahead of GitHub's."""
        self._opened: list[Memory] = []
        self._states: dict[tuple[Callable[[Stage], object], ...], SavedState] = {}

    def _new_github(self, now: str | None) -> FakeGitHub:
        return self._make_github(self.repository, now, validate=self.validate, site=self.git.url)

    @property
    def summary(self) -> Path:
        return self.folder / "summary.md"

    @property
    def output(self) -> Path:
        return self.folder / "output"

    def environment(self, event: str, inputs: Mapping[str, str] | None = None) -> dict[str, str]:
        input_variables = {f"INPUT_{name.upper()}": value for name, value in (inputs or {}).items()}
        return self.github.environment(event, self.folder) | {"GITHUB_REPOSITORY": self.repository} | input_variables

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
        return self.run(event, inputs)

    def run(self, event: str, inputs: Mapping[str, str] | None = None, **environment: str) -> int:
        """Run the Action on the event file as it is; returns its exit code."""
        self.output.write_text("", encoding="utf-8")
        self.summary.write_text("", encoding="utf-8")
        before = len(self.github.requests)
        now = datetime.fromisoformat(self.github.clock.now) + self.clock_error
        code = self.program(self.environment(event, inputs) | environment, now, write_gap=0)
        if (inputs or {}).get("run") != "rebuild":  # a rebuild waits for a short limit, then continues
            self.github.violations += self.github.wasted_requests(before)
        return code

    def deliver(
        self,
        event: str,
        action: str | None = None,
        number: int | None = None,
        comment: int | None = None,
        *,
        after: int = 20,
        code: int = 0,
        **inputs: str,
    ) -> None:
        """Run the Action so many seconds later, as a runner does; it must end with this exit code.

        Requests are counted from here on.
        """
        self.github.clock.advance(after)
        self.github.mark()
        self.git.mark()
        options = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert self.act(event, action, number, comment, options) == code

    def configure(self, settings: str, path: str = ".github/precedent.yml") -> None:
        """Commit a file to the default branch, by default the settings."""
        self.git.commit(self.repository, path, settings)

    def comments(self, number: int) -> list[str]:
        """The texts of our comments on an issue."""
        return [str(comment.body) for comment in self.github.comments_by(BOT, number)]

    def memory(self, *, writable: bool = False) -> Memory:
        """The memory on the branch now; ``writable``: read and written as a run does."""
        remote = f"{self.git.url}/{self.repository}.git"
        store = BranchStore(remote, "precedent", self.git.token) if writable else BranchTipStore(self.bare)
        self._opened.append(Memory(store, repo=self.repository))
        return self._opened[-1].open()

    def run_git(self, *words: str) -> str:
        """The output of git in the repository on the server."""
        command = ["git", "-C", str(self.bare), *words]
        return subprocess.run(command, check=True, capture_output=True).stdout.decode().strip()

    def outputs(self) -> dict[str, str]:
        """The Action's outputs, read as the runner reads them."""
        return read_outputs_file(self.output.read_text(encoding="utf-8"))

    # -- going back ------------------------------------------------------------------------------------------------

    def begin(self, *steps: Callable[[Stage], object]) -> Self:
        """Go to the state to which these functions bring a new stage. They run once; later only that state is copied.

        No request is counted then, and there is no fault. Nothing else may have happened before the first call.
        """
        folder, self.folder = self.folder, self.root / "first-steps"
        self.folder.mkdir(exist_ok=True)
        state = self._state_after(steps)
        self.folder = folder
        self.reset(state)
        return self

    def _state_after(self, steps: tuple[Callable[[Stage], object], ...]) -> SavedState:
        if steps not in self._states:
            if steps:
                self.reset(self._state_after(steps[:-1]))
                steps[-1](self)
                assert self.github.violations == []
            self._states[steps] = self.save()
        return self._states[steps]

    def save(self) -> SavedState:
        git = Path(tempfile.mkdtemp(dir=self.root, prefix="saved-"))
        shutil.copytree(self.git.folder, git, symlinks=True, dirs_exist_ok=True)
        world, clock = self.github.world, self.github.clock
        kept = _copy(world, {name: getattr(world, name) for name in KEPT})
        return SavedState(kept, self.github.repo.id, clock.now, git, dict(self.git.tokens))

    def reset(self, state: SavedState) -> None:
        """Return to a saved state, with a new fake GitHub and without faults."""
        self._close_memories()
        self.github.stop()
        self.github = self._new_github(state.now)
        world = self.github.world
        for name, value in _copy(world, dict(state.world)).items():
            setattr(world, name, value)
        self.github.repo = world.repositories[state.repository]
        self.git.faults, self.git.tokens, self.git.access = FaultPlan(), dict(state.tokens), None
        self.git.mark()
        shutil.rmtree(self.git.folder)
        shutil.copytree(state.git, self.git.folder, symlinks=True)

    def close(self) -> None:
        self._close_memories()
        self.github.stop()
        self.git.stop()

    def _close_memories(self) -> None:
        while self._opened:
            self._opened.pop().close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Close; fail a test that passed so far if a request or response does not match GitHub's API description."""
        self.close()
        assert kind or self.github.violations == []


def _copy(world: World, state: dict[str, Any]) -> dict[str, Any]:
    """A copy of parts of a world, which shares the world itself, its lock and its clock."""
    return copy.deepcopy(state, {id(shared): shared for shared in (world, world.lock, world.clock)})


def with_decision(stage: Stage) -> None:
    """Add a closed issue (1) that contains a decision."""
    stage.github.set_permission("octocat", "write")
    stage.github.open_issue("octocat", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
    stage.github.close(1, "octocat", at="2025-07-23T10:00:00Z")


def with_past(stage: Stage) -> None:
    """Add a decision (1) and a feature request that was declined (2), both closed long ago."""
    github = stage.github
    github.set_permission("octocat", "write")
    github.open_issue("octocat", "Where should sessions live?", "Files are slow.", at="2025-07-15T10:00:00Z")
    github.comment(1, "octocat", DECISION, at="2025-07-22T10:00:00Z")
    github.close(1, "octocat", at="2025-07-23T10:00:00Z")
    github.open_issue("hubot", "Dark mode for the printer", "At night it glares.", at="2025-08-01T10:00:00Z")
    github.comment(2, "octocat", "We will not do that: paper is white.", at="2025-08-02T10:00:00Z")
    github.close(2, "octocat", "not_planned", at="2025-08-02T10:00:00Z")


def with_mentions(stage: Stage) -> None:
    """Let every mentioned issue that is known lead to a comment."""
    stage.configure("mentions:\n  speak: always\n")


def with_memory(stage: Stage) -> None:
    """Let a run read what there is so far."""
    assert stage.act("schedule") == 0


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
