"""What `precedent check` and the tool for agents say of a draft is what the Action writes when it is filed."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import MAX_DRAFT_TITLE, ToolContext
from tests.acceptance.replay import read
from tests.acceptance.stage import REPOSITORY, Stage
from tests.cli.console import Run
from tests.examples import THOROUGH
from tools.demo import visible

SETTINGS = "mode: comment\ncomment: {daily_limit: 500}\ntroubleshooting: {similarity_threshold: 0.2}\n"
LEAD = "We have met this before."
TEMPLATE = f'{{% extends "shipped/%s" %}}{{% block lead %}}{LEAD}{{% endblock %}}\n'
QUESTIONS = 50 if THOROUGH else 12


def clone_of(stage: Stage, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A checkout of the repository; git takes the server's address for that of a folder."""
    address = f"{stage.git.url}/{REPOSITORY}.git"
    (folder / ".gitconfig").write_text(f'[url "file://{stage.bare}"]\n\tinsteadOf = {address}\n')
    patch.setenv("HOME", str(folder))
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    subprocess.run(["git", "clone", "--quiet", "--single-branch", address, str(folder / "clone")], check=True)
    patch.chdir(folder / "clone")
    return folder / "clone"


def filed(stage: Stage, title: str, body: str, number: int) -> str:
    """The comment that the Action writes under this issue, as people see it; "" for silence."""
    stage.github.clock.advance(20)
    stage.github.repo.next_number = number
    stage.github.open_issue("hubot", title, body)
    assert stage.act("issues", "opened", number) == 0
    return "".join(map(visible, stage.comments(number)))


@pytest.mark.shared
@pytest.mark.slow
def test_a_checked_draft_gets_the_words_of_the_comment_that_the_action_writes(
    shared: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = list(read(shared / "threads/bitcoin_gui.jsonl.gz").values())
    older, drafts = archive[-200:-QUESTIONS], archive[-QUESTIONS:]
    stage = Stage(tmp_path, f"{datetime.now(UTC) - timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}", validate=False)
    try:
        stage.github.load_archive(older)
        stage.git.commit(REPOSITORY, ".github/precedent.yml", SETTINGS)
        for name in ("context.md.j2", "troubleshooting.md.j2"):
            stage.git.commit(REPOSITORY, f".github/precedent/{name}", TEMPLATE.replace("%s", name))
        assert stage.act("workflow_dispatch", inputs={"run": "rebuild"}) == 0
        checkout = clone_of(stage, tmp_path, monkeypatch)
        desk = ToolContext(MemoryOptions(checkout, refresh=True))
        told = []
        for one in drafts:
            title, body = one["title"][:MAX_DRAFT_TITLE], one["body"] or ""
            capsys.readouterr()  # what the Action logged
            (tmp_path / "draft.md").write_text(body, encoding="utf-8", newline="")
            ended = call("check", tmp_path / "draft.md", f"--title={title}", "--comment", "--refresh")
            agents = answer(desk, "check_draft", {"title": title, "body": body})
            assert not agents.failed, agents.text
            written = filed(stage, title, body, one["id"])
            assert ended.out == agents.data["comment"] == written
            assert (ended.code == 3) == (not agents.data["nothing_relevant"]) == bool(written)
            told.append(written)
    finally:
        stage.close()
    assert len(told) == QUESTIONS
    spoken = [each for each in told if each]
    with capsys.disabled():
        print(f"\n{QUESTIONS} drafts, {len(spoken)} comments")
    assert all(each.startswith(LEAD) for each in spoken)
    assert QUESTIONS / 5 < len(spoken) < QUESTIONS
