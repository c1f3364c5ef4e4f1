"""From a webhook to the comment: the server says what the Action says of the same events."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.stage import BOT, Stage
from tests.fakes.github import FakeGitHub
from tests.server.stage import READY, SLUG, ServerStage, until

pytestmark = pytest.mark.slow

DECISION = "We decided to use PostgreSQL for the session store: Redis lost every session on a restart."


def told_before(github: FakeGitHub) -> None:
    """Issue 1 decides for a database, issue 2 is a wish that was declined."""
    github.set_permission("octocat", "write")
    github.open_issue("monalisa", "Session store", "Where should sessions live?", at="2025-03-01T10:00:00Z")
    github.comment(1, "octocat", DECISION, at="2025-03-12T10:00:00Z")
    github.close(1, "octocat", at="2025-03-13T10:00:00Z")
    github.open_issue("hubot", "Dark mode for the printer", "At night it glares.", at="2025-04-01T10:00:00Z")
    github.comment(2, "octocat", "We will not do that: paper is white.", at="2025-04-02T10:00:00Z")
    github.close(2, "octocat", "not_planned", at="2025-04-02T10:00:00Z")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerStage]:
    made = ServerStage(tmp_path / "server")
    told_before(made.github)
    yield made
    made.close()
    assert made.github.violations == []


@pytest.fixture
def action(tmp_path: Path) -> Iterator[Stage]:
    (tmp_path / "action").mkdir()
    with Stage(tmp_path / "action", None) as made:  # type: ignore[arg-type]  # the real time, as the server has it
        told_before(made.github)
        yield made


def said(github: FakeGitHub, login: str, number: int, site: str, instance: str) -> list[str]:
    """Our comments on an issue, without what differs between two places; the second half of a seal is of the text."""
    texts = [str(comment.body) for comment in github.comments_by(login, number)]
    texts = [re.sub(r"(?<=reply=)[0-9]+", "COMMENT", text) for text in texts]
    texts = [text.replace(site, "SITE").replace(f"precedent:v1 id={instance}", "precedent:v1") for text in texts]
    return [re.sub(r"(?<=precedent-seal [0-9a-f]{16}) [0-9a-f]{16}", "", text) for text in texts]


def opened(github: FakeGitHub) -> Iterator[tuple[Any, ...]]:
    """One after the other: an issue that points at another, a comment that does, and a command."""
    number = github.open_issue("monalisa", "Which database", "What database did we choose in #1?")
    yield "issues", "opened", number
    number = github.open_issue("hubot", "Printing at night", "It is too bright.")
    yield "issue_comment", "created", number, github.comment(number, "hubot", "Was that not asked for in #2?")
    number = github.open_issue("monalisa", "Zyx", "Wvu tsr qpo.")
    yield "issue_comment", "created", number, github.comment(number, "octocat", "/precedent search session store")


def test_three_deliveries_bring_the_comments_that_the_action_writes(server: ServerStage, action: Stage) -> None:
    server.start()
    numbers = []
    for what in opened(server.github):
        assert server.deliver(*what) == 202
        server.settle(READY)
        numbers.append(what[2])
    for what in opened(action.github):
        assert action.act(*what) == 0
    for number in numbers:
        ours = said(server.github, f"{SLUG}[bot]", number, server.git.url, "app")
        assert ours == said(action.github, BOT, number, action.git.url, "action")
        assert ours, f"nothing was said on {number}"


@pytest.mark.waits
def test_what_an_issue_shows_of_another_stays_true(server: ServerStage) -> None:
    """Twelve comments quote a decision that is deleted: ten are changed in the run of that event, two in the next."""
    server.start()
    github, login = server.github, f"{SLUG}[bot]"
    numbers = [github.open_issue("monalisa", f"Which database, {n}", "What did we choose in #1?") for n in range(12)]
    for number in numbers:
        assert server.deliver("issues", "opened", number) == 202
        server.settle(READY)
    assert all(DECISION in github.comments_by(login, number)[0].body for number in numbers)
    (decision,) = (comment.id for comment in github.issue(1).comments)
    github.delete_comment(decision)
    assert server.deliver("issue_comment", "deleted", 1, decision) == 202
    server.settle(READY)
    bodies = [github.comments_by(login, number)[0].body for number in numbers]
    assert sum(DECISION not in body for body in bodies) >= 10
    until(lambda: all(DECISION not in github.comments_by(login, number)[0].body for number in numbers), 200)


def test_what_was_said_and_why_is_on_the_status_page(server: ServerStage) -> None:
    server.start()
    server.rest()  # the first look around would else meet the issue, and answer it, before GitHub tells of it
    number = server.github.open_issue("monalisa", "Which database", "What database did we choose in #1?")
    assert server.deliver("issues", "opened", number) == 202
    server.settle(READY)
    (row,) = [each for each in server.rows() if each.event.number == number]
    assert (row.state, row.said) == ("done", "created")
    status, page = server.get(f"/deliveries/{row.seq}")
    assert status == 200
    assert row.url in page
