"""The client against the fake GitHub: pages, the meaning of each refusal, and that nothing is ever written twice."""

from __future__ import annotations

from collections.abc import Callable
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
from tests.fakes.service import SentReply
from tests.github.conftest import REPOSITORY, ScriptedServer

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


# -- reading -------------------------------------------------------------------------------------------------------


def test_issues_come_oldest_change_first_up_to_the_page_limit(github: FakeGitHub, client: GitHubClient) -> None:
    for count in range(250):
        github.open_issue("octocat", f"Issue {count}", at=f"2026-01-01T00:{count // 60:02d}:{count % 60:02d}Z")
    first, is_complete = client.issues_since(None, 2)
    assert ([issue["number"] for issue in first], is_complete) == ([*range(1, 201)], False)
    issues, is_complete = client.issues_since(EPOCH, 3)
    assert ([issue["number"] for issue in issues], is_complete) == ([*range(1, 251)], True)
    assert client.reads == 5


def test_since_is_converted_to_utc_and_closed_issues_and_pull_requests_are_listed_too(
    github: FakeGitHub, client: GitHubClient
) -> None:
    for hour in (9, 10, 11):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{hour:02d}:00:00Z")
    github.close(2, "octocat", at="2026-01-01T10:00:00Z")
    github.add_pull("hubot", "Fix", at="2026-01-01T12:00:00Z")
    issues, _ = client.issues_since(datetime.fromisoformat("2026-01-01T12:00:00+02:00"), 1)
    assert [issue["number"] for issue in issues] == [2, 3, 4]


def test_comments_of_one_issue_and_of_all_issues_are_read(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    other = github.open_issue("octocat", "Another")
    for count in range(230):
        github.comment(number if count % 23 else other, "hubot", f"{count}")
    assert len(client.comments(number)) == 220
    assert client.reads == 3
    comments, is_complete = client.comments_since(EPOCH, 2)
    assert ([comment["body"] for comment in comments], is_complete) == ([str(count) for count in range(200)], False)
    assert len(client.comments_since(EPOCH, 3)[0]) == 230


def test_lone_surrogates_arrive(github: FakeGitHub, client: GitHubClient) -> None:
    number = github.open_issue("octocat", "Crash \ud800", "\x00")
    assert (client.issue(number)["title"], client.issue(number)["body"]) == ("Crash \ud800", "\x00")


@pytest.mark.parametrize(
    ("role", "permission"),
    [("admin", "admin"), ("maintain", "write"), ("write", "write"), ("triage", "read"), ("read", "read")],
)
def test_the_permission_comes_from_the_api(
    github: FakeGitHub, client: GitHubClient, role: str, permission: str
) -> None:
    github.set_permission("hubot", role)
    assert client.permission("hubot") == permission


@pytest.mark.parametrize(("login", "reads"), [("nobody-here", 1), ("dependabot[bot]", 0), ("../../issues/1?", 0)])
def test_a_login_without_an_account_has_no_permission(
    github: FakeGitHub, client: GitHubClient, login: str, reads: int
) -> None:
    assert (client.permission(login), client.reads) == ("none", reads)


def test_a_failed_permission_request_raises_instead_of_answering(github: FakeGitHub, client: GitHubClient) -> None:
    github.set_permission("hubot", "write")
    github.faults.add("GET /repos/*/collaborators/*/permission", "secondary403")
    with pytest.raises(RateLimited):
        client.permission("hubot")


def test_repeating_a_reaction_adds_nothing(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    comment_id = github.comment(number, "hubot", "Me too")
    for content in ("eyes", "rocket", "eyes"):
        client.react(number, comment_id, content)
    assert [reaction.content for reaction in github.comment_by_id(comment_id).reactions] == ["eyes", "rocket"]
    assert client.writes == 3
    with pytest.raises(Gone):
        client.react(number, comment_id + 1, "eyes")


# -- missing issues ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "words", "expected"),
    [
        (lambda github, number: github.delete_issue(number), "410", (Gone, True, None)),
        (lambda github, number: github.hide_issue(number), "404", (Gone, False, None)),
        (lambda github, _: github.switch_issues(on=False), "switched off", (IssuesOff, False, None)),
    ],
)
def test_an_issue_is_certainly_gone_only_if_it_was_deleted(
    github: FakeGitHub,
    client: GitHubClient,
    number: int,
    act: Callable[[FakeGitHub, int], object],
    words: str,
    expected: tuple[type[Gone], bool, None],
) -> None:
    act(github, number)
    with pytest.raises(Gone, match=words) as caught:
        client.issue(number)
    assert (type(caught.value), caught.value.certain, caught.value.moved_to) == expected


def test_a_transferred_issue_is_gone_and_its_new_place_is_known(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    new_number = github.transfer(number, github.add_project("octocat/other"))
    with pytest.raises(Gone) as caught:
        client.issue(number)
    assert (caught.value.certain, caught.value.moved_to) == (True, f"octocat/other#{new_number}")


def test_an_issue_of_a_renamed_repository_is_not_gone(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.rename_repo("octocat/hello-new-world")
    assert client.issue(number)["title"] == "Crash"


# -- writing -------------------------------------------------------------------------------------------------------


def test_a_comment_can_be_written_and_changed(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    created = client.create_comment(number, "One")
    updated = client.update_comment(created.id, "Two")
    assert (updated.id, updated.url) == (created.id, created.url)
    assert github.comment_by_id(created.id).body == "Two"
    assert (client.reads, client.writes, github.writes) == (0, 2, 2)


@pytest.mark.parametrize("kind", ["dup", "drop", "5xx"])
def test_a_write_whose_response_was_lost_is_not_sent_again(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str
) -> None:
    github.faults.add("POST *", kind)
    with pytest.raises(Unreachable):
        client.create_comment(number, "One")
    assert len(github.requests) == 1
    assert len(github.issue(number).comments) == (kind == "dup")


def test_a_deleted_comment_is_gone_and_a_locked_issue_takes_none(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    created = client.create_comment(number, "One")
    assert client.comment(created.id)["body"] == "One"
    github.delete_comment(created.id)
    for call in (lambda: client.comment(created.id), lambda: client.update_comment(created.id, "Two")):
        with pytest.raises(Gone):
            call()
    github.lock(number)
    with pytest.raises(CannotComment, match="locked"):
        client.create_comment(number, "One")


# -- refusals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [403, 429])
def test_an_exhausted_limit_says_when_it_resets(
    github: FakeGitHub, client: GitHubClient, number: int, status: int
) -> None:
    github.limits.set(1)
    github.limits.status = status
    client.issue(number)
    with pytest.raises(RateLimited, match="until 13:00 UTC") as caught:
        client.issue(number)
    assert caught.value.until == datetime.fromisoformat("2026-01-05T13:00:00Z")


@pytest.mark.parametrize("kind", ["secondary403", "429", "primary403"])
@pytest.mark.parametrize("seconds", [0, 3600])
def test_rate_limits_raise_at_once_instead_of_waiting(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str, seconds: float
) -> None:
    github.faults.add("GET *", kind, None, seconds=seconds)
    with pytest.raises(RateLimited):
        client.issue(number)
    assert len(github.requests) == 1


def test_a_dead_token_and_a_missing_permission_are_told_apart(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
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
def test_status_and_message_decide_the_error(
    status: int, message: str, headers: dict[str, str], meaning: type[ForgeError]
) -> None:
    error = error_for_status(status, headers, {"message": message})
    assert type(error) is meaning
    assert "\n" not in str(error)
    assert error_for_status(status, {}, None).exit_code == 1


PAGE = {"Content-Type": "text/html"}
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "sent",
    [
        SentReply(200, PAGE, b"<html>Please log in to the network</html>"),
        SentReply(200, JSON, b'[{"number": 1'),
        SentReply(200, JSON, b'{"number"'),
        SentReply(200, JSON, b""),
        SentReply(200, JSON, b"null"),
        SentReply(200, JSON, b"7"),
        SentReply(301, {"Location": "https://elsewhere.example/login"}, b""),
        SentReply(304, {}, b""),
        SentReply(502, PAGE, b"<html>Bad Gateway</html>"),
    ],
)
def test_a_foreign_response_is_never_mistaken_for_an_empty_result(
    scripted_server: ScriptedServer, sent: SentReply
) -> None:
    scripted_server.answers.append(sent)
    client = scripted_server.client()
    calls = [lambda: client.create_comment(1, "x"), lambda: client.update_comment(1, "x")]
    if sent.status != 502:  # reads are retried after it, with pauses
        calls += [lambda: client.comments(1), lambda: client.issues_since(None, 1), lambda: client.issue(1)]
    for call in calls:
        with pytest.raises(ForgeError):
            call()


def test_a_malformed_repository_name_is_refused() -> None:
    for name in ("octocat", "a/b/c", "a/b?x", "", "a/\n"):
        with pytest.raises(ForgeError, match="owner/name"):
            GitHubClient("http://127.0.0.1:9", "token", name)
