"""The story that Precedent was written for: a decision, a question about it, and a search in all conversations."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.stage import BOT, Stage

DECISION = "We decided to use PostgreSQL for the session store: Redis lost every session on a restart."
HISTORY = (
    ("Authentication fails after a restart", "Authentication is lost: all have to log in again.", "Fixed by #40.", ""),
    (
        "Two-factor authentication",
        "Please add two-factor authentication for the admin pages.",
        "We will not build that ourselves: authentication belongs to the identity provider.",
        "not_planned",
    ),
    ("The footer is misaligned", "On wide screens the footer floats.", "Done.", ""),
    ("Slow thumbnails", "Thumbnails take four seconds in the gallery.", "Done.", ""),
)  # fmt: skip


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """Issue 1 decides on a database; four others are about other things, two of them about authentication."""
    with Stage(tmp_path) as stage:
        github = stage.github
        github.set_permission("octocat", "write")
        github.open_issue("monalisa", "Session store", "Where should sessions live?", at="2025-03-01T10:00:00Z")
        github.comment(1, "octocat", DECISION, at="2025-03-12T10:00:00Z")
        github.close(1, "octocat", at="2025-03-13T10:00:00Z")
        for month, (title, body, ending, reason) in enumerate(HISTORY, 4):
            number = github.open_issue("hubot", title, body, at=f"2025-{month:02}-01T10:00:00Z")
            github.comment(number, "octocat", ending, at=f"2025-{month:02}-02T10:00:00Z")
            github.close(number, "octocat", reason or None, at=f"2025-{month:02}-02T10:00:30Z")
        yield stage


def open_issue(stage: Stage, title: str, body: str) -> int:
    number = stage.github.open_issue("monalisa", title, body)
    stage.github.clock.advance(20)
    assert stage.act("issues", "opened", number) == 0
    return number


def test_a_question_about_a_decision_is_answered_with_the_decision(stage: Stage) -> None:
    number = open_issue(stage, "Which database", "What database did we choose in #1?")
    (text,) = stage.comments(number)
    assert "Session store" in text
    assert f"“{DECISION}”" in text
    assert "([maintainer, 12 March 2025](" in text


def test_a_search_through_all_conversations_is_answered_with_hits_and_their_outcomes(stage: Stage) -> None:
    number = open_issue(stage, "Research", "Search all past conversations for mentions of authentication")
    replies = [text for text in stage.comments(number) if "Two-factor authentication" in text]
    (text,) = replies
    assert "Authentication fails after a restart" in text
    assert "authentication belongs to the identity provider" in text
    assert "fixed" in text
    assert "footer" not in text
    assert "thumbnails" not in text.lower()


def test_a_question_in_a_comment_is_answered_once(stage: Stage) -> None:
    number = open_issue(stage, "Zyx", "Wvu tsr qpo.")
    comment = stage.github.comment(number, "monalisa", "What did we decide about the session store?")
    stage.github.clock.advance(20)
    for _ in range(2):
        assert stage.act("issue_comment", "created", number, comment) == 0
        stage.github.clock.advance(200)
    (text,) = stage.comments(number)
    assert DECISION in text
    assert len(stage.github.comments_by(BOT, number)) == 1
