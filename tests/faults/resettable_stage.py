"""A stage that can be reset: one repository, set up once to a certain point and replayed from there many times."""

from __future__ import annotations

import contextlib
import copy
import io
import os
import subprocess
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from bot.domain.thread import Thread, Tombstone
from tests.acceptance.stage import BOT, REPOSITORY, Stage
from tests.fakes.faults import FaultPlan
from tests.fakes.limits import RateLimits
from tests.fakes.state import Comment

__all__ = ["REPOSITORY", "ResettableStage"]

DECISION = "We decided to go with PostgreSQL; Redis lost every session on restart."
SAVED = ("accounts", "repositories", "names", "tokens")


class ResettableStage:
    """The stage, its saved state, and the log of the last run."""

    def __init__(self, folder: Path, *, validate: bool = True) -> None:
        self.base = stage = Stage(folder, validate=validate)
        self.github, self.git = stage.github, stage.git
        self.log = ""
        self._saved: Any = None
        self._refs: dict[str, str] = {}
        self.github.set_permission("octocat", "write")
        self.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
        self.github.close(1, "octocat", at="2025-07-23T10:00:00Z")

    def act(self, event: str, action: str | None = None, number: int | None = None, comment: int | None = None) -> int:
        """Run the Action 20 seconds later; ``log`` holds its output and summary."""
        self.github.clock.advance(20)
        self.github.mark()
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = self.base.act(event, action, number, comment)
        self.log = out.getvalue() + self.base.summary.read_text(encoding="utf-8")
        return code

    def save_state(self) -> None:
        """Save the state that `reset` returns to."""
        self._saved = self._copy({name: getattr(self.github.world, name) for name in SAVED})
        self._saved["now"] = self.github.clock.now
        self._refs = self.refs()

    def reset(self) -> None:
        """Return to the saved state, without faults."""
        world = self.github.world
        for name, value in self._copy({name: self._saved[name] for name in SAVED}).items():
            setattr(world, name, value)
        world.clock.now = self._saved["now"]
        self.github.repo = world.repositories[self.github.repo.id]
        self.github.limits = RateLimits(world.clock)
        self.github.views.clear()
        self.clear_faults()
        self.restore(self._refs)
        self.github.violations.clear()

    def clear_faults(self) -> None:
        """Remove all faults."""
        self.github.faults.clear()
        self.github.faults.injected.clear()
        self.git.faults = FaultPlan()
        hook = self.base.bare / "hooks" / "pre-receive"
        hook.unlink(missing_ok=True)

    def refs(self) -> dict[str, str]:
        """The commits of the branches on the git server."""
        rows = self.run_git("for-each-ref", "--format=%(refname) %(objectname)").split("\n")
        return dict(row.split() for row in rows if row)

    def restore(self, refs: Mapping[str, str]) -> None:
        """Set the branches of the git server to these."""
        now = self.refs()
        for name in {*now, *refs}:
            if now.get(name) != refs.get(name):
                self.run_git("update-ref", *((name, refs[name]) if name in refs else ("-d", name)))

    def run_git(self, *arguments: str, stdin: bytes = b"", raw: bool = False) -> Any:
        """The output of git on the server: stripped text, or raw bytes."""
        process = subprocess.run(
            ["git", "-C", str(self.base.bare), *arguments], check=True, capture_output=True, input=stdin
        )
        return process.stdout if raw else process.stdout.decode().strip()

    def commit_files(
        self, files: Mapping[str, bytes | None] | None = None, *, parents: list[str], replace_all: bool = False
    ) -> None:
        """Commit as somebody else to the memory branch: add these files to the present ones, or replace all."""
        index = {"GIT_INDEX_FILE": str(self.base.folder / "somebody.index")}
        git = ["git", "-C", str(self.base.bare), "-c", "user.name=octocat", "-c", "user.email=octocat@example.org"]

        def run(*arguments: str, stdin: bytes = b"") -> str:
            process = subprocess.run(
                [*git, *arguments], check=True, capture_output=True, input=stdin, env=os.environ | index
            )
            return process.stdout.decode().strip()

        run("read-tree", "--empty") if replace_all else run("read-tree", "refs/heads/precedent")
        for path, content in (files or {}).items():
            mode = "0" if content is None else "100644"
            blob = run("hash-object", "-w", "--stdin", stdin=content or b"")
            run("update-index", "--add", "--index-info", stdin=f"{mode} {blob}\t{path}\n".encode())
        parent_options = [word for parent in parents for word in ("-p", parent)]
        run(
            "update-ref",
            "refs/heads/precedent",
            run("commit-tree", run("write-tree"), *parent_options, "-m", "Somebody else"),
        )

    def refuse_pushes(self, message: str) -> None:
        """Have the server refuse every push with this message."""
        hook = self.base.bare / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f'#!/bin/sh\necho "{message}" >&2\nexit 1\n', encoding="utf-8")
        hook.chmod(0o755)

    # -- what is there afterwards ----------------------------------------------------------------------------------

    def comments(self, number: int) -> int:
        return len(self.base.comments(number))

    def memory_problems(self, newest: str = "") -> list[str]:
        """What memory lacks or has wrong compared with GitHub; the cursor should be at ``newest``."""
        memory = self.base.memory()
        issues = {number: issue for number, issue in self.github.repo.issues.items() if issue.pull is None}
        records = memory.records(issues)
        problems = []
        for number, issue in issues.items():
            record = records.get(number)
            if isinstance(record, Tombstone) and record.reason != "unseen":
                problems.append(f"{number} is buried")
            elif record is None:
                problems.append(f"{number} is missing")
            elif isinstance(record, Thread) and (record.title, record.state) != (issue.title, issue.state):
                problems.append(f"{number} is not as it is")
            elif isinstance(record, Thread) and len(record.comments) != sum(not _is_ours(c) for c in issue.comments):
                problems.append(f"{number} lacks comments")
        if newest and (
            memory.state.manifest.cursor is None or memory.state.manifest.cursor < datetime.fromisoformat(newest)
        ):
            problems.append(f"the cursor stands at {memory.state.manifest.cursor}, not {newest}")
        memory.close()
        return problems

    def _copy(self, state: dict[str, Any]) -> dict[str, Any]:
        """A copy of part of the world; what cannot be copied is shared."""
        world = self.github.world
        shared = {id(world): world, id(world.lock): world.lock, id(world.clock): world.clock}
        return copy.deepcopy(state, shared)

    def close(self) -> None:
        self.base.close()


def _is_ours(comment: Comment) -> bool:
    return comment.author is not None and comment.author.login == BOT
