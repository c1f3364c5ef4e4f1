"""Our comments in discussions by GraphQL: finding, writing, changing and deleting them, and GitHub's refusals."""

from __future__ import annotations

import pytest

from bot.github.client import GitHubClient
from bot.github.discussion_comments import (
    ADD_COMMENT,
    ADD_REACTION,
    COMMENTS_QUERY,
    COUNT_QUERY,
    DELETE_COMMENT,
    UPDATE_COMMENT,
    DiscussionComments,
    count_discussions,
)
from bot.github.errors import Gone, NotPermitted, Unreachable
from bot.github.threads import OwnCommentRule
from tests.fakes.github import FakeGitHub
from tests.fakes.graph import validate_query
from tests.github.conftest import REPOSITORY


@pytest.fixture
def comments_api(client: GitHubClient) -> DiscussionComments:
    return DiscussionComments(client, REPOSITORY)


def test_each_query_is_valid_in_githubs_schema() -> None:
    queries = (ADD_COMMENT, ADD_REACTION, COMMENTS_QUERY, COUNT_QUERY, DELETE_COMMENT, UPDATE_COMMENT)
    assert [query for query in queries if validate_query(query)] == []


def test_a_comment_can_be_written_found_changed_and_deleted(
    github: FakeGitHub, comments_api: DiscussionComments, own: OwnCommentRule
) -> None:
    number = github.discuss("hubot", "How?")
    github.say(number, "octocat", "Like that.")
    created = comments_api.create_comment(number, f"{own.marker}\nSeen before")
    assert created.url.endswith(f"/discussions/{number}#discussioncomment-{created.id}")
    comments = comments_api.comments(number)
    assert [own.slot(comment) for comment in comments] == [None, ""]
    assert (comments[1]["id"], comments[1]["html_url"]) == (created.id, created.url)
    assert comments_api.timeline(number)[1]["event"] == "commented"
    assert comments_api.update_comment(created.id, f"{own.marker}\nOpen now").id == created.id
    assert github.discussion(number).comments[1].body.endswith("Open now")
    comments_api.delete_comment(created.id)
    assert [comment["body"] for comment in comments_api.comments(number)] == ["Like that."]
    assert github.writes == 3


def test_all_comments_are_read_but_not_their_replies(github: FakeGitHub, comments_api: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    comment_ids = [github.say(number, "octocat", f"Comment {n}") for n in range(101)]
    github.say(number, "hubot", "Thanks!", to=comment_ids[0])
    assert [comment["id"] for comment in comments_api.comments(number)] == comment_ids


def test_a_comment_and_a_reply_get_each_reaction_once(github: FakeGitHub, comments_api: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    comment = github.say(number, "octocat", "Like that.")
    reply = github.say(number, "hubot", "/precedent off", to=comment)
    for key in (reply, comment):
        for content in ("eyes", "confused", "eyes"):
            comments_api.react(number, key, content)
    reactions = [[reaction.content for reaction in found.reactions] for found in github.discussion(number).comments]
    assert reactions == [["eyes", "confused"]] * 2
    assert (github.reads, github.writes) == (1, 6), "the comments are listed once"
    with pytest.raises(Gone):
        comments_api.react(number, 4711, "eyes")


def test_a_comment_without_an_id_is_skipped(github: FakeGitHub, comments_api: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    github.say(number, "octocat", "Like that.")
    comment_id = github.say(number, "octocat", "Or so.")
    github.discussion(number).comments[0].id = 0  # GitHub's schema allows null
    assert [comment["id"] for comment in comments_api.comments(number)] == [comment_id]


def test_a_number_that_is_not_a_discussion_is_gone_but_not_certainly(
    github: FakeGitHub, comments_api: DiscussionComments
) -> None:
    issue = github.open_issue("hubot", "Crash")
    for call in (lambda: comments_api.comments(issue), lambda: comments_api.create_comment(issue, "Hello")):
        with pytest.raises(Gone) as caught:
            call()
        assert not caught.value.certain
    assert not comments_api.has_listed(issue)


def test_a_comment_that_was_deleted_or_never_listed_is_gone(
    github: FakeGitHub, comments_api: DiscussionComments
) -> None:
    number = github.discuss("hubot", "How?")
    created = comments_api.create_comment(number, "Hello")
    github.delete_discussion_comment(number, created.id)
    for key in (created.id, 4711):
        with pytest.raises(Gone):
            comments_api.update_comment(key, "Hello again")


def test_a_read_only_token_is_refused_with_the_missing_permission(
    github: FakeGitHub, comments_api: DiscussionComments
) -> None:
    number = github.discuss("hubot", "How?")
    github.world.tokens[github.token].permissions = {"issues": "write", "discussions": "read"}
    with pytest.raises(NotPermitted, match="discussions: write"):
        comments_api.create_comment(number, "Hello")
    assert github.discussion(number).comments == []


def test_a_write_whose_response_was_lost_is_not_repeated(github: FakeGitHub, comments_api: DiscussionComments) -> None:
    number = github.discuss("hubot", "How?")
    comments_api.comments(number)
    github.faults.add("POST /graphql", "drop", None)
    github.mark()
    with pytest.raises(Unreachable):
        comments_api.create_comment(number, "Hello")
    assert len(github.recent) == 1


def test_discussions_are_counted_if_the_token_may_read_them(github: FakeGitHub, client: GitHubClient) -> None:
    assert count_discussions(client, REPOSITORY) == 0
    github.discuss("hubot", "How?")
    assert count_discussions(client, REPOSITORY) == 1
    github.world.tokens[github.token].permissions = {"issues": "write"}
    assert count_discussions(client, REPOSITORY) is None
