"""Discussions by GraphQL: every field, long and deleted ones, and refusals by the server or for lack of permission."""

from __future__ import annotations

from datetime import datetime

import pytest
from graphql import parse

from bot.domain.thread import Kind, TimelineEvent
from bot.domain.thread_json import archive_fields, thread_from_archive
from bot.github.client import GitHubClient
from bot.github.discussions import DISCUSSION_QUERY, LIST_QUERY, PAGE_SIZES, DiscussionReader, changed_since
from bot.github.errors import Gone, NotPermitted, Unreachable
from bot.github.history import GraphQLHistory
from bot.github.threads import OwnCommentRule
from tests.fakes.github import FakeGitHub
from tests.fakes.graph import measure, validate_query
from tests.github.conftest import REPOSITORY


@pytest.fixture
def reader(github: FakeGitHub, client: GitHubClient, own: OwnCommentRule) -> DiscussionReader:
    graphql = GraphQLHistory(REPOSITORY, own, client)
    return DiscussionReader(graphql, own)


def at(day: int, hour: int = 10) -> str:
    return f"2025-09-{day:02d}T{hour:02d}:00:00Z"


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def test_everything_that_memory_needs_is_read_from_a_discussion(github: FakeGitHub, reader: DiscussionReader) -> None:
    number = github.discuss("hubot", "How?", "Like this?", at=at(1), labels=["help"])
    comment_id = github.say(number, "octocat", "Like that.", at=at(2))
    reply = github.say(number, "hubot", "Thanks!", at=at(3), to=comment_id)
    github.mark_answer(number, comment_id, "hubot", at=at(4))
    (thread,) = reader.page("").threads
    assert (thread.id, thread.kind, thread.title, thread.body) == (number, Kind.DISCUSSION, "How?", "Like this?")
    assert (thread.author, thread.role, thread.labels) == ("hubot", "NONE", ("Q&A", "help"))
    assert [(comment.id, comment.author, comment.role, comment.text) for comment in thread.comments] == [
        (comment_id, "octocat", "OWNER", "Like that."),
        (reply, "hubot", "NONE", "Thanks!"),
    ]
    assert (thread.state, thread.state_reason, thread.closed_by) == ("closed", "answered", "hubot")
    assert (thread.closed_at, thread.updated_at) == (moment(at(4)), moment(at(4)))
    assert thread.events == (TimelineEvent("answered", moment(at(4)), "hubot", comment=comment_id),)
    assert thread_from_archive(archive_fields(thread)) == thread
    assert reader.read_one(number) == thread


def test_a_discussion_closed_without_an_answer_says_why(github: FakeGitHub, reader: DiscussionReader) -> None:
    number = github.discuss(None, "An idea", category="Ideas", at=at(1))
    github.close_discussion(number, "outdated", at=at(2))
    thread = reader.read_one(number)
    assert (thread.author, thread.state, thread.state_reason) == ("ghost", "closed", "outdated")
    assert (thread.closed_at, thread.events, thread.labels) == (moment(at(2)), (), ("Ideas",))


def test_an_answer_in_the_authors_own_words_ends_nothing(github: FakeGitHub, reader: DiscussionReader) -> None:
    number = github.discuss("hubot", "How?", at=at(1))
    github.mark_answer(number, github.say(number, "hubot", "Like this.", at=at(2)), "octocat", at=at(3))
    thread = reader.read_one(number)
    assert (thread.state, thread.state_reason, thread.closed_at, thread.closed_by) == ("open", None, None, None)
    assert thread.events == ()
    github.close_discussion(number, "resolved", at=at(4))
    thread = reader.read_one(number)
    assert (thread.state, thread.state_reason, thread.closed_at) == ("closed", "resolved", moment(at(4)))


def test_the_answer_of_a_deleted_account_counts_unless_the_authors_is_deleted_too(
    github: FakeGitHub, reader: DiscussionReader
) -> None:
    for author, answerer, is_over in (("hubot", None, True), (None, "hubot", True), (None, None, False)):
        number = github.discuss(author, "How?", at=at(1))
        github.mark_answer(number, github.say(number, answerer, "Like this.", at=at(2)), "octocat", at=at(3))
        assert reader.read_one(number).is_closed is is_over


def test_a_reply_may_be_the_answer(github: FakeGitHub, reader: DiscussionReader) -> None:
    number = github.discuss("hubot", "How?")
    top = github.say(number, "hubot", "Anybody?")
    replies = [github.say(number, "octocat", f"Reply {n}", to=top) for n in range(12)]
    github.mark_answer(number, replies[-1], "hubot")
    (thread,) = reader.page("").threads
    assert [comment.id for comment in thread.comments] == [top, *replies]
    assert thread.events[0].comment == replies[-1]


def test_a_deleted_comment_leaves_its_replies(github: FakeGitHub, reader: DiscussionReader) -> None:
    number = github.discuss("hubot", "How?")
    top = github.say(number, "octocat", "My password is 1234.")
    reply = github.say(number, "hubot", "Delete that!", to=top)
    github.delete_discussion_comment(number, top)
    assert [comment.id for comment in reader.read_one(number).comments] == [reply]


def test_a_person_with_the_name_of_our_app_is_not_mistaken_for_us(
    github: FakeGitHub, reader: DiscussionReader, own: OwnCommentRule
) -> None:
    """GraphQL gives both the same login."""
    person = own.login.removesuffix("[bot]")
    number = github.discuss("hubot", "How?")
    _, comment_id = (github.say(number, login, f"{own.marker}\nSeen before") for login in (own.login, person))
    (comment,) = reader.read_one(number).comments
    assert (comment.id, comment.author, comment.is_bot) == (comment_id, person, False)


def test_long_discussions_are_read_to_their_end(github: FakeGitHub, reader: DiscussionReader) -> None:
    number = github.discuss("hubot", "How?")
    comment_ids = [github.say(number, "octocat", f"Comment {n}") for n in range(120)]
    (thread,) = reader.page("").threads
    assert [comment.id for comment in thread.comments] == comment_ids
    assert [comment.id for comment in reader.read_one(number).comments] == comment_ids


def test_the_list_resumes_at_the_cursor_and_later_changes_come_last(
    github: FakeGitHub, reader: DiscussionReader
) -> None:
    numbers = [github.discuss("hubot", f"Question {n}", at=at(1, n)) for n in range(22)]
    first = reader.page("")
    github.say(numbers[0], "octocat", "Once more", at=at(2))
    rest = reader.page(first.after)
    assert [thread.id for thread in first.threads] == numbers[: PAGE_SIZES[0]]
    assert [thread.id for thread in rest.threads] == [*numbers[PAGE_SIZES[0] :], numbers[0]]
    assert (bool(first.after), rest.after) == (True, "")


def test_the_newest_changes_come_first(github: FakeGitHub, reader: DiscussionReader) -> None:
    numbers = [github.discuss("hubot", f"Question {n}", at=at(1, n)) for n in range(22)]
    pages = list(reader.newest(moment(at(1))))
    assert [thread.id for page in pages for thread in page.threads] == numbers[::-1]
    assert [thread.id for thread in changed_since(pages[0], moment(at(1, 20)))] == numbers[:19:-1]


def test_only_changed_discussions_are_read_to_their_end(github: FakeGitHub, reader: DiscussionReader) -> None:
    old, new = (github.discuss("hubot", name, at=at(day)) for name, day in (("Old", 1), ("New", 3)))
    for number, day in ((old, 1), (new, 3)):
        for _ in range(60):
            github.say(number, "octocat", "Once more", at=at(day))
    before = len(github.requests)
    (page,) = reader.newest(moment(at(2)))
    assert [len(changed.comments) for changed in changed_since(page, moment(at(2)))] == [60]
    assert len(github.requests) - before == 3  # the list, and two pages of the new one


def test_a_number_that_is_not_a_discussion_is_gone_but_not_certainly(
    github: FakeGitHub, reader: DiscussionReader
) -> None:
    number = github.open_issue("hubot", "Crash")
    github.discuss("hubot", "How?")
    with pytest.raises(Gone) as caught:
        reader.read_one(number)
    assert not caught.value.certain


def test_a_repository_without_discussions_is_reported_as_such(github: FakeGitHub, reader: DiscussionReader) -> None:
    github.open_issue("hubot", "Crash")
    assert reader.page("") == ((), "", False)


def test_a_token_without_the_permission_gets_its_name_in_the_error(
    github: FakeGitHub, reader: DiscussionReader
) -> None:
    github.discuss("hubot", "How?")
    github.world.tokens[github.token].permissions = {"issues": "write"}
    with pytest.raises(NotPermitted, match="the token may not read discussions: give the job 'discussions: read'"):
        reader.page("")


def test_smaller_pages_are_requested_if_the_server_drops_a_large_one(
    github: FakeGitHub, reader: DiscussionReader
) -> None:
    numbers = [github.discuss("hubot", f"Question {n}") for n in range(7)]
    github.faults.add("POST /graphql", "drop")
    page = reader.page("")
    assert [thread.id for thread in page.threads] == numbers[: PAGE_SIZES[1]]


def test_an_unknown_cursor_is_an_error_and_not_the_end(github: FakeGitHub, reader: DiscussionReader) -> None:
    github.discuss("hubot", "How?")
    with pytest.raises(Unreachable, match="cursor"):
        reader.page("a")


@pytest.mark.parametrize("query", [LIST_QUERY, DISCUSSION_QUERY])
def test_the_queries_match_the_published_schema_and_stay_within_their_cost(query: str) -> None:
    assert validate_query(query) == []
    nodes, requests = measure(parse(query), {"first": PAGE_SIZES[0], "comments": 30, "replies": 10})
    assert nodes < 10_000
    assert round(requests / 100) <= 7
