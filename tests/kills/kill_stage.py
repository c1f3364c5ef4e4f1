"""The demo's repository in the state before a kill, the events in it, and runs of the Action as processes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tests.acceptance.stage import Stage, with_memory
from tests.fakes.archive import read_archive
from tests.kills.gated_servers import Gate, WatchedGit, WatchedGitHub
from tests.kills.process import ROOT, ActionProcess

SAMPLE = ROOT / "sample"
STORY: Mapping[str, Any] = json.loads((SAMPLE / "events.json").read_text(encoding="utf-8"))
NUMBER: int = STORY["issue"]["number"]
"""The issue of the story."""
COMMAND = "/precedent search SESSION_PATH_MISMATCH cookie path"


@dataclass(frozen=True, slots=True)
class Event:
    """An event as the runner delivers it. ``number`` and ``comment`` are the issue and the comment that it is about."""

    name: str
    action: str | None = None
    number: int | None = None
    comment: int | None = None


class KillStage(Stage):
    """A stage whose servers are behind a gate; ``log`` and ``temporary`` are those of the runs of one scenario."""

    def __init__(self, folder: Path) -> None:
        self.gate, self.log, self.temporary = Gate(), folder / "log", folder / "tmp"
        servers = {"github": partial(WatchedGitHub, gate=self.gate), "git": partial(WatchedGit, gate=self.gate)}
        super().__init__(
            folder, STORY["issue"]["created_at"], validate=False, repository=STORY["repository"], **servers
        )

    def trigger(self, scenario: str) -> Event:
        """Go to the state with which a scenario begins, and make the change that the killed run handles."""
        self.begin(*STARTS[scenario])
        self.log.unlink(missing_ok=True)
        shutil.rmtree(self.temporary, ignore_errors=True)
        self.temporary.mkdir()
        self.gate.after_request = lambda: None
        if scenario in ("opened", "first"):
            return open_issue(self)
        remark = STORY["comment"]
        text = COMMAND if scenario == "command" else remark["body"]
        comment = self.github.comment(NUMBER, remark["author"], text, at=remark["created_at"])
        return Event("issue_comment", "created", NUMBER, comment)

    def open_unrelated_issue(self) -> Event:
        """Open an issue about which memory knows nothing."""
        (issue,) = (entry["issue"] for entry in STORY["more"] if entry["expect"] == "silent")
        return Event("issues", "opened", self.github.open_issue(issue["author"], issue["title"], issue["body"]))

    def start(self, event: Event) -> ActionProcess:
        """Start the Action on an event, at the fake's time, in a process of its own."""
        self.github.write_event(self.folder / "event.json", event.name, event.action, event.number, event.comment)
        environment = self.environment(event.name) | {"TMPDIR": str(self.temporary)}
        return ActionProcess(environment, self.github.clock.now, self.log)

    def temporary_files(self) -> set[str]:
        """The names in the temporary folder."""
        return {path.name for path in self.temporary.iterdir()}


def with_history(stage: Stage) -> None:
    stage.git.commit(stage.repository, "README.md", "# Linkbarn\n")
    stage.github.load_archive(read_archive(SAMPLE / "history.jsonl"))


def open_issue(stage: Stage) -> Event:
    issue = STORY["issue"]
    assert stage.github.open_issue(issue["author"], issue["title"], issue["body"], at=issue["created_at"]) == NUMBER
    return Event("issues", "opened", NUMBER)


def answer_issue(stage: Stage) -> None:
    open_issue(stage)
    stage.deliver("issues", "opened", NUMBER)


STARTS = {
    "opened": (with_history, with_memory),
    "comment": (with_history, with_memory, answer_issue),
    "command": (with_history, with_memory, answer_issue),
    "first": (with_history,),
}
"""What the killed run handles (a new issue, a comment that refers to another issue, a command, or the first run), and
what happened before."""
