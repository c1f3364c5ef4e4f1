"""A stage that can be set back: one repository, told to a certain point once, and played on from there many times."""

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

__all__ = ["REPOSITORY", "Theatre"]

DECISION = "We decided to go with PostgreSQL; Redis lost every session on restart."
KEPT = ("accounts", "repositories", "names", "tokens")


class Theatre:
    """The stage, its state at the point to which it is set back, and what the last run logged."""

    def __init__(self, folder: Path, *, validate: bool = True) -> None:
        self.stage = stage = Stage(folder, validate=validate)
        self.github, self.git = stage.github, stage.git
        self.log = ""
        self._kept: Any = None
        self._refs: dict[str, str] = {}
        self.github.set_permission("octocat", "write")
        self.github.open_issue("monalisa", "Where should sessions live?", DECISION, at="2025-07-15T10:00:00Z")
        self.github.close(1, "octocat", at="2025-07-23T10:00:00Z")

    def act(self, event: str, action: str | None = None, number: int | None = None, comment: int | None = None) -> int:
        """Run the Action 20 seconds later; what it says is in ``log``, summary included."""
        self.github.clock.advance(20)
        self.github.mark()
        out = io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
            code = self.stage.act(event, action, number, comment)
        self.log = out.getvalue() + self.stage.summary.read_text(encoding="utf-8")
        return code

    def keep(self) -> None:
        """This is the point to come back to."""
        self._kept = self._copied({name: getattr(self.github.world, name) for name in KEPT})
        self._kept["now"] = self.github.clock.now
        self._refs = self.refs()

    def set_back(self) -> None:
        """As it was at the point that was kept, with no fault anywhere."""
        world = self.github.world
        for name, value in self._copied({name: self._kept[name] for name in KEPT}).items():
            setattr(world, name, value)
        world.clock.now = self._kept["now"]
        self.github.repo = world.repositories[self.github.repo.id]
        self.github.limits = RateLimits(world.clock)
        self.github.views.clear()
        self.calm()
        self.restore(self._refs)
        self.github.violations.clear()

    def calm(self) -> None:
        """No more faults."""
        self.github.faults.clear()
        self.github.faults.injected.clear()
        self.git.faults = FaultPlan()
        hook = self.stage.bare / "hooks" / "pre-receive"
        hook.unlink(missing_ok=True)

    def refs(self) -> dict[str, str]:
        """Where the branches of the git server stand."""
        rows = self.run_git("for-each-ref", "--format=%(refname) %(objectname)").split("\n")
        return dict(row.split() for row in rows if row)

    def restore(self, refs: Mapping[str, str]) -> None:
        """Set the branches of the git server to these."""
        now = self.refs()
        for name in {*now, *refs}:
            if now.get(name) != refs.get(name):
                self.run_git("update-ref", *((name, refs[name]) if name in refs else ("-d", name)))

    def run_git(self, *words: str, stdin: bytes = b"", raw: bool = False) -> Any:
        """What git says on the server's side: text without its end, or bytes as they are."""
        done = subprocess.run(["git", "-C", str(self.stage.bare), *words], check=True, capture_output=True, input=stdin)
        return done.stdout if raw else done.stdout.decode().strip()

    def put(self, files: Mapping[str, bytes | None] | None = None, *, parents: list[str], anew: bool = False) -> None:
        """A commit of somebody else on the memory branch: these files over those that are there, or instead of them."""
        index = {"GIT_INDEX_FILE": str(self.stage.folder / "somebody.index")}
        git = ["git", "-C", str(self.stage.bare), "-c", "user.name=octocat", "-c", "user.email=octocat@example.org"]

        def run(*words: str, stdin: bytes = b"") -> str:
            done = subprocess.run([*git, *words], check=True, capture_output=True, input=stdin, env=os.environ | index)
            return done.stdout.decode().strip()

        run("read-tree", "--empty") if anew else run("read-tree", "refs/heads/precedent")
        for path, content in (files or {}).items():
            mode = "0" if content is None else "100644"
            blob = run("hash-object", "-w", "--stdin", stdin=content or b"")
            run("update-index", "--add", "--index-info", stdin=f"{mode} {blob}\t{path}\n".encode())
        past = [word for parent in parents for word in ("-p", parent)]
        run("update-ref", "refs/heads/precedent", run("commit-tree", run("write-tree"), *past, "-m", "Somebody else"))

    def refuse_pushes(self, words: str) -> None:
        """Have the server refuse every push with these words."""
        hook = self.stage.bare / "hooks" / "pre-receive"
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f'#!/bin/sh\necho "{words}" >&2\nexit 1\n', encoding="utf-8")
        hook.chmod(0o755)

    # -- what stands afterwards ------------------------------------------------------------------------------------

    def comments(self, number: int) -> int:
        return len(self.stage.comments(number))

    def lacks(self, newest: str = "") -> list[str]:
        """What memory does not have, or not rightly, of all that GitHub shows; the cursor is to be at ``newest``."""
        memory = self.stage.memory()
        shown = {number: issue for number, issue in self.github.repo.issues.items() if issue.pull is None}
        held = memory.records(shown)
        wrong = []
        for number, issue in shown.items():
            record = held.get(number)
            if isinstance(record, Tombstone) and record.reason != "unseen":
                wrong.append(f"{number} is buried")
            elif record is None:
                wrong.append(f"{number} is missing")
            elif isinstance(record, Thread) and (record.title, record.state) != (issue.title, issue.state):
                wrong.append(f"{number} is not as it is")
            elif isinstance(record, Thread) and len(record.comments) != sum(not _is_ours(c) for c in issue.comments):
                wrong.append(f"{number} lacks comments")
        if newest and (
            memory.state.manifest.cursor is None or memory.state.manifest.cursor < datetime.fromisoformat(newest)
        ):
            wrong.append(f"the cursor stands at {memory.state.manifest.cursor}, not {newest}")
        memory.close()
        return wrong

    def _copied(self, state: dict[str, Any]) -> dict[str, Any]:
        """A copy of a part of the world; what cannot be copied is shared."""
        world = self.github.world
        shared = {id(world): world, id(world.lock): world.lock, id(world.clock): world.clock}
        return copy.deepcopy(state, shared)

    def close(self) -> None:
        self.stage.close()


def _is_ours(comment: Comment) -> bool:
    return comment.author is not None and comment.author.login == BOT
