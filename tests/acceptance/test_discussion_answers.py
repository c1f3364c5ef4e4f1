"""If the settings ask for it, a new discussion is answered with one comment that is kept up to date."""

from __future__ import annotations

import pytest

from bot.domain.post import Post
from bot.domain.thread import Tombstone
from bot.pipeline.renewals import MAX_RENEWALS
from tests.acceptance.stage import BOT, Stage, graph_requests, summary, with_memory, with_past

ANSWER_DISCUSSIONS = "discussions:\n  answer: true\nmentions:\n  speak: always\n"
QUESTION = (
    "Login cookie refused behind a proxy",
    "The proxy refuses the cookie, and auth/cookie.py raises CookieRefused.",
)
SIMILAR_ISSUE = (
    "The proxy drops the login cookie",
    "Behind our proxy auth/cookie.py raises CookieRefused after the login.",
)
NUMBER = 5
FIX = "Set `trust_proxy: true` in the settings, then the cookie is sent."


@pytest.fixture
def answering(empty_stage: Stage) -> Stage:
    """A project whose discussions are answered, with a closed issue (3) like `QUESTION` and a discussion (4)."""
    return empty_stage.begin(with_past, with_similar_issue, with_memory)


@pytest.fixture
def asked(empty_stage: Stage) -> Stage:
    """The same project; `QUESTION` (5) has our comment."""
    return empty_stage.begin(with_past, with_similar_issue, with_memory, ask)


def with_similar_issue(stage: Stage) -> None:
    stage.configure(ANSWER_DISCUSSIONS)
    number = stage.github.open_issue("hubot", *SIMILAR_ISSUE, at="2025-09-01T10:00:00Z")
    stage.github.comment(number, "octocat", FIX, at="2025-09-02T10:00:00Z")
    stage.github.close(number, "octocat", at="2025-09-02T10:00:00Z")
    stage.github.discuss("hubot", "Printing in colour", "Where is the setting?", at="2025-09-03T10:00:00Z")


def ask(stage: Stage, title: str = QUESTION[0], body: str = QUESTION[1]) -> int:
    number = stage.github.discuss("monalisa", title, body)
    stage.deliver("discussion", "created", number)
    return number


def edit(stage: Stage, number: int, body: str, title: str = "") -> None:
    """Edit a discussion; no run learns of it yet."""
    discussion = stage.github.discussion(number)
    discussion.title, discussion.body = title or discussion.title, body
    discussion.updated_at = stage.github.clock.stamp(None)


def post_comment(stage: Stage, number: int, author: str, text: str, to: int | None = None) -> list[str]:
    """Comment in a discussion, or reply ``to`` a comment, and run; returns the reactions to it."""
    key = stage.github.say(number, author, text, to=to)
    stage.deliver("discussion_comment", "created", number, key)
    (comment,) = [comment for comment in stage.github.discussion(number).comments if comment.id == key]
    return [reaction.content for reaction in comment.reactions]


def our_comments(stage: Stage, number: int) -> list[str]:
    """The texts of our comments in a discussion."""
    comments = stage.github.discussion(number).comments
    return [comment.body for comment in comments if comment.author and comment.author.login == BOT]


def answer_record(stage: Stage, number: int) -> Post:
    return stage.memory().state.comments([number])[number]


@pytest.mark.slow
def test_a_new_discussion_is_answered_once_with_the_outcome_of_a_similar_issue(answering: Stage) -> None:
    number = ask(answering)
    (text,) = our_comments(answering, number)
    assert "**Seen before**" in text
    assert FIX.replace("`", "") in text
    assert "issue" not in text.partition("**Seen before**")[0]
    assert graph_requests(answering) == 3  # the discussion, its comments, and the comment itself
    record = answer_record(answering, number)
    assert (record.state, record.comment_id) == ("said", answering.github.discussion(number).comments[-1].id)
    post_comment(answering, number, "hubot", "Me too.")
    answering.deliver("schedule")
    assert our_comments(answering, number) == [text]
    assert answering.github.writes == 0


@pytest.mark.slow
def test_an_edited_question_gets_another_answer_in_the_same_comment(asked: Stage) -> None:
    (before,) = our_comments(asked, NUMBER)
    edit(asked, NUMBER, "As #1 and #3 say.", "Where do sessions live?")
    asked.deliver("discussion", "edited", NUMBER)
    (after,) = our_comments(asked, NUMBER)
    assert after != before
    assert "**Mentioned here**" in after


@pytest.mark.slow
def test_our_comment_is_withdrawn_when_the_issue_that_it_shows_is_deleted(asked: Stage) -> None:
    assert "trust_proxy" in our_comments(asked, NUMBER)[0]
    asked.github.delete_issue(3)
    asked.deliver("issues", "deleted", 3)
    (text,) = our_comments(asked, NUMBER)
    assert "trust_proxy" not in text


@pytest.mark.slow
def test_an_answer_that_a_person_deletes_is_not_written_again(asked: Stage) -> None:
    asked.github.delete_discussion_comment(NUMBER, asked.github.discussion(NUMBER).comments[-1].id)
    edit(asked, NUMBER, f"{QUESTION[1]} And #1?")
    asked.deliver("discussion", "edited", NUMBER)
    assert our_comments(asked, NUMBER) == []
    assert answer_record(asked, NUMBER).state == "removed"


@pytest.mark.slow
def test_an_answer_that_a_person_deletes_before_its_update_is_not_written_again(asked: Stage) -> None:
    edit(asked, NUMBER, f"{QUESTION[1]} And #1?")
    asked.github.clock.advance(600)
    asked.github.faults.add("POST /graphql", "5xx", None, after=2)  # the discussion and its comments are read
    asked.act("discussion", "edited", NUMBER)
    asked.github.faults.clear()
    assert answer_record(asked, NUMBER).state == "pending"
    asked.github.delete_discussion_comment(NUMBER, asked.github.discussion(NUMBER).comments[-1].id)
    asked.deliver("schedule", after=600)
    assert our_comments(asked, NUMBER) == []
    assert answer_record(asked, NUMBER).state == "removed"


@pytest.mark.slow
def test_commands_work_in_discussions_too(asked: Stage) -> None:
    assert post_comment(asked, NUMBER, "monalisa", "/precedent search cookie proxy") == ["eyes", "rocket"]
    assert len(our_comments(asked, NUMBER)) == 2
    assert SIMILAR_ISSUE[0] in our_comments(asked, NUMBER)[1]
    assert post_comment(asked, NUMBER, "monalisa", "/precedent wrong") == ["eyes", "confused"]
    assert f"\n\n- `/precedent wrong 3`: {SIMILAR_ISSUE[0]}\n" in our_comments(asked, NUMBER)[2]
    assert "trust_proxy" in our_comments(asked, NUMBER)[0]


@pytest.mark.slow
def test_a_command_in_a_reply_to_a_comment_of_a_discussion_is_obeyed_and_gets_reactions(asked: Stage) -> None:
    comment = asked.github.say(NUMBER, "hubot", "Is this still so?")
    assert post_comment(asked, NUMBER, "monalisa", "/precedent off", comment) == ["eyes", "rocket"]
    (text,) = our_comments(asked, NUMBER)
    assert ("trust_proxy" in text, answer_record(asked, NUMBER).state) == (False, "withdrawn")


@pytest.mark.slow
def test_forget_removes_a_discussion_and_our_comments_in_it(asked: Stage) -> None:
    post_comment(asked, NUMBER, "monalisa", "/precedent search cookie proxy")
    asked.deliver("workflow_dispatch", run="forget", issue=str(NUMBER))
    assert our_comments(asked, NUMBER) == []
    assert isinstance(asked.memory().records([NUMBER])[NUMBER], Tombstone)


@pytest.mark.slow
def test_forgetting_an_issue_deletes_our_comment_that_shows_it_in_a_discussion(asked: Stage) -> None:
    asked.deliver("workflow_dispatch", run="forget", issue="3")
    assert our_comments(asked, NUMBER) == []


OTHER_MODES = [
    pytest.param(f"{ANSWER_DISCUSSIONS}mode: {mode}\n", marks=pytest.mark.slow) for mode in ("summary", "'off'")
]


@pytest.mark.slow
@pytest.mark.parametrize("text", ["", *OTHER_MODES])
def test_nothing_is_written_without_the_setting_or_in_another_mode(answering: Stage, text: str) -> None:
    answering.configure(text)
    number = ask(answering)
    assert (our_comments(answering, number), answering.github.writes) == ([], 0)
    assert (FIX.replace("`", "") in summary(answering)) is ("summary" in text)


@pytest.mark.slow
def test_a_dry_run_writes_nothing(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *QUESTION)
    answering.deliver("discussion", "created", number, dry_run="true")
    assert (our_comments(answering, number), answering.github.writes) == ([], 0)
    assert FIX.replace("`", "") in summary(answering)


@pytest.mark.slow
def test_answers_in_discussions_count_towards_the_daily_limit(answering: Stage) -> None:
    answering.configure(f"{ANSWER_DISCUSSIONS}comment:\n  daily_limit: 1\n")
    first, second = ask(answering), ask(answering, "The cookie is refused by our proxy")
    assert [len(our_comments(answering, number)) for number in (first, second)] == [1, 0]
    assert answer_record(answering, second).state == "pending"


@pytest.mark.slow
def test_a_discussion_with_a_marked_answer_gets_no_comment(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *QUESTION)
    comment = answering.github.say(number, "octocat", "Restart the proxy.")
    answering.github.mark_answer(number, comment, "monalisa")
    answering.deliver("discussion", "created", number)
    assert our_comments(answering, number) == []


@pytest.mark.slow
def test_a_category_named_among_the_ignored_labels_is_left_alone(answering: Stage) -> None:
    answering.configure(f"{ANSWER_DISCUSSIONS}ignore:\n  labels: [announcements]\n")
    number = answering.github.discuss("monalisa", *QUESTION, category="Announcements")
    answering.deliver("discussion", "created", number)
    assert our_comments(answering, number) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["drop", "5xx"])
def test_a_lost_response_from_github_causes_no_second_comment(answering: Stage, fault: str) -> None:
    number = answering.github.discuss("monalisa", *QUESTION)
    answering.github.clock.advance(600)
    answering.github.faults.add("POST /graphql", fault, 1, after=2)
    answering.act("discussion", "created", number)
    answering.github.faults.clear()
    answering.deliver("schedule", after=600)
    answering.deliver("schedule")
    assert len(our_comments(answering, number)) == 1
    assert answer_record(answering, number).state == "said"


@pytest.mark.slow
def test_votes_on_a_discussion_comment_are_not_looked_up_through_the_issue_api(asked: Stage) -> None:
    asked.github.clock.advance(24 * 3600)
    asked.deliver("schedule")
    assert not [request for request in asked.github.recent if "/issues/comments/" in request.path]
    assert answer_record(asked, NUMBER).state == "said"


@pytest.mark.slow
def test_a_crash_after_the_post_causes_no_second_comment(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *QUESTION)
    answering.git.faults.add("POST *git-receive-pack", "secondary403", times=None, after=1)
    answering.github.clock.advance(600)
    answering.act("discussion", "created", number)
    assert (len(our_comments(answering, number)), answer_record(answering, number).state) == (1, "pending")
    answering.git.faults.clear()
    answering.deliver("schedule", after=600)
    assert (len(our_comments(answering, number)), answer_record(answering, number).state) == (1, "said")


@pytest.mark.slow
def test_a_token_that_may_only_read_discussions_is_reported_and_nothing_is_posted(answering: Stage) -> None:
    token = answering.github.world.tokens[answering.github.token]
    token.permissions = {"issues": "write", "contents": "write", "discussions": "read"}
    number = answering.github.discuss("monalisa", *QUESTION)
    answering.github.clock.advance(600)
    answering.act("discussion", "created", number)
    assert our_comments(answering, number) == []
    assert "discussions: write" in summary(answering)


@pytest.mark.slow
def test_comments_that_may_no_longer_be_updated_do_not_hold_up_others(answering: Stage) -> None:
    github, token = answering.github, answering.github.world.tokens[answering.github.token]
    numbers = [github.discuss("monalisa", f"Logged out, {n}", "As in #3.") for n in range(MAX_RENEWALS)]
    issue = github.open_issue("monalisa", "Logged out again", "As in #3.")
    for _ in range(3):
        answering.deliver("schedule")
    assert [len(our_comments(answering, number)) for number in numbers] == [1] * MAX_RENEWALS
    assert "trust_proxy" in answering.comments(issue)[0]
    token.permissions = {"issues": "write", "contents": "write", "discussions": "read"}
    github.delete_issue(3)
    answering.act("issues", "deleted", 3)
    assert "trust_proxy" in answering.comments(issue)[0], "a run updates no more"
    github.clock.advance(600)
    answering.act("schedule")
    assert "trust_proxy" not in answering.comments(issue)[0]
    token.permissions = {**token.permissions, "discussions": "write"}
    answering.deliver("schedule")
    assert not [number for number in numbers if "trust_proxy" in our_comments(answering, number)[0]]
    assert answering.memory().state.manifest.renewals_due == ()


@pytest.mark.slow
def test_a_comment_with_our_marker_by_somebody_else_is_not_ours(asked: Stage) -> None:
    (text,) = our_comments(asked, NUMBER)
    other = asked.github.discuss("monalisa", *QUESTION)
    asked.github.say(other, "hubot", text)
    asked.deliver("discussion", "created", other)
    assert len(our_comments(asked, other)) == 1


@pytest.mark.slow
def test_a_manual_run_answers_one_discussion(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *QUESTION, at="2025-10-01T10:00:00Z")
    answering.deliver("schedule")
    assert our_comments(answering, number) == []
    answering.deliver("workflow_dispatch", run="answer", issue=str(number))
    assert len(our_comments(answering, number)) == 1
