"""The client against the fake forge: pages, what each refusal means, and that nothing is ever written twice."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from bot.github.client import GitHubClient
from bot.github.errors import (
    CannotComment,
    ForgeError,
    Gone,
    Invalid,
    IssuesOff,
    NotPermitted,
    RateLimited,
    Unauthorised,
    Unreachable,
    error_for_status,
)
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.github.conftest import REPOSITORY

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


@pytest.fixture
def number(github: FakeGitHub) -> int:
    return github.open_issue("octocat", "Crash", "It crashes.")


# -- reading -------------------------------------------------------------------------------------------------------


def test_issues_come_oldest_change_first_on_as_many_pages_as_asked_for(
    github: FakeGitHub, client: GitHubClient
) -> None:
    for count in range(250):
        github.open_issue("octocat", f"Issue {count}", at=f"2026-01-01T00:{count // 60:02d}:{count % 60:02d}Z")
    first, whole = client.issues_since(None, 2)
    assert ([issue["number"] for issue in first], whole) == ([*range(1, 201)], False)
    everything, whole = client.issues_since(EPOCH, 3)
    assert ([issue["number"] for issue in everything], whole) == ([*range(1, 251)], True)
    assert client.reads == 5


def test_since_is_a_moment_in_utc_and_holds_that_second(github: FakeGitHub, client: GitHubClient) -> None:
    for hour in (9, 10, 11):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{hour:02d}:00:00Z")
    found, _ = client.issues_since(datetime.fromisoformat("2026-01-01T12:00:00+02:00"), 1)
    assert [issue["number"] for issue in found] == [2, 3]


def test_closed_ones_and_pull_requests_are_listed_too(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.close(number, "octocat")
    github.add_pull("hubot", "Fix")
    assert len(client.issues_since(None, 1)[0]) == 2


def test_all_comments_of_an_issue_are_read_and_those_of_all_issues(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    other = github.open_issue("octocat", "Another")
    for count in range(230):
        github.comment(number if count % 23 else other, "hubot", f"{count}")
    assert len(client.comments(number)) == 220
    assert client.reads == 3
    found, whole = client.comments_since(EPOCH, 2)
    assert ([comment["body"] for comment in found], whole) == ([str(count) for count in range(200)], False)
    assert len(client.comments_since(EPOCH, 3)[0]) == 230


def test_a_timeline_holds_comments_and_events(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.comment(number, "hubot", "Me too")
    github.close(number, "octocat")
    assert [item["event"] for item in client.timeline(number)] == ["commented", "closed"]


def test_ghosts_and_empty_bodies_are_null(github: FakeGitHub, client: GitHubClient) -> None:
    number = github.open_issue(None, "Crash", None)
    issue = client.issue(number)
    assert (issue["user"], issue["body"]) == (None, None)


def test_lone_surrogates_arrive(github: FakeGitHub, client: GitHubClient) -> None:
    number = github.open_issue("octocat", "Crash \ud800", "\x00")
    assert (client.issue(number)["title"], client.issue(number)["body"]) == ("Crash \ud800", "\x00")


@pytest.mark.parametrize(
    ("role", "permission"),
    [("admin", "admin"), ("maintain", "write"), ("write", "write"), ("triage", "read"), ("read", "read")],
)
def test_permission_is_what_the_api_says(github: FakeGitHub, client: GitHubClient, role: str, permission: str) -> None:
    github.set_permission("hubot", role)
    assert client.permission("hubot") == permission


@pytest.mark.parametrize(("login", "reads"), [("nobody-here", 1), ("dependabot[bot]", 0), ("../../issues/1?", 0)])
def test_who_has_no_account_has_no_permission(github: FakeGitHub, client: GitHubClient, login: str, reads: int) -> None:
    assert (client.permission(login), client.reads) == ("none", reads)


def test_that_permission_cannot_be_asked_is_no_answer(github: FakeGitHub, client: GitHubClient) -> None:
    github.set_permission("hubot", "write")
    github.faults.add("GET /repos/*/collaborators/*/permission", "secondary403")
    with pytest.raises(RateLimited):
        client.permission("hubot")


def test_one_comment_is_read_until_it_is_deleted(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    made = github.comment(number, "hubot", "Me too")
    assert client.comment(made)["body"] == "Me too"
    github.delete_comment(made)
    with pytest.raises(Gone):
        client.comment(made)


def test_the_same_reaction_twice_is_one(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    made = github.comment(number, "hubot", "Me too")
    for content in ("eyes", "rocket", "eyes"):
        client.react(made, content)
    assert [reaction.content for reaction in github.comment_by_id(made).reactions] == ["eyes", "rocket"]
    assert client.writes == 3
    with pytest.raises(Gone):
        client.react(made + 1, "eyes")


# -- what is not there ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("happen", "words", "told"),
    [
        (lambda github, number: github.delete_issue(number), "410", (Gone, True, None)),
        (lambda github, number: github.hide_issue(number), "404", (Gone, False, None)),
        (lambda github, _: setattr(github.repo, "has_issues", False), "switched off", (IssuesOff, False, None)),
    ],
)
def test_an_issue_that_is_not_there_is_gone_for_certain_only_where_it_was_deleted(
    github: FakeGitHub,
    client: GitHubClient,
    number: int,
    happen: Callable[[FakeGitHub, int], object],
    words: str,
    told: tuple[type[Gone], bool, None],
) -> None:
    happen(github, number)
    with pytest.raises(Gone, match=words) as gone:
        client.issue(number)
    assert (type(gone.value), gone.value.certain, gone.value.moved_to) == told


def test_a_transferred_issue_is_gone_and_where_to(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    there = github.transfer(number, github.add_project("octocat/other"))
    with pytest.raises(Gone) as gone:
        client.issue(number)
    assert (gone.value.certain, gone.value.moved_to) == (True, f"octocat/other#{there}")


def test_an_issue_of_a_renamed_repository_is_not_gone(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.rename_repo("octocat/hello-new-world")
    assert client.issue(number)["title"] == "Crash"


# -- writing -------------------------------------------------------------------------------------------------------


def test_a_comment_is_written_changed_folded_and_unfolded(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    made = client.create_comment(number, "One")
    changed = client.update_comment(made.id, "Two")
    assert (changed.id, changed.url, changed.node_id) == (made.id, made.url, made.node_id)
    assert github.comment_by_id(made.id).body == "Two"
    client.fold(made.node_id, folded=True)
    assert github.comment_by_id(made.id).minimized == "OUTDATED"
    client.fold(made.node_id, folded=False)
    assert github.comment_by_id(made.id).minimized is None
    assert (client.reads, client.writes, github.writes) == (0, 4, 4)


@pytest.mark.parametrize("kind", ["dup", "drop", "5xx"])
def test_a_write_whose_answer_is_lost_is_not_sent_again(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str
) -> None:
    github.faults.add("POST *", kind)
    with pytest.raises(Unreachable):
        client.create_comment(number, "One")
    assert len(github.requests) == 1
    assert len(github.issue(number).comments) == (kind == "dup")


def test_a_comment_that_is_gone_cannot_be_changed(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    made = client.create_comment(number, "One")
    github.delete_comment(made.id)
    with pytest.raises(Gone):
        client.update_comment(made.id, "Two")


def test_where_no_comment_is_taken_is_no_fault(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.lock(number)
    with pytest.raises(CannotComment, match="locked"):
        client.create_comment(number, "One")


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 429])
def test_a_used_up_limit_tells_when_it_ends(github: FakeGitHub, client: GitHubClient, number: int, status: int) -> None:
    github.limits.set(1)
    github.limits.status = status
    client.issue(number)
    with pytest.raises(RateLimited, match="until 13:00 UTC") as limited:
        client.issue(number)
    assert limited.value.until == datetime.fromisoformat("2026-01-05T13:00:00Z")


@pytest.mark.parametrize("kind", ["secondary403", "429", "primary403"])
@pytest.mark.parametrize("seconds", [0, 3600])
def test_no_limit_is_waited_for(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str, seconds: float
) -> None:
    github.faults.add("GET *", kind, None, seconds=seconds)
    started = time.monotonic()
    with pytest.raises(RateLimited):
        client.issue(number)
    assert time.monotonic() - started < 2
    assert len(github.requests) == 1


def test_a_dead_token_and_a_missing_permission(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.add_token("weak", "github-actions[bot]", {"issues": "read"})
    weak = GitHubClient(github.url, "weak", REPOSITORY, write_gap=0)
    with pytest.raises(NotPermitted, match="issues: write"):
        weak.create_comment(number, "One")
    with pytest.raises(Unauthorised, match="401"):
        GitHubClient(github.url, "unknown", REPOSITORY).issue(number)


def test_a_read_is_repeated_after_a_fault_of_the_server(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET *", "5xx")
    github.faults.add("GET *", "drop", after=1)
    assert client.issue(number)["title"] == "Crash"


@pytest.mark.parametrize(
    ("status", "message", "headers", "meaning"),
    [
        (401, "Bad credentials", {}, Unauthorised),
        (403, "Resource not accessible by integration", {}, NotPermitted),
        (403, "Forbidden", {"retry-after": "60"}, RateLimited),
        (403, "Forbidden", {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "junk"}, RateLimited),
        (403, "Unable to create comment because issue is locked.", {}, CannotComment),
        (403, "Repository was archived so is read-only.", {}, CannotComment),
        (403, "Commenting is disabled on issues with more than 2500 comments", {}, CannotComment),
        (422, "Issue is locked", {}, CannotComment),
        (422, "Validation Failed", {}, Invalid),
        (422, "was submitted too quickly", {}, RateLimited),
        (403, "You have exceeded a secondary rate limit", {}, RateLimited),
        (404, "Not Found", {}, Gone),
        (410, "This issue was deleted", {}, Gone),
        (429, "", {}, RateLimited),
        (500, "", {}, Unreachable),
        (418, "I'm a teapot", {}, ForgeError),
    ],
)
def test_what_a_refusal_means(status: int, message: str, headers: dict[str, str], meaning: type[ForgeError]) -> None:
    found = error_for_status(status, headers, {"message": message})
    assert type(found) is meaning
    assert "\n" not in str(found)
    assert error_for_status(status, {}, None).exit_code == 1


@pytest.fixture
def strange() -> Iterator[tuple[Listener, list[Sent]]]:
    """A server between us and GitHub, which answers whatever the test wants."""
    answers: list[Sent] = []
    listener = Listener(lambda *_: answers[0])
    yield listener, answers
    listener.stop()


PAGE = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "sent",
    [
        Sent(200, PAGE, b"<html>Please log in to the network</html>"),
        Sent(200, JSON, b'[{"number": 1'),
        Sent(200, JSON, b'{"number"'),
        Sent(200, JSON, b""),
        Sent(200, JSON, b"null"),
        Sent(200, JSON, b"7"),
        Sent(301, {"Location": "https://elsewhere.example/login"}, b""),
        Sent(304, {}, b""),
        Sent(502, PAGE, b"<html>Bad Gateway</html>"),
    ],
)
def test_what_is_no_answer_of_github_is_never_taken_for_nothing_there(
    strange: tuple[Listener, list[Sent]], sent: Sent
) -> None:
    listener, answers = strange
    answers.append(sent)
    client = GitHubClient(listener.url, "token", REPOSITORY, write_gap=0)
    calls = [lambda: client.create_comment(1, "x"), lambda: client.update_comment(1, "x")]
    if sent.status != 502:  # reads of it are repeated, with pauses
        calls += [lambda: client.comments(1), lambda: client.issues_since(None, 1), lambda: client.issue(1)]
    for call in calls:
        with pytest.raises(ForgeError):
            call()


def test_what_is_no_repository_is_refused() -> None:
    for name in ("octocat", "a/b/c", "a/b?x", "", "a/\n"):
        with pytest.raises(ForgeError, match="owner/name"):
            GitHubClient("http://127.0.0.1:9", "token", name)
