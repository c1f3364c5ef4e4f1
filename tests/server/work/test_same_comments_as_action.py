"""From a webhook to the comment: the server writes what the Action writes for the same events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.stage import BOT, Stage, with_past
from tests.fakes.github import FakeGitHub
from tests.server.server_process import READY, SLUG, ServerStage

pytestmark = pytest.mark.slow


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerStage]:
    stage = ServerStage(tmp_path / "server")
    with_past(stage)
    yield stage
    stage.close()
    assert stage.github.violations == []


@pytest.fixture
def action(tmp_path: Path) -> Iterator[Stage]:
    (tmp_path / "action").mkdir()
    with Stage(tmp_path / "action", None) as stage:  # type: ignore[arg-type]  # the real time, as on the server
        with_past(stage)
        yield stage


def our_comments(github: FakeGitHub, login: str, number: int, site: str, instance: str) -> list[str]:
    """Return our comments on an issue without what differs between two sites, such as the second half of a seal."""
    texts = [str(comment.body) for comment in github.comments_by(login, number)]
    texts = [re.sub(r"(?<=reply=)[0-9]+", "COMMENT", text) for text in texts]
    texts = [text.replace(site, "SITE").replace(f"precedent:v1 id={instance}", "precedent:v1") for text in texts]
    return [re.sub(r"(?<=precedent-seal [0-9a-f]{16}) [0-9a-f]{16}", "", text) for text in texts]


def open_issues(github: FakeGitHub) -> Iterator[tuple[Any, ...]]:
    """Yield one after the other an issue that refers to another, such a comment, and a command."""
    number = github.open_issue("monalisa", "Which database", "What database did we choose in #1?")
    yield "issues", "opened", number
    number = github.open_issue("monalisa", "Printing at night", "It is too bright.")
    yield "issue_comment", "created", number, github.comment(number, "monalisa", "Was that not asked for in #2?")
    number = github.open_issue("monalisa", "Zyx", "Wvu tsr qpo.")
    yield "issue_comment", "created", number, github.comment(number, "octocat", "/precedent search lost sessions")


@pytest.mark.night
def test_the_server_writes_the_same_comments_as_the_action(server: ServerStage, action: Stage) -> None:
    server.start()
    numbers = []
    for event in open_issues(server.github):
        assert server.deliver(*event) == 202
        server.settle(READY)
        numbers.append(event[2])
    for event in open_issues(action.github):
        assert action.act(*event) == 0
    for number in numbers:
        ours = our_comments(server.github, f"{SLUG}[bot]", number, server.git.url, "app")
        assert ours == our_comments(action.github, BOT, number, action.git.url, "action")
        assert ours, f"nothing was said on {number}"
