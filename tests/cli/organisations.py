"""An organisation for tests: repositories on this machine whose memory branches are read with git."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from bot.domain.changes import Changes
from bot.domain.thread import Message, Record, Thread
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from tests.memory.remotes import bare_repository, commit, git

THEN = datetime(2026, 3, 1, 12, tzinfo=UTC)


def issue(number: int, title: str, body: str = "", *comment_texts: str, **fields: Any) -> Thread:
    """An issue by a contributor, with answers by a member."""
    comments = tuple(
        Message("monalisa", "MEMBER", THEN + timedelta(hours=n + 1), text) for n, text in enumerate(comment_texts)
    )
    fields = {"role": "CONTRIBUTOR", "updated_at": THEN + timedelta(days=1), **fields}
    return Thread(number, title, body, "octocat", THEN, comments=comments, **fields)


def solved_issue(number: int, title: str, body: str, comment: str) -> Thread:
    closing = {"state": "closed", "state_reason": "completed", "closed_by": "monalisa"}
    return issue(number, title, body, comment, closed_at=THEN + timedelta(days=1), **closing)


@dataclass
class Organisation:
    """Repositories below ``folder``, which git in the home folder there reaches as ``https://github.com``."""

    folder: Path

    def remote(self, name: str) -> Path:
        return self.folder / "github" / f"{name}.git"

    def remember(self, name: str, *records: Record) -> None:
        """Write threads to the memory branch of a repository, which is created if it is missing."""
        if not self.remote(name).exists():
            commit(bare_repository(self.remote(name)), {"a": ("100644", b"a")}, "refs/heads/main")
        with BranchStore(str(self.remote(name)), "precedent") as store:
            memory = Memory(store, repo=name).open()
            memory.stage(Changes(records=records))
            assert memory.commit("records")

    def checkout(self, name: str, settings: str = "") -> Path:
        """Create a checkout of a repository with these settings."""
        top = self.folder / "work" / name.partition("/")[2]
        top.mkdir(parents=True)
        git(top, "init", "--quiet")
        git(top, "remote", "add", "origin", f"git@github.com:{name}.git")
        (top / ".github").mkdir()
        (top / ".github/precedent.yml").write_text(settings)
        return top


def work_at(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Organisation:
    """Work in an empty folder of a home folder whose git finds the repositories of this organisation."""
    home = folder / "home"
    (home / "here").mkdir(parents=True, exist_ok=True)
    for name in [name for name in os.environ if name.startswith(("GIT_", "GITHUB_", "PRECEDENT_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    instead_of = "".join(f"\tinsteadOf = {url}\n" for url in ("https://github.com/", "git@github.com:"))
    (home / ".gitconfig").write_text(f'[url "{folder}/github/"]\n{instead_of}')
    monkeypatch.chdir(home / "here")
    return Organisation(folder)


def build_organisation(folder: Path) -> None:
    """Create two repositories and a home folder in which both are added to a list."""
    from bot.cli.main import main

    with pytest.MonkeyPatch.context() as patch:
        remember_both(work_at(folder, patch))
        assert main(["org", "add", "octo-org/sdk", "octo-org/app"]) == 0


def remember_both(organisation: Organisation) -> None:
    organisation.remember(
        "octo-org/sdk",
        solved_issue(
            12, "Token refresh loops behind a proxy", "It says `TOKEN_EXPIRED`.", "Fixed by #13, released in v4.2."
        ),
        issue(14, "Document the retry policy", "Which errors are retried?"),
    )
    organisation.remember(
        "octo-org/app", issue(7, "Login page is blank", "Since the upgrade the proxy gets an empty page.")
    )
