"""The Action against copies of our marker, bots that answer bots, and settings on somebody else's branch."""

from __future__ import annotations

import subprocess

import pytest

from tests.acceptance.stage import BOT, REPOSITORY, Stage

MARKER = "<!-- precedent:v1 id=action -->"


def act(
    stage: Stage, event: str, action: str | None = None, number: int | None = None, comment: int | None = None
) -> int:
    stage.github.clock.advance(20)
    return stage.act(event, action, number, comment)


def open_question(stage: Stage, body: str = "As in #1.") -> int:
    number = stage.github.open_issue("hubot", "Everybody is logged out", body)
    assert act(stage, "issues", "opened", number) == 0
    return number


def post_comment(stage: Stage, number: int, author: str, text: str) -> int:
    comment = stage.github.comment(number, author, text)
    assert act(stage, "issue_comment", "created", number, comment) == 0
    return comment


def disguises(ours: str) -> list[str]:
    return [
        ours,
        ours.replace("id=action", "id=action run=99999999"),
        ours.replace("id=action", "id=other"),
        ours.replace("id=action", "id=action reply=1"),
        f"\ufeff \n{ours}",
        ours.replace("PostgreSQL", "MongoDB"),
        f"{MARKER}\n<sub>Taken back.</sub>\n",
        f"{MARKER}\n",
        MARKER.replace("v1", "v99"),
    ]


@pytest.mark.slow
def test_copies_of_our_comment_by_others_are_never_taken_for_ours(stage: Stage) -> None:
    number = open_question(stage)
    (own_comment,) = stage.github.comments_by(BOT, number)
    before = own_comment.body
    copies = {stage.github.comment(number, "monalisa", text): text for text in disguises(before)}
    copies[post_comment(stage, number, "stranger", before)] = before
    stage.github.edit_issue(number, body="As in #1 and #2.")
    assert act(stage, "issues", "edited", number) == 0
    (updated_comment,) = stage.github.comments_by(BOT, number)
    assert updated_comment.id == own_comment.id
    assert "Dark mode" in updated_comment.body
    assert {key: stage.github.comment_by_id(key).body for key in copies} == copies


@pytest.mark.slow
def test_earlier_copies_of_our_comment_do_not_keep_us_from_commenting(stage: Stage) -> None:
    ours = stage.comments(open_question(stage))[0]
    number = stage.github.open_issue("hubot", "Logged out again", "As in #1.")
    copies = {stage.github.comment(number, "monalisa", text): text for text in disguises(ours)}
    for event in (("issues", "opened"), ("schedule", None)):
        assert act(stage, event[0], event[1], number if event[1] else None) == 0
    assert len(stage.comments(number)) == 1
    assert {key: stage.github.comment_by_id(key).body for key in copies} == copies


@pytest.mark.slow
def test_editing_a_copy_of_our_comment_changes_nothing(stage: Stage) -> None:
    number = open_question(stage)
    (before,) = stage.comments(number)
    copy = post_comment(stage, number, "monalisa", before)
    stage.github.edit_comment(copy, before.replace("PostgreSQL", "MongoDB"))
    assert act(stage, "issue_comment", "edited", number, copy) == 0
    assert act(stage, "schedule") == 0
    assert stage.comments(number) == [before]
    assert "MongoDB" in stage.github.comment_by_id(copy).body


@pytest.mark.slow
@pytest.mark.parametrize("login", ["echo[bot]", "echo-machine"])
def test_a_bot_that_repeats_our_comments_gets_one_comment_at_most(stage: Stage, login: str) -> None:
    number = open_question(stage)
    for _ in range(3):
        newest = stage.comments(number)[-1]
        stage.github.comment(number, login, newest.partition("\n")[2])
        post_comment(stage, number, login, newest)
    assert len(stage.comments(number)) == 1


@pytest.mark.slow
def test_an_event_for_our_own_comment_gets_no_answer(stage: Stage) -> None:
    number = open_question(stage)
    (own_comment,) = stage.github.comments_by(BOT, number)
    writes = stage.github.writes
    for action in ("created", "edited"):
        assert act(stage, "issue_comment", action, number, own_comment.id) == 0
    assert (len(stage.comments(number)), stage.github.writes) == (1, writes)


@pytest.mark.slow
@pytest.mark.parametrize("branch", ["refs/pull/3/head", "refs/heads/patch", "refs/heads/precedent-settings"])
def test_settings_and_templates_of_another_branch_have_no_effect(stage: Stage, branch: str) -> None:
    stage.git.commit(REPOSITORY, ".github/precedent.yml", "mode: comment\n")
    head = subprocess.run(["git", "-C", stage.bare, "rev-parse", "main"], check=True, capture_output=True).stdout
    stage.git.commit(REPOSITORY, ".github/precedent.yml", "mode: off\n", branch)
    stage.git.commit(REPOSITORY, ".github/precedent/context.md.j2", "{{ marker }}\nOwned.\n", branch)
    stage.git.commit(REPOSITORY, ".github/precedent/words.yml", 'mentioned: "Owned"\n', branch)
    assert (
        subprocess.run(["git", "-C", stage.bare, "rev-parse", "main"], check=True, capture_output=True).stdout == head
    )
    (text,) = stage.comments(open_question(stage))
    assert "Where should sessions live?" in text
    assert "Owned" not in text
    stage.git.commit(REPOSITORY, ".github/precedent.yml", "mode: off # merged\n")
    assert stage.comments(open_question(stage, "As in #1, once more.")) == []
