"""Commands and questions through the Action: what a person writes, and our comments on the issue afterwards."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

import pytest

from bot.domain.changes import Changes
from tests.acceptance.stage import BOT, DECISION, Stage, with_decision
from tests.marker import find_marker

pytestmark = pytest.mark.slow

WITHDRAWN = "it was withdrawn"


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """Issue 1 contains a decision; 2, by monalisa, refers to it and has our comment that shows it."""
    return empty_stage.begin(with_decision, answer_issue)


def answer_issue(stage: Stage) -> None:
    stage.github.open_issue("monalisa", "Everybody is logged out", "As in #1, but worse.")
    stage.deliver("issues", "opened", 2)
    assert DECISION in main_comment(stage)


def post_comment(stage: Stage, text: str, by: str = "monalisa") -> int:
    """Somebody comments on issue 2, and the Action runs."""
    comment = stage.github.comment(2, by, text)
    stage.deliver("issue_comment", "created", 2, comment)
    return comment


def main_comment(stage: Stage) -> str:
    return next(iter([text for text in stage.comments(2) if find_marker(text)]), "")


def replies(stage: Stage, comment: int) -> list[str]:
    return [text for text in stage.comments(2) if find_marker(text, reply_to=comment)]


def reactions(stage: Stage, comment: int) -> list[str]:
    return [reaction.content for reaction in stage.github.comment_by_id(comment).reactions]


def test_anybody_may_search_and_our_comment_on_the_issue_stays(stage: Stage) -> None:
    before = main_comment(stage)
    comment = post_comment(stage, "/precedent search where sessions live", "stranger")
    (text,) = replies(stage, comment)
    assert DECISION in text
    assert main_comment(stage) == before
    assert reactions(stage, comment) == ["eyes", "rocket"]


def test_an_issue_that_a_command_names_does_not_count_as_a_reference(stage: Stage) -> None:
    stage.github.open_issue("hubot", "Dark mode for the printer", "At night it glares.", at="2025-08-01T10:00:00Z")
    stage.deliver("schedule")
    before = main_comment(stage)
    comment = post_comment(stage, "/precedent context #3", "stranger")
    assert "Dark mode" in replies(stage, comment)[0]
    assert main_comment(stage) == before


def test_an_outsider_cannot_switch_anything_off(stage: Stage) -> None:
    comment = post_comment(stage, "/precedent off", "stranger")
    assert DECISION in main_comment(stage)
    assert "Nothing was changed" in replies(stage, comment)[0]
    assert reactions(stage, comment) == ["eyes", "confused"]


def test_an_issue_called_wrong_is_not_shown_again(stage: Stage) -> None:
    asked = post_comment(stage, "/precedent wrong", "octocat")
    assert "\n\n- `/precedent wrong 1`: Where should sessions live?\n" in replies(stage, asked)[0]
    assert DECISION in main_comment(stage)
    wrong = post_comment(stage, "/precedent wrong 1", "octocat")
    assert (replies(stage, wrong), reactions(stage, wrong)) == ([], ["eyes", "rocket"])
    assert DECISION not in main_comment(stage)
    stage.github.edit_issue(2, body="As in #1, and much worse.")
    stage.deliver("issues", "edited", 2)
    assert DECISION not in main_comment(stage)


def test_refresh_answers_again_even_if_a_person_deleted_the_comment(stage: Stage) -> None:
    (mine,) = stage.github.comments_by(BOT, 2)
    stage.github.delete_comment(mine.id, by="octocat")
    stage.github.edit_issue(2, body="As in #1, and much worse.")
    stage.deliver("issues", "edited", 2)
    assert main_comment(stage) == ""
    post_comment(stage, "/precedent refresh")
    assert DECISION in main_comment(stage)


@pytest.mark.parametrize("words", ["off", "wrong #1"])
def test_a_command_is_obeyed_on_a_closed_and_locked_issue(stage: Stage, words: str) -> None:
    stage.github.close(2, "octocat")
    stage.github.lock(2)
    stage.deliver("issues", "locked", 2)
    post_comment(stage, f"/precedent {words}", "octocat")
    assert DECISION not in main_comment(stage)


def test_a_closed_issue_gets_a_reply_to_a_command_but_no_other_new_comment(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Zyx", "Wvu tsr qpo.")
    stage.github.close(number, "monalisa")
    stage.github.comment(number, "monalisa", "/precedent wrong")
    stage.github.comment(number, "monalisa", "See #1.")
    stage.deliver("schedule")
    assert [find_marker(text) for text in stage.comments(number)] == [False]


def test_a_comment_that_could_not_be_withdrawn_on_a_closed_issue_is_withdrawn_later(stage: Stage) -> None:
    stage.github.close(2, "octocat")
    stage.deliver("issues", "closed", 2)
    stage.github.faults.add("PATCH *", "5xx")
    comment = stage.github.comment(2, "monalisa", "/precedent off")
    stage.deliver("issue_comment", "created", 2, comment, code=1)
    assert DECISION in main_comment(stage)
    stage.github.clock.advance(300)
    stage.deliver("schedule")
    assert WITHDRAWN in main_comment(stage)


@pytest.mark.parametrize("fault", ["POST */issues/2/comments", "GET */issues/2/comments*"])
def test_a_refresh_that_failed_is_repeated_although_the_comment_was_deleted(stage: Stage, fault: str) -> None:
    (mine,) = stage.github.comments_by(BOT, 2)
    stage.github.delete_comment(mine.id, by="octocat")
    stage.github.clock.advance(300)
    comment = stage.github.comment(2, "monalisa", "/precedent refresh")
    stage.github.clock.advance(20)
    stage.github.faults.add(fault, "429", after=int(fault.startswith("GET")))  # the first one reads what changed
    assert stage.act("issue_comment", "created", 2, comment) == 0
    assert "rate limit" in stage.summary.read_text(encoding="utf-8")
    assert main_comment(stage) == ""
    stage.github.clock.advance(300)
    stage.deliver("schedule")
    assert DECISION in main_comment(stage)


def test_after_off_no_later_command_in_the_same_run_is_answered(stage: Stage) -> None:
    stage.github.comment(2, "monalisa", "/precedent off")
    stage.github.clock.advance(3)
    comment = post_comment(stage, "/precedent search where sessions live", "stranger")
    assert replies(stage, comment) == []


def test_the_context_of_an_issue_may_be_requested_on_the_issue_itself(stage: Stage) -> None:
    comment = post_comment(stage, "/precedent context #2", "stranger")
    assert "Everybody is logged out" in replies(stage, comment)[0]


def test_a_command_writes_no_comment_while_another_run_is_about_to_write_it(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Everybody is logged out again", "As in #1, but worse.")
    stage.github.faults.add(f"POST */issues/{number}/comments", "5xx")
    stage.deliver("issues", "opened", number, code=1)
    memory = stage.memory(writable=True)
    stage.github.clock.advance(1)
    now = datetime.fromisoformat(stage.github.clock.now)
    given_back = memory.state.comments([number])[number]
    memory.stage(Changes(posts=(replace(given_back, trying_since=now, revised_at=now),)))
    memory.commit("Another run takes it up")
    memory.close()
    stage.github.comment(number, "monalisa", "/precedent refresh")
    stage.deliver("schedule")
    assert [text for text in stage.comments(number) if find_marker(text)] == []
    stage.github.clock.advance(300)
    stage.deliver("schedule")
    assert len([text for text in stage.comments(number) if find_marker(text)]) == 1


@pytest.mark.parametrize(
    "text", ["> /precedent off", "```\n/precedent off\n```", "Try /precedent off", "> q\n>\n> ```\n/precedent off"]
)
def test_a_command_in_a_quotation_in_code_or_in_a_sentence_is_ignored(stage: Stage, text: str) -> None:
    comment = post_comment(stage, text, "octocat")
    assert DECISION in main_comment(stage)
    assert (reactions(stage, comment), len(stage.comments(2))) == ([], 1)
    post_comment(stage, "/precedent help")  # so that this test fails if no command is obeyed at all
    assert len(stage.comments(2)) == 2


def test_after_the_branch_was_deleted_no_reply_is_repeated_and_new_commands_work(stage: Stage) -> None:
    search = post_comment(stage, "/precedent search where sessions live", "stranger")
    stage.run_git("branch", "-D", "precedent")
    off = post_comment(stage, "/precedent off")
    assert (len(replies(stage, search)), reactions(stage, off), len(stage.comments(2))) == (1, ["rocket"], 2)
    assert WITHDRAWN in main_comment(stage)


def test_a_question_in_an_issue_that_is_closed_by_now_gets_no_reply(stage: Stage) -> None:
    number = stage.github.open_issue("monalisa", "Zyx", "What did we decide about sessions?")
    stage.github.close(number, "monalisa")
    stage.github.clock.advance(3000)
    stage.deliver("schedule")
    assert stage.comments(number) == []


def test_a_search_costs_two_reads_and_three_writes(stage: Stage) -> None:
    post_comment(stage, "/precedent search where sessions live", "stranger")
    assert (stage.github.reads, stage.github.writes) == (2, 3)


def test_a_dry_run_only_shows_what_it_would_reply(stage: Stage) -> None:
    comment = stage.github.comment(2, "stranger", "/precedent search where sessions live")
    stage.deliver("issue_comment", "created", 2, comment, dry_run="true")
    assert (len(stage.comments(2)), reactions(stage, comment)) == (1, [])
    assert DECISION in stage.summary.read_text(encoding="utf-8")
