"""What `precedent check` and the tool for agents show for a draft is what the Action writes once it is filed."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from bot.local_cache.local_memory import MemoryOptions
from bot.mcp.server import answer
from bot.mcp.tools import MAX_DRAFT_TITLE, ToolContext
from tests.acceptance.replay import read_threads
from tests.acceptance.stage import REPOSITORY, Stage
from tests.cli.program_result import Run
from tests.examples import THOROUGH
from tools.demo import visible

SETTINGS = "mode: comment\ncomment: {daily_limit: 500}\nsimilar: {threshold: 0.2}\n"
LEAD = "We have met this before."
TEMPLATE = f'{{% extends "shipped/%s" %}}{{% block lead %}}{LEAD}{{% endblock %}}\n'
QUESTIONS = 50 if THOROUGH else 12


def clone_of(stage: Stage, folder: Path, patch: pytest.MonkeyPatch) -> Path:
    """A checkout of the repository; git replaces the server's address with that of a folder."""
    address = f"{stage.git.url}/{REPOSITORY}.git"
    (folder / ".gitconfig").write_text(f'[url "file://{stage.bare}"]\n\tinsteadOf = {address}\n')
    patch.setenv("HOME", str(folder))
    patch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    subprocess.run(["git", "clone", "--quiet", "--single-branch", address, str(folder / "clone")], check=True)
    patch.chdir(folder / "clone")
    return folder / "clone"


def file_issue(stage: Stage, title: str, body: str, number: int) -> str:
    """The comment that the Action writes under this issue, as people see it; "" for silence."""
    stage.github.clock.advance(20)
    stage.github.repo.next_number = number
    stage.github.open_issue("hubot", title, body)
    assert stage.act("issues", "opened", number) == 0
    return "".join(map(visible, stage.comments(number)))


@pytest.mark.shared
@pytest.mark.night
@pytest.mark.slow
def test_checking_a_draft_shows_the_comment_that_the_action_will_write(
    shared: Path, tmp_path: Path, call: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    archive = list(read_threads(shared / "threads/bitcoin_gui.jsonl.gz").values())
    older, drafts = archive[-200:-QUESTIONS], archive[-QUESTIONS:]
    stage = Stage(tmp_path, f"{datetime.now(UTC) - timedelta(hours=2):%Y-%m-%dT%H:%M:%SZ}", validate=False)
    try:
        stage.github.load_archive(older)
        stage.git.commit(REPOSITORY, ".github/precedent.yml", SETTINGS)
        for name in ("context.md.j2", "troubleshooting.md.j2"):
            stage.git.commit(REPOSITORY, f".github/precedent/{name}", TEMPLATE.replace("%s", name))
        assert stage.act("workflow_dispatch", inputs={"run": "rebuild"}) == 0
        checkout = clone_of(stage, tmp_path, monkeypatch)
        context = ToolContext(MemoryOptions(checkout, refresh=True))
        comments = []
        for draft in drafts:
            title, body = draft["title"][:MAX_DRAFT_TITLE], draft["body"] or ""
            capsys.readouterr()  # what the Action logged
            (tmp_path / "draft.md").write_text(body, encoding="utf-8", newline="")
            result = call("check", tmp_path / "draft.md", f"--title={title}", "--comment", "--refresh")
            tool_answer = answer(context, "check_draft", {"title": title, "body": body})
            assert not tool_answer.failed, tool_answer.text
            comment = file_issue(stage, title, body, draft["id"])
            assert result.out == tool_answer.data["comment"] == comment
            assert (result.code == 3) == (not tool_answer.data["nothing_relevant"]) == bool(comment)
            comments.append(comment)
    finally:
        stage.close()
    assert len(comments) == QUESTIONS
    non_empty = [text for text in comments if text]
    with capsys.disabled():
        print(f"\n{QUESTIONS} drafts, {len(non_empty)} comments")
    assert all(text.startswith(LEAD) for text in non_empty)
    assert QUESTIONS / 5 < len(non_empty) < QUESTIONS
