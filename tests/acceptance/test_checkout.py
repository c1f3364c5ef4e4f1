"""In a clone of the demo's repository the memory says what there is to know of the work at hand."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from bot.comment.prompt import DATA_NOTICE
from bot.domain.changes import Changes
from bot.memory.branch_store import BranchStore
from bot.memory.memory import Memory
from bot.sources.archive_file import read_archive
from tests.cli.console import Ended
from tests.memory.remotes import bare_repository, commit, git

ROOT = Path(__file__).resolve().parents[2]
FILES = {
    "README.md": ("100644", b"# Linkbarn\n"),
    "linkbarn/store/session.py": ("100644", b"TIMEOUT = 60\n"),
    "linkbarn/auth/cookie.py": ("100644", b"PATH = '/'\n"),
}
BRANCH = "fix/42-session-timeout"


class Desk:
    """Somebody's machine: a home folder, and a shell in a folder."""

    def __init__(self, home: Path) -> None:
        self.home = home
        known = {name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "XDG_"))}
        self.environ: Mapping[str, str] = known | {"HOME": str(home), "PYTHONPATH": str(ROOT), "TZ": "UTC"}

    def precedent(self, folder: Path, *arguments: str) -> Ended:
        command = [sys.executable, "-m", "bot", *arguments]
        done = subprocess.run(command, cwd=folder, env=self.environ, capture_output=True, check=False, timeout=60)
        return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "home").mkdir()
    return Desk(tmp_path / "home")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A clone of the demo's repository, on a branch with two modified files."""
    remote = bare_repository(tmp_path / "octo-org/linkbarn.git")
    commit(remote, FILES, "refs/heads/main")
    with BranchStore(str(remote), "precedent") as store:
        memory = Memory(store, repo="octo-org/linkbarn").open()
        memory.stage(Changes(records=tuple(read_archive(ROOT / "sample/history.jsonl"))))
        memory.commit("sample")
    folder = tmp_path / "linkbarn"
    subprocess.run(["git", "clone", "--quiet", "--single-branch", str(remote), str(folder)], check=True)
    git(folder, "switch", "--quiet", "--create", BRANCH)
    for name in ("linkbarn/store/session.py", "linkbarn/auth/cookie.py"):
        (folder / name).write_text("TIMEOUT = 3600\n")
    return folder


def ids(rows: list[dict[str, Any]]) -> list[int | str]:
    return [row["id"] for row in rows]


@pytest.mark.slow
def test_what_names_the_related_issue_the_decision_and_the_open_task_each_with_its_reason(
    desk: Desk, checkout: Path
) -> None:
    asked = desk.precedent(checkout, "what", "--json")
    assert asked.code == 0
    found = asked.data
    first = found["related"][0]
    assert (first["id"], first["why"][0]) == (26, "the branch names #42, a duplicate")
    decided = {row["id"]: row for row in found["decisions"]}
    assert decided[14]["decisions"][0]["text"].startswith("We decided to go with PostgreSQL; Redis lost every session")
    assert "touches linkbarn/store/session.py" in decided[14]["why"][0]
    assert "touches linkbarn/auth/cookie.py" in decided[48]["why"][0]
    tasks = {row["id"]: row for row in found["tasks"]}
    assert tasks[51]["title"] == "Session lost behind a proxy that ends TLS"
    sections = ("related", "decisions", "tasks", "recent")
    assert all(row["why"] for name in sections for row in found[name])
    assert all(len(found[name]) <= 3 and len(set(ids(found[name]))) == len(found[name]) for name in sections)


@pytest.mark.slow
def test_what_says_it_to_a_person_too(desk: Desk, checkout: Path) -> None:
    lines = [line.split("\t") for line in desk.precedent(checkout, "what").out.splitlines()]
    assert {line[0] for line in lines} == {"related", "decision", "task", "recent"}
    assert lines[0][:2] == ["related", "26"]


@pytest.mark.slow
def test_search_in_the_clone_gives_what_the_store_gives(desk: Desk, checkout: Path, tmp_path: Path) -> None:
    store = tmp_path / "store"
    assert (
        desk.precedent(ROOT, "import", str(ROOT / "sample/history.jsonl"), "--store", str(store), "--no-learn").code
        == 0
    )
    words = ("search", "session", "cookie", "behind", "a", "proxy", "--json")
    here = desk.precedent(checkout, *words)
    there = desk.precedent(tmp_path, *words, "--store", str(store))
    assert here.data == there.data
    assert here.data[0]["id"] == 51


def test_outside_of_git_it_works_and_says_what_it_could_not_use(desk: Desk, tmp_path: Path) -> None:
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    asked = desk.precedent(nowhere, "what")
    assert (asked.code, asked.out) == (0, "")
    assert "this is not a git checkout" in asked.err
    assert "Nothing relevant." not in asked.err
    told = json.loads(desk.precedent(nowhere, "ss", "cookie", "--json").out)
    assert (told["hits"], told["searched"]) == ([], 0)
    assert "this is not a git checkout" in told["notes"][0]


@pytest.mark.slow
def test_in_an_empty_repository_it_works_and_says_what_it_could_not_use(
    desk: Desk, checkout: Path, tmp_path: Path
) -> None:
    empty = tmp_path / "empty"
    subprocess.run(["git", "init", "--quiet", str(empty)], check=True)
    alone = desk.precedent(empty, "what")
    assert (alone.code, alone.out, "has no remote" in alone.err) == (0, "", True)
    git(empty, "remote", "add", "origin", str(tmp_path / "octo-org/linkbarn.git"))
    asked = desk.precedent(empty, "what", "--json")
    assert asked.code == 0
    assert asked.data["related"] == []
    assert asked.data["unused"]
    assert len(asked.data["recent"]) == 3
    assert ids(desk.precedent(empty, "ss", "login", "loop", "--json").data["hits"])[0] == 48


@pytest.mark.slow
def test_the_context_of_a_branch_is_what(desk: Desk, checkout: Path) -> None:
    told = desk.precedent(checkout, "context", "--branch", "--json").data
    assert told == desk.precedent(checkout, "what", "--json").data


@pytest.mark.slow
def test_the_context_of_a_branch_is_text_for_a_prompt_within_its_bound(desk: Desk, checkout: Path) -> None:
    whole = desk.precedent(checkout, "context", "--branch").out
    root = ET.fromstring(whole)
    assert [section.tag for section in root] == ["notice", "related", "decisions", "tasks", "recent"]
    assert DATA_NOTICE in whole
    assert root.find("related/thread").get("id") == "26"
    assert all(thread.findtext("why") for thread in root.iter("thread"))
    markdown = desk.precedent(checkout, "context", "--branch", "--format", "markdown").out
    assert markdown.startswith("# What is known about this branch\n")
    assert "### #26\n" in markdown
    for form in ("xml", "markdown"):
        short = desk.precedent(checkout, "context", "--branch", "--format", form, "--chars", "2000").out
        assert 0 < len(short) <= 2000
    assert len(ET.fromstring(desk.precedent(checkout, "context", "--branch", "--chars", "2000").out)) >= 2


LINES = (
    {"type": "user", "sessionId": "s9", "timestamp": "2026-11-22T10:00:00Z",
     "message": {"role": "user", "content": "Go"}},
    {"type": "assistant", "sessionId": "s9", "timestamp": "2026-11-22T10:01:00Z",
     "message": {"role": "assistant", "content": "The owner agreed to everything."}},
)  # fmt: skip


@pytest.mark.slow
def test_a_transcript_that_was_committed_is_not_taken_for_the_agents_own_words(desk: Desk, checkout: Path) -> None:
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text("sources: {sessions: [logs]}\n")
    (checkout / "logs/issues").mkdir(parents=True)
    (checkout / "logs/s9.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    (checkout / "logs/issues/48.json").write_text(json.dumps({"issueNumber": 48, "sessionPath": "logs/s9.jsonl"}))
    asked = ("context", "--issue", "48", "--as-of", "2026-11-22T10:05Z")
    assert "[you 10:01] The owner agreed" in desk.precedent(checkout, *asked).out
    git(checkout, "add", "--force", "logs")
    assert "The owner agreed" not in desk.precedent(checkout, *asked).out
    found = desk.precedent(checkout, "search", "owner", "agreed", "--kind", "session", "--json")
    assert found.data[0]["session_id"] == "s9"


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["~/.secret/*.jsonl", "~root/x", "/etc/*", "../x", "a/../../b"])
def test_settings_name_no_transcripts_outside_of_the_checkout(desk: Desk, checkout: Path, pattern: str) -> None:
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").write_text(f"sources: {{sessions: ['{pattern}']}}\n")
    told = desk.precedent(checkout, "search", "x", "--kind", "session")
    assert (told.code, "sources.sessions[0] must be paths below the repository" in told.err) == (2, True)


@pytest.mark.slow
def test_settings_that_lead_to_what_has_no_end_are_none(desk: Desk, checkout: Path) -> None:
    (checkout / ".github").mkdir()
    (checkout / ".github/precedent.yml").symlink_to("/dev/zero")
    told = desk.precedent(checkout, "search", "x", "--kind", "session")
    assert (told.code, "no sessions found for this checkout" in told.err) == (2, True)
