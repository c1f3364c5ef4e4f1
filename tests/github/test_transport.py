"""One request and its response: bounded in time and attempts, following renames, never more than needed."""

from __future__ import annotations

import gzip
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime

import pytest

from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Gone, NotPermitted, RateLimited, RequestSkipped, Unauthorised, Unreachable
from bot.github.transport import MAX_FAILURES, RETRY_DELAYS
from tests.fakes.github import FakeGitHub
from tests.fakes.service import SentReply
from tests.github.conftest import REPOSITORY, ScriptedServer

JSON = {"Content-Type": "application/json"}
EPOCH = datetime.fromisoformat("2020-01-01T00:00:00Z")


def request_lines(github: FakeGitHub) -> list[str]:
    return [f"{request.method} {request.path} {request.status}" for request in github.requests]


# -- rate limits ---------------------------------------------------------------------------------------------------


def test_the_rate_limit_is_known_after_the_first_response(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    assert client.rate is None
    client.issue(number)
    assert client.rate is not None
    left, limit, resets_at = client.rate
    assert (left, limit, resets_at) == (999, 1000, datetime.fromisoformat("2026-01-05T13:00:00Z"))


# -- giving up -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["primary403", "secondary403", "429", "401"])
def test_no_request_is_sent_after_a_rate_limit_or_with_a_dead_token(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str
) -> None:
    github.faults.add("GET *", kind, 1)
    calls: list[Callable[[], object]] = [
        lambda: client.issue(number),
        lambda: client.comments(number),
        lambda: client.create_comment(number, "x"),
    ]
    for call in calls:
        with pytest.raises(Unauthorised if kind == "401" else RateLimited):
            call()
    assert len(github.requests) == 1
    assert len(client.troubles) == 1


MINIMIZE = """
mutation Minimize($input: MinimizeCommentInput!) {
  minimizeComment(input: $input) { minimizedComment { isMinimized } }
}
"""
"""A mutation that `GitHubClient` itself has no use for."""


def node_id_of_comment(client: GitHubClient, number: int) -> str:
    return str(client.comment(client.create_comment(number, "One").id)["node_id"])


def minimize(client: GitHubClient, node_id: str) -> None:
    client.mutate(MINIMIZE, {"subjectId": node_id, "classifier": "OUTDATED"}, "issues: write", optional=True)


@pytest.mark.parametrize(("kind", "request_count"), [("primary403", 2), ("secondary403", 1)])
def test_an_hourly_limit_stops_one_resource_and_a_secondary_limit_stops_all(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str, request_count: int
) -> None:
    node_id = node_id_of_comment(client, number)
    github.mark()
    github.faults.add("GET *", kind)
    with pytest.raises(RateLimited):
        client.issue(number)
    try:
        minimize(client, node_id)
    except RateLimited:
        assert kind == "secondary403"
    assert len(github.recent) == request_count


@pytest.mark.parametrize("kind", ["limit200", "secondary200"])
def test_a_graphql_limit_with_status_200_is_recognised(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str
) -> None:
    node_id = node_id_of_comment(client, number)
    github.faults.add("POST /graphql", kind, None, seconds=90)
    for _ in range(2):
        with pytest.raises(RateLimited, match="until") as caught:
            minimize(client, node_id)
    assert caught.value.is_secondary is (kind == "secondary200")
    assert caught.value.resource == ("secondary" if kind == "secondary200" else "graphql")
    assert len(github.faults.injected) == 1


def test_a_secondary_limit_without_a_time_lasts_a_minute(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET *", "secondary403", seconds=0)
    begun = datetime.fromisoformat(github.clock.now)
    with pytest.raises(RateLimited) as caught:
        client.issue(number)
    assert caught.value.until is not None
    assert (caught.value.until - begun).total_seconds() == 60


def test_a_server_that_is_down_is_tried_a_few_times_and_then_left_alone(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.faults.add("*", "5xx", None)
    for _ in range(MAX_FAILURES + 5):
        with pytest.raises(Unreachable):
            client.issue(number)
    with pytest.raises(RequestSkipped):
        client.get(f"/repos/{REPOSITORY}/releases", {})
    assert (len(github.requests), len(client.troubles)) == (4 * MAX_FAILURES, 1)


def test_a_success_in_between_resets_the_count_of_failures(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.faults.add("GET */comments", "5xx", None)
    for _ in range(MAX_FAILURES + 2):
        with pytest.raises(Unreachable):
            client.comments(number)
        assert client.issue(number)["number"] == number
    assert client.troubles == ()


def test_failing_optional_requests_do_not_stop_the_others(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    created = client.create_comment(number, "One")
    node_id = node_id_of_comment(client, number)
    github.mark()
    for path in ("GET */compare/*", "GET */issues/comments/*", "POST */reactions", "POST /graphql"):
        github.faults.add(path, "5xx", None)
    calls: list[Callable[[], object]] = [
        lambda: client.get(f"/repos/{REPOSITORY}/compare/a...b", {}),
        lambda: client.comment(created.id),
        lambda: client.react(number, created.id, "eyes"),
        lambda: minimize(client, node_id),
    ]
    for call in calls * MAX_FAILURES:
        with pytest.raises(Unreachable):
            call()
    assert len(github.recent) == 4 + 4 + 1, "what has no answer three times is not asked for"
    with pytest.raises(RequestSkipped):
        client.get(f"/repos/{REPOSITORY}/releases", {})
    assert client.create_comment(number, "Two").text == "Two"
    assert client.troubles == ()


@pytest.mark.parametrize(("seconds", "can_ask"), [(29, False), (31, True)])
def test_a_limit_no_longer_counts_once_its_time_has_passed(
    github: FakeGitHub, client: GitHubClient, number: int, seconds: float, can_ask: bool
) -> None:
    github.faults.add("GET *", "secondary403", seconds=30)
    with pytest.raises(RateLimited):
        client.issue(number)
    client.pause_requests(seconds)
    if can_ask:
        assert client.issue(number)["number"] == number
    else:
        with pytest.raises(RateLimited):
            client.issue(number)
    assert len(client.troubles) == (not can_ask)


def test_waiting_does_not_revive_a_dead_token(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET *", "401", 1)
    for _ in range(2):
        with pytest.raises(Unauthorised):
            client.issue(number)
        client.pause_requests(3_600)
    assert len(github.requests) == 1


# -- time ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_call_waits_longer_than_its_timeout(github: FakeGitHub, number: int) -> None:
    note = github.comment(number, "hubot", "Me too")
    github.faults.add("*", "slow", None, seconds=1.0)
    calls: list[Callable[[GitHubClient], object]] = [
        lambda c: c.issues_since(None, 1), lambda c: c.comments_since(EPOCH, 1), lambda c: c.issue(number),
        lambda c: c.comments(number), lambda c: c.timeline(number), lambda c: c.comment(note),
        lambda c: c.permission("hubot"), lambda c: c.get(f"/repos/{REPOSITORY}/releases", {}),
        lambda c: c.create_comment(number, "x"), lambda c: c.update_comment(note, "x"),
        lambda c: c.react(number, note, "eyes"), lambda c: minimize(c, "IC_1"),
    ]  # fmt: skip
    for call in calls:  # each would succeed after a second
        with pytest.raises(Unreachable):
            call(GitHubClient(github.url, github.token, REPOSITORY, write_gap=0, timeout=0.05))


@pytest.fixture
def trickle() -> Iterator[str]:
    """A server that responds one byte at a time, forever."""
    server = socket.create_server(("127.0.0.1", 0))
    stopped = threading.Event()

    def serve() -> None:
        while not stopped.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                try:
                    while not stopped.is_set():
                        connection.sendall(b" ")
                        time.sleep(0.02)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    stopped.set()
    server.close()
    thread.join(2)


def test_a_response_that_trickles_in_byte_by_byte_is_cut_off(trickle: str) -> None:
    client = GitHubClient(trickle, "token", REPOSITORY, write_gap=0, timeout=0.1)
    with pytest.raises(Unreachable):  # the whole response would take half an hour
        client.create_comment(1, "x")


def test_a_202_response_is_not_awaited_forever(scripted_server: ScriptedServer) -> None:
    scripted_server.answers.append(SentReply(202, JSON, b"{}"))
    with pytest.raises(Unreachable):
        scripted_server.client().issue(1)
    assert len(scripted_server.requests) == 1 + len(RETRY_DELAYS)


def test_compressed_responses_are_decompressed(scripted_server: ScriptedServer) -> None:
    text = b'[{"number": 1, "body": "' + b"x" * 200_000 + b'"}]'
    scripted_server.answers.append(SentReply(200, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(text)))
    (comment,) = scripted_server.client().comments(1)
    assert len(comment["body"]) == 200_000


# -- redirects -----------------------------------------------------------------------------------------------------


def test_a_redirect_to_a_renamed_repository_keeps_the_query_and_the_body(
    github: FakeGitHub, client: GitHubClient
) -> None:
    for hour in (9, 10, 11):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{hour:02d}:00:00Z")
    github.close(1, "octocat", at="2026-01-01T12:00:00Z")
    github.rename_repo("octocat/hello-new-world")
    issues, _ = client.issues_since(datetime.fromisoformat("2026-01-01T10:00:00Z"), 1)
    assert [issue["number"] for issue in issues] == [2, 3, 1]
    created = client.create_comment(2, "One")
    client.update_comment(created.id, "Two")
    assert github.comment_by_id(created.id).body == "Two"
    assert sum(line.endswith((" 301", " 307")) for line in request_lines(github)) == 2


def test_an_issue_moved_to_another_repository_is_neither_read_nor_written_there(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.comment(number, "hubot", "Secret words")
    new_number = github.transfer(number, github.add_project("octocat/other"))
    calls: list[Callable[[], object]] = [
        lambda: client.comments(number),
        lambda: client.timeline(number),
        lambda: client.create_comment(number, "One"),
    ]
    for call in calls:
        with pytest.raises(Gone) as caught:
            call()
        assert (caught.value.certain, caught.value.moved_to) == (True, f"octocat/other#{new_number}")
    assert "comments 200" not in " ".join(request_lines(github))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_to_another_server_or_in_circles_are_refused(scripted_server: ScriptedServer, status: int) -> None:
    for location in ("https://elsewhere.example/repos/octocat/hello-world", f"/repos/{REPOSITORY}", "", "http://["):
        scripted_server.answers[:] = [SentReply(status, {"Location": location}, b"")]
        with pytest.raises(Unreachable):
            scripted_server.client().issue(1)


# -- missing and forbidden resources -------------------------------------------------------------------------------


def test_only_a_fresh_issue_that_is_not_found_is_requested_again(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.faults.add("GET *", "404", 2)
    assert client.issue(number, fresh=True)["number"] == number
    github.faults.add("GET *", "404", None)
    for is_fresh in (True, False):
        with pytest.raises(Gone):
            client.issue(number, fresh=is_fresh)
    github.faults.clear()
    github.delete_issue(number)
    with pytest.raises(Gone):
        client.issue(number, fresh=True)
    assert len(github.requests) == 3 + 4 + 1 + 1


def test_the_missing_permission_is_named(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("POST *", "permission", None)
    github.faults.add("GET *", "permission", None)
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: client.create_comment(number, "x"), "issues: write"),
        (lambda: client.comments(number), "issues: read"),
        (lambda: client.get(f"/repos/{REPOSITORY}/pulls/1", {}), "pull-requests: read"),
        (lambda: client.get(f"/repos/{REPOSITORY}/releases", {}), "contents: read"),
    ]
    for call, permission in calls:
        with pytest.raises(NotPermitted, match=permission):
            call()
    assert len(client.lacking) == 4


def test_a_missing_list_of_issues_means_the_repository_is_invisible(github: FakeGitHub, client: GitHubClient) -> None:
    github.faults.add("GET *", "404", None)
    with pytest.raises(ForgeError, match="cannot see"):
        client.issues_since(None, 1)
