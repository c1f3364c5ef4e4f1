"""Our comments in discussions by GraphQL: found, written, changed and deleted, and what GitHub refuses."""

from __future__ import annotations

import pytest

from bot.github.client import GitHubClient
from bot.github.discussion_comments import (
    ADD,
    COMMENTS,
    COUNT,
    DELETE,
    UPDATE,
    DiscussionComments,
    count_discussions,
)
from bot.github.errors import Gone, NotPermitted, Unreachable
from bot.github.threads import OwnCommentRule
from tests.fakes.github import FakeGitHub
from tests.fakes.graph import validate_query
from tests.github.conftest import REPOSITORY


@pytest.fixture
def talks(client: GitHubClient) -> DiscussionComments:
    return DiscussionComments(client, REPOSITORY)


@pytest.mark.parametrize("query", [ADD, COMMENTS, COUNT, DELETE, UPDATE])
def test_githubs_schema_takes_each_query(query: str) -> None:
    assert validate_query(query) == []


def test_a_comment_is_written_found_changed_and_deleted(
    github: FakeGitHub, talks: DiscussionComments, own: OwnCommentRule
) -> None:
    number = github.discuss("hubot", "How?")
    github.say(number, "octocat", "Like that.")
    made = talks.create_comment(number, f"{own.marker}\nSeen before")
    assert made.url.endswith(f"/discussions/{number}#discussioncomment-{made.id}")
    found = talks.comments(number)
    assert [own.is_answer(comment) for comment in found] == [False, True]
    assert (found[1]["id"], found[1]["node_id"], found[1]["html_url"]) == (made.id, made.node_id, made.url)
    assert talks.timeline(number)[1]["event"] == "commented"
    assert talks.update_comment(made.id, f"{own.marker}\nOpen now").id == made.id
    assert github.discussion(number).comments[1].body.endswith("Open now")
    talks.fold(made.node_id, folded=True)
    assert github.discussion(number).comments[1].minimized == "OUTDATED"
    talks.delete_comment(made.id)
    assert [comment["body"] for comment in talks.comments(number)] == ["Like that."]
    assert github.writes == 4


def test_all_comments_are_read_and_replies_are_not(github: FakeGitHub, talks: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    said = [github.say(number, "octocat", f"Comment {n}") for n in range(101)]
    github.say(number, "hubot", "Thanks!", to=said[0])
    assert [comment["id"] for comment in talks.comments(number)] == said


def test_a_comment_without_a_number_is_passed_over(github: FakeGitHub, talks: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    github.say(number, "octocat", "Like that.")
    said = github.say(number, "octocat", "Or so.")
    github.discussion(number).comments[0].id = 0  # GitHub's schema lets it be null
    assert [comment["id"] for comment in talks.comments(number)] == [said]


def test_what_is_no_discussion_is_gone_and_never_certainly(github: FakeGitHub, talks: DiscussionComments) -> None:
    issue = github.open_issue("hubot", "Crash")
    for asked in (lambda: talks.comments(issue), lambda: talks.create_comment(issue, "Hello")):
        with pytest.raises(Gone) as caught:
            asked()
        assert not caught.value.certain
    assert not talks.has_listed(issue)


def test_a_comment_that_was_deleted_or_never_listed_is_gone(github: FakeGitHub, talks: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    made = talks.create_comment(number, "Hello")
    github.delete_said(number, made.id)
    for key in (made.id, 4711):
        with pytest.raises(Gone):
            talks.update_comment(key, "Hello again")


def test_a_token_that_may_only_read_is_told_what_it_lacks(github: FakeGitHub, talks: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    github.world.tokens[github.token].permissions = {"issues": "write", "discussions": "read"}
    with pytest.raises(NotPermitted, match="discussions: write"):
        talks.create_comment(number, "Hello")
    assert github.discussion(number).comments == []


def test_a_lost_answer_is_not_asked_for_again(github: FakeGitHub, talks: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    talks.comments(number)
    github.faults.add("POST /graphql", "drop", None)
    github.mark()
    with pytest.raises(Unreachable):
        talks.create_comment(number, "Hello")
    assert len(github.recent) == 1


def test_discussions_are_counted_where_the_token_may_see_them(github: FakeGitHub, client: GitHubClient) -> None:
    assert count_discussions(client, REPOSITORY) == 0
    github.discuss("hubot", "How?")
    assert count_discussions(client, REPOSITORY) == 1
    github.world.tokens[github.token].permissions = {"issues": "write"}
    assert count_discussions(client, REPOSITORY) is None
