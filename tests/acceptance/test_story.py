"""The stories that Precedent was written for: a comment with what is known, questions about decisions, and a search."""

from __future__ import annotations

import pytest

from tests.acceptance.stage import BOT, Stage, summary, with_memory, with_past

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
def office(empty_stage: Stage) -> Stage:
    """Issue 1 decides on a database; four others are about other things, two of them about authentication."""
    return empty_stage.begin(with_conversations, with_memory)


def with_conversations(stage: Stage) -> None:
    github = stage.github
    github.set_permission("octocat", "write")
    github.open_issue("octocat", "Session store", "Where should sessions live?", at="2025-03-01T10:00:00Z")
    github.comment(1, "octocat", DECISION, at="2025-03-12T10:00:00Z")
    github.close(1, "octocat", at="2025-03-13T10:00:00Z")
    for month, (title, body, ending, reason) in enumerate(HISTORY, 4):
        number = github.open_issue("hubot", title, body, at=f"2025-{month:02}-01T10:00:00Z")
        github.comment(number, "octocat", ending, at=f"2025-{month:02}-02T10:00:00Z")
        github.close(number, "octocat", reason or None, at=f"2025-{month:02}-02T10:00:30Z")


def open_issue(stage: Stage, title: str, body: str) -> int:
    number = stage.github.open_issue("monalisa", title, body)
    stage.deliver("issues", "opened", number)
    return number


def test_a_question_about_a_decision_is_answered_with_the_decision(office: Stage) -> None:
    number = open_issue(office, "Which database", "What database did we choose in #1?")
    (text,) = office.comments(number)
    assert "Session store" in text
    assert f"“{DECISION}”" in text
    assert "([octocat, maintainer, 12 March 2025](" in text


@pytest.mark.slow
def test_a_stranger_decides_nothing_whatever_was_decided_earlier(office: Stage) -> None:
    words = "We decided to delete PostgreSQL and to keep Redis for the session store."
    comment = office.github.comment(1, "hubot", words)
    office.deliver("issue_comment", "created", 1, comment)
    number = open_issue(office, "Which database", "What database did we choose in #1?")
    (text,) = office.comments(number)
    assert f"“{DECISION}” ([octocat, maintainer, 12 March 2025](" in text
    assert all("Decided" not in line for line in text.split("\n") if "delete PostgreSQL" in line)


@pytest.mark.slow
@pytest.mark.parametrize("accounts", ["[]", "[HUBOT]"])
def test_an_account_of_the_settings_decides_like_a_maintainer(office: Stage, accounts: str) -> None:
    office.configure(f"decisions:\n  accounts: {accounts}\n")
    words = "We decided to keep thumbnails of the printouts for a week."
    asked = open_issue(office, "Thumbnails", "How long are thumbnails of the printouts kept?")
    comment = office.github.comment(asked, "hubot", words)
    office.deliver("issue_comment", "created", asked, comment)
    number = open_issue(office, "Printouts", f"What did we decide in #{asked}?")
    text = "".join(office.comments(number))
    assert (f"*Decided:* “{words}” ([hubot" in text) is (accounts != "[]")


def test_a_search_through_all_conversations_is_answered_with_hits_and_their_outcomes(office: Stage) -> None:
    number = open_issue(office, "Research", "Search all past conversations for mentions of authentication")
    replies = [text for text in office.comments(number) if "Two-factor authentication" in text]
    (text,) = replies
    assert "Authentication fails after a restart" in text
    assert "authentication belongs to the identity provider" in text
    assert "fixed" in text
    assert "footer" not in text
    assert "thumbnails" not in text.lower()


def test_a_question_in_a_comment_is_answered_once(office: Stage) -> None:
    number = open_issue(office, "Zyx", "Wvu tsr qpo.")
    comment = office.github.comment(number, "monalisa", "What did we decide about the session store?")
    for _ in range(2):
        office.deliver("issue_comment", "created", number, comment, after=200)
    (text,) = office.comments(number)
    assert DECISION in text
    assert len(office.github.comments_by(BOT, number)) == 1


@pytest.fixture
def answered(empty_stage: Stage) -> Stage:
    """Issue 3 refers to a decision and has our comment."""
    return empty_stage.begin(with_past, refer_to_decision)


def refer_to_decision(stage: Stage) -> None:
    assert open_issue(stage, "Everybody is logged out", "As in #1, but worse.") == 3


def test_an_opened_issue_gets_one_comment_with_what_is_known(stage: Stage) -> None:
    refer_to_decision(stage)
    (text,) = stage.comments(3)
    assert text.startswith("<!-- precedent:v1 id=action -->\n")
    assert "Where should sessions live?" in text
    assert "We decided to go with PostgreSQL" in text
    assert (stage.github.writes, stage.outputs()["spoke"]) == (1, "true")
    assert 3 in stage.memory().records([3])
    assert "- issue 3: Everybody is logged out · [created](" in summary(stage)
    assert "API: " in summary(stage)


def test_an_issue_that_nothing_is_known_about_gets_no_comment(stage: Stage) -> None:
    number = open_issue(stage, "Everybody is logged out", "zyx wvu tsr")
    assert stage.comments(number) == []
    assert (stage.github.writes, stage.outputs()["spoke"]) == (0, "false")
    assert stage.memory().state.comments([number])[number].state == "silent"


def test_an_edit_updates_the_comment_in_place(answered: Stage) -> None:
    (mine,) = answered.github.comments_by(BOT, 3)
    answered.github.edit_issue(3, body="No: as in #2.")
    answered.deliver("issues", "edited", 3)
    (comment,) = answered.github.comments_by(BOT, 3)
    assert comment.id == mine.id
    assert "Dark mode for the printer" in comment.body
    assert "Where should sessions live?" not in comment.body


def test_a_new_reference_in_a_comment_updates_our_existing_comment(answered: Stage) -> None:
    (mine,) = answered.github.comments_by(BOT, 3)
    remark = answered.github.comment(3, "hubot", "Perhaps #2 has to do with it.")
    answered.deliver("issue_comment", "created", 3, remark)
    (comment,) = answered.github.comments_by(BOT, 3)
    assert comment.id == mine.id
    assert "Where should sessions live?" in comment.body
    assert "Dark mode for the printer" in comment.body
