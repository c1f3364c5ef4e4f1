"""Each fault strikes the intended requests, the intended number of times."""

import time

import httpx
import pytest
from github import GithubException
from github.Repository import Repository

from tests.fakes.faults import KINDS
from tests.fakes.github import FakeGitHub


def post_comment(http: httpx.Client) -> httpx.Response:
    return http.post("/repos/octocat/hello-world/issues/1/comments", json={"body": "hello"})


@pytest.fixture(autouse=True)
def open_issue(github: FakeGitHub) -> None:
    github.open_issue("octocat", "Crash")


@pytest.mark.parametrize(
    ("kind", "status", "header"),
    [
        ("secondary403", 403, "retry-after"),
        ("primary403", 403, "x-ratelimit-reset"),
        ("429", 429, "retry-after"),
        ("5xx", 502, "content-type"),
        ("401", 401, "content-type"),
        ("permission", 403, "x-accepted-github-permissions"),
        ("locked", 403, "content-type"),
        ("archived", 403, "content-type"),
        ("limited", 403, "content-type"),
        ("cap", 422, "content-type"),
        ("404", 404, "content-type"),
        ("410", 410, "content-type"),
        ("issues-off", 410, "content-type"),
        ("422", 422, "content-type"),
        ("301", 307, "location"),
        ("500", 500, "content-type"),
        ("503", 503, "content-type"),
        ("504", 504, "content-type"),
        ("html", 200, "content-type"),
        ("limit200", 200, "x-ratelimit-reset"),
        ("secondary200", 200, "retry-after"),
    ],
)
def test_a_refusal_comes_once_and_changes_nothing(
    github: FakeGitHub, http: httpx.Client, kind: str, status: int, header: str
) -> None:
    github.faults.add("POST /repos/*/comments", kind, seconds=60)
    refused, accepted = post_comment(http), post_comment(http)

    assert (refused.status_code, accepted.status_code) == (status, 201)
    assert header in refused.headers
    assert len(github.issue(1).comments) == 1
    assert github.faults.injected == [(kind, "POST /repos/octocat/hello-world/issues/1/comments")]


@pytest.mark.parametrize("kind", ["secondary403", "429", "secondary200"])
def test_a_secondary_limit_may_come_without_retry_after(github: FakeGitHub, http: httpx.Client, kind: str) -> None:
    github.faults.add("GET *", kind, seconds=0)
    refused = http.get("/repos/octocat/hello-world")

    assert "retry-after" not in refused.headers
    assert refused.headers["x-ratelimit-remaining"] != "0"


def test_a_redirect_leads_to_the_same_repository_or_to_an_issue_of_another(
    github: FakeGitHub, http: httpx.Client
) -> None:
    other = github.add_project("octocat/other")
    github.faults.add("GET *", "301")
    github.faults.add("GET *", "301", after=1, to="octocat/other#7")
    path = "/repos/octocat/hello-world/issues/1/comments?per_page=5"
    same, away = http.get(path), http.get(path)

    assert same.headers["location"] == f"{github.url}/repositories/{github.repo.id}/issues/1/comments?per_page=5"
    assert away.headers["location"] == f"{github.url}/repositories/{other.repo.id}/issues/7/comments?per_page=5"
    assert (same.status_code, away.status_code) == (301, 301)


def test_a_cut_answer_is_the_first_half_of_the_right_one(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "cut")
    cut = post_comment(http)

    assert cut.status_code == 201
    assert cut.text.startswith('{"')
    assert not cut.text.endswith("}")
    assert [comment.body for comment in github.issue(1).comments] == ["hello"]


def test_the_primary_limit_says_that_nothing_remains(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("GET *", "primary403")
    refused = http.get("/repos/octocat/hello-world")

    assert refused.headers["x-ratelimit-remaining"] == "0"
    assert "API rate limit exceeded" in refused.json()["message"]


def test_a_dropped_request_changes_nothing(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "drop")
    with pytest.raises(httpx.RemoteProtocolError):
        post_comment(http)

    assert github.issue(1).comments == []
    assert github.requests[-1].status == 0


def test_a_request_takes_effect_even_if_its_reply_is_lost(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "dup")
    with pytest.raises(httpx.RemoteProtocolError):
        post_comment(http)

    assert [comment.body for comment in github.issue(1).comments] == ["hello"]


def test_a_slow_reply_is_correct_but_late(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "slow", seconds=0.2)
    started = time.monotonic()

    assert post_comment(http).status_code == 201
    assert time.monotonic() - started >= 0.2


def test_a_fault_skips_some_requests_and_then_fails_a_limited_number(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "5xx", times=2, after=1)

    assert [post_comment(http).status_code for _ in range(4)] == [201, 502, 502, 201]


def test_a_fault_without_an_end_lasts_until_it_is_cleared(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "5xx", times=None)
    assert [post_comment(http).status_code for _ in range(3)] == [502, 502, 502]

    github.faults.clear()
    assert post_comment(http).status_code == 201


def test_an_unknown_kind_is_an_error_that_names_the_known_ones(github: FakeGitHub) -> None:
    with pytest.raises(ValueError, match=", ".join(KINDS)):
        github.faults.add("*", "flood")


def test_pygithub_sees_a_bad_gateway(github: FakeGitHub, repo: Repository) -> None:
    github.faults.add("GET /repos/*/issues/1", "5xx")
    with pytest.raises(GithubException) as failed:
        repo.get_issue(1)

    assert failed.value.status == 502


@pytest.mark.parametrize("status", [403, 429])
def test_an_exhausted_hourly_limit_refuses_until_the_hour_is_over(
    github: FakeGitHub, http: httpx.Client, status: int
) -> None:
    github.limits.set(2)
    github.limits.status = status
    answers = [post_comment(http) for _ in range(3)]

    assert [answer.status_code for answer in answers] == [201, 201, status]
    assert answers[2].headers["x-ratelimit-remaining"] == "0"
    assert int(answers[2].headers["x-ratelimit-reset"]) == github.clock.epoch + 3600

    github.clock.advance(3600)
    assert post_comment(http).status_code == 201


def test_asking_for_the_limits_is_free(github: FakeGitHub, http: httpx.Client, repo: Repository) -> None:
    github.limits.set(1, github.token)
    for _ in range(3):
        answer = http.get("/rate_limit").json()

    assert answer["resources"]["core"]["remaining"] == 1
    assert repo.get_issue(1).number == 1
