"""Reading a repository and one of its threads for another repository: what exists and who may see it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.comment.marker import marker
from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.github.app import visibility_of
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Gone, Unreachable
from bot.github.foreign_thread import read_repository
from bot.github.threads import OwnCommentRule
from bot.reading.endings.outcome import outcome
from tests.fakes.github import FakeGitHub
from tests.github.conftest import REPOSITORY

OWN = OwnCommentRule("precedent[bot]", marker())
AT, LATER = datetime(2025, 3, 1, tzinfo=UTC), datetime(2025, 4, 1, tzinfo=UTC)


def test_a_closed_issue_is_read_with_its_repository_in_one_request(github: FakeGitHub, client: GitHubClient) -> None:
    github.open_issue("octocat", "Crash at night", at="2025-03-01T00:00:00Z")
    github.close(1, "octocat", "not_planned", at="2025-04-01T00:00:00Z")
    repository = read_repository(client, REPOSITORY, OWN, 1)
    assert (repository.id, repository.name, repository.visibility) == (github.repo.id, REPOSITORY, Visibility.PUBLIC)
    assert repository.thread is not None
    thread = repository.thread
    assert (thread.title, thread.created_at, thread.state) == ("Crash at night", AT, "closed")
    assert (thread.state_reason, thread.closed_at) == ("not_planned", LATER)
    assert (client.queries, client.reads) == (1, 0)


def test_the_ending_of_an_issue_is_read_with_it(github: FakeGitHub, client: GitHubClient) -> None:
    github.open_issue("octocat", "Crash at night", at="2025-03-01T00:00:00Z")
    for _ in range(80):
        github.comment(1, "hubot", "Same here.")
    github.comment(1, github.repo.owner.login, "Fixed by setting SameSite on the cookie.")
    github.close(1, github.repo.owner.login, "completed")
    thread = read_repository(client, REPOSITORY, OWN, 1).thread
    assert thread is not None
    ending = outcome(thread, REPOSITORY)
    assert (ending.quote, ending.author) == ("Fixed by setting SameSite on the cookie.", github.repo.owner.login)
    assert ending.role == "OWNER"
    assert client.queries == 1


def test_an_issue_is_read_without_permission_for_pull_requests(github: FakeGitHub, client: GitHubClient) -> None:
    github.open_issue("octocat", "Crash at night")
    github.faults.add("POST /graphql", "permission")
    assert read_repository(client, REPOSITORY, OWN, 1).thread is not None
    assert client.queries == 2


def test_a_repository_is_read_without_a_thread(github: FakeGitHub, client: GitHubClient) -> None:
    for visibility in Visibility:
        github.repo.private, github.repo.internal = visibility != "public", visibility == "internal"
        repository = read_repository(client, REPOSITORY, OWN)
        assert (repository.visibility, repository.thread) == (visibility, None)


def test_a_discussion_that_somebody_else_answered_is_closed(github: FakeGitHub, client: GitHubClient) -> None:
    github.repo.has_discussions = True
    number = github.discuss("octocat", "Which store?", "Files?", at="2025-03-01T00:00:00Z")
    unanswered = read_repository(client, REPOSITORY, OWN, number, Kind.DISCUSSION).thread
    assert unanswered is not None
    assert (unanswered.title, unanswered.state, unanswered.created_at) == ("Which store?", "open", AT)
    answer = github.say(number, "hubot", "PostgreSQL.")
    github.mark_answer(number, answer, "octocat")
    answered = read_repository(client, REPOSITORY, OWN, number, Kind.DISCUSSION).thread
    assert answered is not None
    assert (answered.state, answered.closed_at is None) == ("closed", False)
    assert outcome(answered, REPOSITORY).quote == "PostgreSQL."
    github.mark_answer(number, github.say(number, "octocat", "Files."), "octocat")
    own = read_repository(client, REPOSITORY, OWN, number, Kind.DISCUSSION).thread
    assert own is not None
    assert (own.state, own.closed_at) == ("open", None)


def test_deleted_and_moved_issues_and_pull_requests_are_not_read(github: FakeGitHub, client: GitHubClient) -> None:
    other = github.add_project("octocat/other")
    for _ in range(2):
        github.open_issue("octocat", "Crash")
    github.add_pull("hubot", "Fix it", "")
    github.delete_issue(1)
    github.transfer(2, other)
    for number in (1, 2, 3, 99):
        assert read_repository(client, REPOSITORY, OWN, number).thread is None


def test_an_invisible_repository_is_gone(github: FakeGitHub, client: GitHubClient) -> None:
    with pytest.raises(Gone):
        read_repository(client, "octocat/unknown", OWN, 1)


class CannedClient:
    """A client whose queries return this repository."""

    def __init__(self, repository: Any) -> None:
        self.answer = {"repository": repository}

    def query(self, text: str, variables: object, needed: str) -> Any:
        return self.answer


def make_answer(**changes: Any) -> dict[str, Any]:
    thread = {"number": 1, "title": "Crash", "state": "OPEN", "createdAt": "2025-03-01T00:00:00Z"}
    thread |= {"repository": {"databaseId": 5}, "body": "", "updatedAt": None, "closedAt": None, "locked": False}
    thread |= {"author": None, "authorAssociation": "NONE"}
    thread |= {name: {"totalCount": 0, "nodes": []} for name in ("comments", "timelineItems")}
    fields = {
        "databaseId": 5,
        "nameWithOwner": REPOSITORY,
        "isPrivate": False,
        "visibility": "PUBLIC",
        "thread": thread,
    }
    return fields | changes


def read(answer: Any) -> Any:
    return read_repository(CannedClient(answer), REPOSITORY, OWN, 1)  # type: ignore[arg-type]


def test_a_thread_that_moved_to_another_repository_is_not_read() -> None:
    elsewhere = make_answer()["thread"] | {"repository": {"databaseId": 6}}
    assert read(make_answer()).thread is not None
    assert read(make_answer(thread=elsewhere)).thread is None
    assert read(make_answer(thread=make_answer()["thread"] | {"number": 2})).thread is None


@pytest.mark.parametrize("changes", [{"databaseId": None}, {"databaseId": "5"}, {"nameWithOwner": "?"}])
def test_an_answer_without_the_repository_identity_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(Unreachable):
        read(make_answer(**changes))


@pytest.mark.parametrize(
    ("named", "private", "visibility"),
    [
        ("public", False, "public"),
        (None, False, "public"),
        ("internal", True, "internal"),
        ("private", True, "private"),
        (None, True, "private"),
        ("public", True, "private"),
        ("private", False, "private"),
        ("secret", False, "private"),
        (5, False, "private"),
    ],
)
def test_the_narrower_visibility_counts(named: object, private: bool, visibility: str) -> None:
    assert visibility_of(named, private=private) == visibility


_JSON = st.sampled_from([None, False, True, 5, -1, "", "PRIVATE", "9999-01-01", [], [{}], {}, {"databaseId": 5}])


@given(
    st.dictionaries(st.sampled_from(list(make_answer())), _JSON, max_size=3),
    st.dictionaries(st.sampled_from(list(make_answer()["thread"])), _JSON, max_size=3),
)
def test_an_answer_of_any_shape_is_read_or_refused(changes: dict[str, Any], thread: dict[str, Any]) -> None:
    try:
        repository = read(make_answer(thread=make_answer()["thread"] | thread) | changes)
    except ForgeError:
        return
    assert repository.visibility in list(Visibility)
    is_open = changes.get("isPrivate", False) is False and changes.get("visibility", "PUBLIC") == "PUBLIC"
    assert repository.visibility != "public" or is_open or str(changes.get("visibility")).lower() in ("public", "none")
