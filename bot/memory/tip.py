"""The newest commit of a branch, looked at and nothing more: when it was written, and how far the branch has grown."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from bot.memory.branch import Growth
from bot.memory.disk import on_disk
from bot.memory.git import TIP, Git
from bot.memory.git_errors import RefMissing
from bot.memory.remote import Remote, at, checked_branch


@dataclass(frozen=True, slots=True)
class Tip:
    """The commit that a branch stands at; ``at`` is when it was written, None where it says no time that there is."""

    oid: str
    at: datetime | None
    growth: Growth


def read_tip(url: str | Remote, token: str | None, branch: str) -> Tip | None:
    """The newest commit of ``branch`` at ``url``, None where there is no such branch. Two requests, nothing is kept."""
    ref = f"refs/heads/{checked_branch(branch)}"
    with on_disk("make a temporary folder"), tempfile.TemporaryDirectory(prefix="precedent-") as folder:
        with Git(Path(folder) / "tip.git", at(url, token)) as git:
            git.init()
            try:
                git.fetch_tip(ref, ["tree:0", "blob:none"])
            except RefMissing:
                return None
            commit = git.objects.commit(TIP)
        return Tip(commit.oid, commit.at, Growth.of(commit.message))
