"""Where the settings ask for it, a new discussion is answered with one comment that is kept up to date."""

from __future__ import annotations

import pytest

from bot.domain.changes import AnswerRecord
from bot.domain.thread import Tombstone
from tests.acceptance.stage import BOT, REPOSITORY, Stage, graph_requests, summary

ANSWER = "discussions:\n  answer: true\n"
ASKED = (
    "Login cookie refused behind a proxy",
    "The proxy refuses the cookie, and auth/cookie.py raises CookieRefused.",
)
KNOWN = ("The proxy drops the login cookie", "Behind our proxy auth/cookie.py raises CookieRefused after the login.")
FIX = "Set `trust_proxy: true` in the settings, then the cookie is sent."


@pytest.fixture
def answering(stage: Stage) -> Stage:
    """A project whose discussions are answered, with a closed issue (3) that is like `ASKED`, and a discussion (4)."""
    settings(stage, ANSWER)
    number = stage.github.open_issue("hubot", *KNOWN, at="2025-09-01T10:00:00Z")
    stage.github.comment(number, "octocat", FIX, at="2025-09-02T10:00:00Z")
    stage.github.close(number, "octocat", at="2025-09-02T10:00:00Z")
    stage.github.discuss("hubot", "Printing in colour", "Where is the setting?", at="2025-09-03T10:00:00Z")
    happens(stage, "schedule")
    return stage


def settings(stage: Stage, text: str) -> None:
    stage.git.commit(REPOSITORY, ".github/precedent.yml", text)


def happens(stage: Stage, event: str, action: str | None = None, number: int | None = None, made: int = 0) -> None:
    stage.github.clock.advance(600)
    stage.github.mark()
    assert stage.act(event, action, number, made or None) == 0


def ask(stage: Stage, title: str = ASKED[0], body: str = ASKED[1]) -> int:
    number = stage.github.discuss("monalisa", title, body)
    happens(stage, "discussion", "created", number)
    return number


def says(stage: Stage, number: int, author: str, text: str) -> None:
    made = stage.github.say(number, author, text)
    happens(stage, "discussion_comment", "created", number, made)


def ours(stage: Stage, number: int) -> list[str]:
    """The texts of our comments in a discussion."""
    comments = stage.github.discussion(number).comments
    return [said.body for said in comments if said.author and said.author.login == BOT]


def answer(stage: Stage, number: int) -> AnswerRecord:
    return stage.memory().state.answers([number])[number]


def test_a_new_discussion_is_answered_once_with_what_ended_a_like_issue(answering: Stage) -> None:
    number = ask(answering)
    (told,) = ours(answering, number)
    assert "**Seen before**" in told
    assert FIX.replace("`", "") in told
    assert "issue" not in told.partition("**Seen before**")[0]
    assert graph_requests(answering) == 3  # the discussion, its comments, and the comment itself
    said = answer(answering, number)
    assert (said.state, said.comment_id) == ("said", answering.github.discussion(number).comments[-1].id)
    says(answering, number, "hubot", "Me too.")
    happens(answering, "schedule")
    assert ours(answering, number) == [told]
    assert answering.github.writes == 0


@pytest.mark.slow
def test_an_edited_question_gets_another_answer_in_the_same_comment(answering: Stage) -> None:
    number = ask(answering)
    (before,) = ours(answering, number)
    answering.github.discussion(number).title = "Where do sessions live?"
    answering.github.discussion(number).body = "As #1 and #3 say."
    answering.github.discussion(number).updated_at = answering.github.clock.stamp(None)
    happens(answering, "discussion", "edited", number)
    (told,) = ours(answering, number)
    assert told != before
    assert "**Mentioned here**" in told


@pytest.mark.slow
def test_a_comment_follows_the_issues_that_it_shows(answering: Stage) -> None:
    number = ask(answering)
    assert "trust_proxy" in ours(answering, number)[0]
    answering.github.delete_issue(3)
    happens(answering, "issues", "deleted", 3)
    (told,) = ours(answering, number)
    assert "trust_proxy" not in told
    assert answering.github.discussion(number).comments[-1].minimized == "OUTDATED"


@pytest.mark.slow
def test_one_that_a_person_deletes_is_not_written_again(answering: Stage) -> None:
    number = ask(answering)
    answering.github.delete_said(number, answering.github.discussion(number).comments[-1].id)
    answering.github.discussion(number).body += " And #1?"
    answering.github.discussion(number).updated_at = answering.github.clock.stamp(None)
    happens(answering, "discussion", "edited", number)
    assert ours(answering, number) == []
    assert answer(answering, number).state == "removed"


@pytest.mark.slow
def test_one_that_a_person_deletes_before_it_could_be_updated_is_not_written_again(answering: Stage) -> None:
    number = ask(answering)
    answering.github.discussion(number).body += " And #1?"
    answering.github.discussion(number).updated_at = answering.github.clock.stamp(None)
    answering.github.clock.advance(600)
    answering.github.faults.add("POST /graphql", "5xx", None, after=2)  # the discussion and its comments are read
    answering.act("discussion", "edited", number)
    answering.github.faults.clear()
    assert answer(answering, number).state == "pending"
    answering.github.delete_said(number, answering.github.discussion(number).comments[-1].id)
    happens(answering, "schedule")
    assert ours(answering, number) == []
    assert answer(answering, number).state == "removed"


@pytest.mark.slow
def test_commands_work_there_too(answering: Stage) -> None:
    number = ask(answering)
    says(answering, number, "monalisa", "/precedent search cookie proxy")
    assert len(ours(answering, number)) == 2
    assert KNOWN[0] in ours(answering, number)[1]
    says(answering, number, "monalisa", "/precedent off")
    assert "trust_proxy" not in ours(answering, number)[0]
    assert answer(answering, number).state == "withdrawn"


@pytest.mark.slow
def test_forget_takes_a_discussion_and_our_comment_in_it(answering: Stage) -> None:
    number = ask(answering)
    says(answering, number, "monalisa", "/precedent search cookie proxy")
    assert answering.act("workflow_dispatch", inputs={"run": "forget", "issue": str(number)}) == 0
    assert ours(answering, number) == []
    assert isinstance(answering.memory().records([number])[number], Tombstone)


@pytest.mark.slow
def test_forget_takes_what_a_forgotten_issue_left_in_a_discussion(answering: Stage) -> None:
    number = ask(answering)
    assert answering.act("workflow_dispatch", inputs={"run": "forget", "issue": "3"}) == 0
    assert ours(answering, number) == []


@pytest.mark.parametrize(
    "text", ["", "discussions:\n  answer: true\nmode: summary\n", "discussions:\n  answer: true\nmode: 'off'\n"]
)
def test_nothing_is_written_without_the_setting_or_in_another_mode(answering: Stage, text: str) -> None:
    settings(answering, text)
    number = ask(answering)
    assert (ours(answering, number), answering.github.writes) == ([], 0)
    assert (FIX.replace("`", "") in summary(answering)) is ("summary" in text)


def test_a_dry_run_writes_nothing(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *ASKED)
    answering.github.mark()
    assert answering.act("discussion", "created", number, inputs={"dry-run": "true"}) == 0
    assert (ours(answering, number), answering.github.writes) == ([], 0)
    assert FIX.replace("`", "") in summary(answering)


@pytest.mark.slow
def test_answers_in_discussions_count_towards_the_limit_of_a_day(answering: Stage) -> None:
    settings(answering, f"{ANSWER}comment:\n  daily_limit: 1\n")
    first, second = ask(answering), ask(answering, "The cookie is refused by our proxy")
    assert [len(ours(answering, number)) for number in (first, second)] == [1, 0]
    assert answer(answering, second).state == "pending"


def test_a_marked_answer_leaves_nothing_to_say(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *ASKED)
    comment = answering.github.say(number, "octocat", "Restart the proxy.")
    answering.github.mark_answer(number, comment, "monalisa")
    happens(answering, "discussion", "created", number)
    assert ours(answering, number) == []


def test_a_category_is_left_alone_by_its_name(answering: Stage) -> None:
    settings(answering, f"{ANSWER}ignore:\n  labels: [announcements]\n")
    number = answering.github.discuss("monalisa", *ASKED, category="Announcements")
    happens(answering, "discussion", "created", number)
    assert ours(answering, number) == []


@pytest.mark.slow
@pytest.mark.parametrize("fault", ["drop", "5xx"])
def test_a_lost_answer_of_github_makes_no_second_comment(answering: Stage, fault: str) -> None:
    number = answering.github.discuss("monalisa", *ASKED)
    answering.github.clock.advance(600)
    answering.github.faults.add("POST /graphql", fault, 1, after=2)
    answering.act("discussion", "created", number)
    answering.github.faults.clear()
    happens(answering, "schedule")
    happens(answering, "schedule")
    assert len(ours(answering, number)) == 1
    assert answer(answering, number).state == "said"


@pytest.mark.slow
def test_votes_are_not_looked_up_as_if_it_were_on_an_issue(answering: Stage) -> None:
    number = ask(answering)
    answering.github.clock.advance(24 * 3600)
    happens(answering, "schedule")
    assert not [request for request in answering.github.recent if "/issues/comments/" in request.path]
    assert answer(answering, number).state == "said"


@pytest.mark.slow
def test_a_crash_after_the_post_makes_no_second_comment(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *ASKED)
    answering.git.faults.add("POST *git-receive-pack", "secondary403", times=None, after=1)
    answering.github.clock.advance(600)
    answering.act("discussion", "created", number)
    assert (len(ours(answering, number)), answer(answering, number).state) == (1, "pending")
    answering.git.faults.clear()
    happens(answering, "schedule")
    assert (len(ours(answering, number)), answer(answering, number).state) == (1, "said")


def test_a_token_that_may_only_read_them_says_so_and_posts_nothing(answering: Stage) -> None:
    token = answering.github.world.tokens[answering.github.token]
    token.permissions = {"issues": "write", "contents": "write", "discussions": "read"}
    number = answering.github.discuss("monalisa", *ASKED)
    answering.github.clock.advance(600)
    answering.act("discussion", "created", number)
    assert ours(answering, number) == []
    assert "discussions: write" in summary(answering)


def test_comments_that_may_not_be_updated_any_more_hold_up_no_others(answering: Stage) -> None:
    github, token = answering.github, answering.github.world.tokens[answering.github.token]
    numbers = [github.discuss("monalisa", f"Logged out, {n}", "As in #3.") for n in range(20)]
    issue = github.open_issue("monalisa", "Logged out again", "As in #3.")
    for _ in range(5):
        happens(answering, "schedule")
    assert [len(ours(answering, number)) for number in numbers] == [1] * 20
    assert "trust_proxy" in answering.comments(issue)[0]
    token.permissions = {"issues": "write", "contents": "write", "discussions": "read"}
    github.delete_issue(3)
    answering.act("issues", "deleted", 3)
    for _ in range(2):
        github.clock.advance(600)
        answering.act("schedule")
    assert "trust_proxy" not in answering.comments(issue)[0]
    token.permissions = {**token.permissions, "discussions": "write"}
    for _ in range(4):
        happens(answering, "schedule")
    assert not [number for number in numbers if "trust_proxy" in ours(answering, number)[0]]
    assert answering.memory().state.manifest.owed == ()


@pytest.mark.slow
def test_a_marker_of_a_stranger_is_no_comment_of_ours(answering: Stage) -> None:
    number = ask(answering)
    (told,) = ours(answering, number)
    other = answering.github.discuss("monalisa", *ASKED)
    answering.github.say(other, "hubot", told)
    happens(answering, "discussion", "created", other)
    assert len(ours(answering, other)) == 1


def test_one_discussion_is_answered_by_hand(answering: Stage) -> None:
    number = answering.github.discuss("monalisa", *ASKED, at="2025-10-01T10:00:00Z")
    happens(answering, "schedule")
    assert ours(answering, number) == []
    answering.github.clock.advance(600)
    assert answering.act("workflow_dispatch", inputs={"run": "answer", "issue": str(number)}) == 0
    assert len(ours(answering, number)) == 1
