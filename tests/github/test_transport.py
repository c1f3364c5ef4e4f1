"""One request and its answer: bounded in time and tries, followed where the repository went, and none too many."""

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
from bot.github.transport import STRIKES
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import Sent
from tests.github.conftest import REPOSITORY

JSON = {"Content-Type": "application/json"}
EPOCH = datetime.fromisoformat("2020-01-01T00:00:00Z")


@pytest.fixture
def number(github: FakeGitHub) -> int:
    return github.open_issue("octocat", "Crash", "It crashes.")


def paths(github: FakeGitHub) -> list[str]:
    return [f"{request.method} {request.path} {request.status}" for request in github.requests]


# -- what is left of the hour --------------------------------------------------------------------------------------


def test_what_is_left_of_the_hour_is_known_after_the_first_answer(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    assert client.rate is None
    client.issue(number)
    assert client.rate is not None
    left, limit, anew = client.rate
    assert (left, limit, anew) == (999, 1000, datetime.fromisoformat("2026-01-05T13:00:00Z"))


# -- enough is enough ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["primary403", "secondary403", "429", "401"])
def test_after_a_limit_or_with_a_dead_token_nothing_more_is_asked_for(
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


@pytest.mark.parametrize(("kind", "asked"), [("primary403", 2), ("secondary403", 1)])
def test_the_hourly_limit_is_of_one_kind_and_a_secondary_one_of_all(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str, asked: int
) -> None:
    made = client.create_comment(number, "One")
    github.mark()
    github.faults.add("GET *", kind)
    with pytest.raises(RateLimited):
        client.issue(number)
    try:
        client.fold(made.node_id, folded=True)
    except RateLimited:
        assert kind == "secondary403"
    assert len(github.recent) == asked


@pytest.mark.parametrize("kind", ["limit200", "secondary200"])
def test_graphql_says_with_a_status_of_200_that_it_has_had_enough(
    github: FakeGitHub, client: GitHubClient, number: int, kind: str
) -> None:
    made = client.create_comment(number, "One")
    github.faults.add("POST /graphql", kind, None, seconds=90)
    for _ in range(2):
        with pytest.raises(RateLimited, match="until") as limited:
            client.fold(made.node_id, folded=True)
    assert limited.value.is_secondary is (kind == "secondary200")
    assert limited.value.resource == ("secondary" if kind == "secondary200" else "graphql")
    assert len(github.faults.injected) == 1


def test_a_secondary_limit_that_names_no_time_lasts_a_minute(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.faults.add("GET *", "secondary403", seconds=0)
    begun = datetime.now().astimezone()
    with pytest.raises(RateLimited) as limited:
        client.issue(number)
    assert limited.value.until is not None
    assert 58 <= (limited.value.until - begun).total_seconds() <= 75


def test_a_server_that_is_down_is_asked_a_few_times_and_then_left_alone(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.faults.add("*", "5xx", None)
    for _ in range(STRIKES + 5):
        with pytest.raises(Unreachable):
            client.issue(number)
    assert len(github.requests) == 4 * STRIKES


def test_one_answer_in_between_and_the_count_begins_anew(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET */comments", "5xx", None)
    for _ in range(STRIKES + 2):
        with pytest.raises(Unreachable):
            client.comments(number)
        assert client.issue(number)["number"] == number
    assert client.troubles == ()


def test_what_a_run_can_do_without_costs_nothing_else_when_it_fails(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    made = client.create_comment(number, "One")
    github.mark()
    for path in ("GET */compare/*", "GET */issues/comments/*", "POST */reactions", "POST /graphql"):
        github.faults.add(path, "5xx", None)
    calls: list[Callable[[], object]] = [
        lambda: client.get(f"/repos/{REPOSITORY}/compare/a...b", {}),
        lambda: client.comment(made.id),
        lambda: client.react(made.id, "eyes"),
        lambda: client.fold(made.node_id, folded=True),
    ]
    for call in calls * STRIKES:
        with pytest.raises(Unreachable):
            call()
    assert len(github.recent) == 4 + 4 + 1, "what has no answer three times is not asked for"
    with pytest.raises(RequestSkipped):
        client.get(f"/repos/{REPOSITORY}/releases", {})
    assert client.create_comment(number, "Two").text == "Two"
    assert client.troubles == ()


def test_where_nothing_is_answered_it_does_without_what_it_can_do_without(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.faults.add("*", "5xx", None)
    for _ in range(STRIKES):
        with pytest.raises(Unreachable):
            client.issue(number)
    github.mark()
    with pytest.raises(RequestSkipped):
        client.get(f"/repos/{REPOSITORY}/releases", {})
    assert (github.recent, len(client.troubles)) == ([], 1)


@pytest.mark.parametrize(("seconds", "asks"), [(29, False), (31, True)])
def test_a_limit_that_was_sat_out_counts_no_more(
    github: FakeGitHub, client: GitHubClient, number: int, seconds: float, asks: bool
) -> None:
    github.faults.add("GET *", "secondary403", seconds=30)
    with pytest.raises(RateLimited):
        client.issue(number)
    client.pause_requests(seconds)
    if asks:
        assert client.issue(number)["number"] == number
    else:
        with pytest.raises(RateLimited):
            client.issue(number)
    assert len(client.troubles) == (not asks)


def test_a_dead_token_cannot_be_sat_out(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET *", "401", 1)
    for _ in range(2):
        with pytest.raises(Unauthorised):
            client.issue(number)
        client.pause_requests(3_600)
    assert len(github.requests) == 1


# -- time ----------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_no_call_waits_longer_than_it_may(github: FakeGitHub, number: int) -> None:
    made = github.comment(number, "hubot", "Me too")
    github.faults.add("*", "slow", None, seconds=1.0)
    calls: list[Callable[[GitHubClient], object]] = [
        lambda c: c.issues_since(None, 1), lambda c: c.comments_since(EPOCH, 1), lambda c: c.issue(number),
        lambda c: c.comments(number), lambda c: c.timeline(number), lambda c: c.comment(made),
        lambda c: c.permission("hubot"), lambda c: c.get(f"/repos/{REPOSITORY}/releases", {}),
        lambda c: c.create_comment(number, "x"), lambda c: c.update_comment(made, "x"), lambda c: c.react(made, "eyes"),
        lambda c: c.fold("IC_1", folded=True),
    ]  # fmt: skip
    for call in calls:
        started = time.monotonic()
        with pytest.raises(Unreachable):
            call(GitHubClient(github.url, github.token, REPOSITORY, write_gap=0, timeout=0.05))
        assert time.monotonic() - started < 4 * 0.05 + 2.5


@pytest.fixture
def trickle() -> Iterator[str]:
    """A server that never stops answering, a byte at a time."""
    server = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def serve() -> None:
        while not over.is_set():
            try:
                connection, _ = server.accept()
            except OSError:
                return
            with connection:
                connection.recv(65_536)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                try:
                    while not over.is_set():
                        connection.sendall(b" ")
                        time.sleep(0.02)
                except OSError:
                    continue

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.getsockname()[1]}"
    over.set()
    server.close()
    thread.join(2)


def test_an_answer_that_comes_a_byte_at_a_time_has_an_end(trickle: str) -> None:
    client = GitHubClient(trickle, "token", REPOSITORY, write_gap=0, timeout=0.1)
    started = time.monotonic()
    with pytest.raises(Unreachable):
        client.create_comment(1, "x")
    assert time.monotonic() - started < 3


@pytest.fixture
def strange() -> Iterator[tuple[Listener, list[Sent]]]:
    answers: list[Sent] = []
    listener = Listener(lambda *_: answers.pop(0) if len(answers) > 1 else answers[0])
    yield listener, answers
    listener.stop()


def test_what_is_not_ready_yet_is_not_waited_for_without_end(strange: tuple[Listener, list[Sent]]) -> None:
    listener, answers = strange
    answers.append(Sent(202, JSON, b"{}"))
    started = time.monotonic()
    with pytest.raises(Unreachable):
        GitHubClient(listener.url, "token", REPOSITORY, write_gap=0).issue(1)
    assert time.monotonic() - started < 3


def test_packed_answers_are_unpacked(strange: tuple[Listener, list[Sent]]) -> None:
    listener, answers = strange
    text = b'[{"number": 1, "body": "' + b"x" * 200_000 + b'"}]'
    answers.append(Sent(200, {**JSON, "Content-Encoding": "gzip"}, gzip.compress(text)))
    (found,) = GitHubClient(listener.url, "token", REPOSITORY, write_gap=0).comments(1)
    assert len(found["body"]) == 200_000


# -- where it went -------------------------------------------------------------------------------------------------


def test_a_renamed_repository_is_followed_with_all_that_was_asked_for(github: FakeGitHub, client: GitHubClient) -> None:
    for hour in (9, 10, 11):
        github.open_issue("octocat", "Crash", at=f"2026-01-01T{hour:02d}:00:00Z")
    github.close(1, "octocat", at="2026-01-01T12:00:00Z")
    github.rename_repo("octocat/hello-new-world")
    found, _ = client.issues_since(datetime.fromisoformat("2026-01-01T10:00:00Z"), 1)
    assert [issue["number"] for issue in found] == [2, 3, 1]
    made = client.create_comment(2, "One")
    client.update_comment(made.id, "Two")
    assert github.comment_by_id(made.id).body == "Two"
    assert sum(line.endswith((" 301", " 307")) for line in paths(github)) == 2


def test_what_moved_to_another_repository_is_neither_read_there_nor_written_to(
    github: FakeGitHub, client: GitHubClient, number: int
) -> None:
    github.comment(number, "hubot", "Secret words")
    there = github.transfer(number, github.add_project("octocat/other"))
    calls: list[Callable[[], object]] = [
        lambda: client.comments(number),
        lambda: client.timeline(number),
        lambda: client.create_comment(number, "One"),
    ]
    for call in calls:
        with pytest.raises(Gone) as gone:
            call()
        assert (gone.value.certain, gone.value.moved_to) == (True, f"octocat/other#{there}")
    assert "comments 200" not in " ".join(paths(github))


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_to_another_server_or_in_circles_is_no_answer(
    strange: tuple[Listener, list[Sent]], status: int
) -> None:
    listener, answers = strange
    for where in ("https://elsewhere.example/repos/octocat/hello-world", f"/repos/{REPOSITORY}", "", "http://["):
        answers[:] = [Sent(status, {"Location": where}, b"")]
        with pytest.raises(Unreachable):
            GitHubClient(listener.url, "token", REPOSITORY, write_gap=0).issue(1)


# -- what is not there yet, and what may not be seen ---------------------------------------------------------------


def test_what_was_opened_a_moment_ago_is_asked_for_again(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET *", "404", 2)
    assert client.issue(number, fresh=True)["number"] == number
    github.faults.add("GET *", "404", None)
    with pytest.raises(Gone):
        client.issue(number, fresh=True)
    assert len(github.requests) == 3 + 4


def test_what_was_not_is_asked_for_once(github: FakeGitHub, client: GitHubClient, number: int) -> None:
    github.faults.add("GET *", "404", None)
    with pytest.raises(Gone):
        client.issue(number)
    github.faults.clear()
    github.delete_issue(number)
    with pytest.raises(Gone):
        client.issue(number, fresh=True)
    assert len(github.requests) == 2


def test_the_permission_that_is_missing_is_named(github: FakeGitHub, client: GitHubClient, number: int) -> None:
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


def test_a_list_of_issues_that_is_not_there_is_out_of_sight(github: FakeGitHub, client: GitHubClient) -> None:
    github.faults.add("GET *", "404", None)
    with pytest.raises(ForgeError, match="cannot see"):
        client.issues_since(None, 1)
