"""Each fault strikes the intended requests, the intended number of times."""

import httpx
import pytest

from tests.fakes.faults import KINDS
from tests.fakes.github import FakeGitHub

COMMENTS = "/repos/octocat/hello-world/issues/1/comments"


def post_comment(http: httpx.Client) -> httpx.Response:
    return http.post(COMMENTS, json={"body": "hello"})


@pytest.fixture(autouse=True)
def open_issue(github: FakeGitHub) -> None:
    github.open_issue("octocat", "Crash")


@pytest.mark.parametrize(
    ("kind", "status", "headers"),
    [
        ("secondary403", 403, {"retry-after": "60"}),
        ("primary403", 403, {"x-ratelimit-remaining": "0"}),
        ("429", 429, {"retry-after": "60"}),
        ("5xx", 502, {}),
        ("401", 401, {}),
        ("permission", 403, {"x-accepted-github-permissions": "issues=write"}),
        ("locked", 403, {}),
        ("archived", 403, {}),
        ("limited", 403, {}),
        ("cap", 422, {}),
        ("404", 404, {}),
        ("410", 410, {}),
        ("issues-off", 410, {}),
        ("422", 422, {}),
        ("301", 307, {}),
        ("500", 500, {}),
        ("503", 503, {}),
        ("504", 504, {}),
        ("html", 200, {"content-type": "text/html"}),
        ("limit200", 200, {"x-ratelimit-remaining": "0"}),
        ("secondary200", 200, {"retry-after": "60"}),
    ],
)
def test_a_refusal_comes_once_and_changes_nothing(
    github: FakeGitHub, http: httpx.Client, kind: str, status: int, headers: dict[str, str]
) -> None:
    github.faults.add("POST /repos/*/comments", kind, seconds=60)
    refused, accepted = post_comment(http), post_comment(http)

    assert (refused.status_code, accepted.status_code) == (status, 201)
    assert headers.items() <= dict(refused.headers).items()
    assert len(github.issue(1).comments) == 1
    assert github.faults.injected == [(kind, f"POST {COMMENTS}")]


@pytest.mark.parametrize("kind", ["secondary403", "429", "secondary200"])
def test_a_secondary_limit_may_come_without_retry_after(github: FakeGitHub, http: httpx.Client, kind: str) -> None:
    github.faults.add("GET *", kind, seconds=0)
    refused = http.get("/repos/octocat/hello-world")
    assert "retry-after" not in refused.headers
    assert refused.headers["x-ratelimit-remaining"] != "0"


@pytest.mark.parametrize(("kind", "comments"), [("drop", 0), ("dup", 1)])
def test_a_lost_reply_may_have_taken_effect(github: FakeGitHub, http: httpx.Client, kind: str, comments: int) -> None:
    github.faults.add("POST *", kind)
    with pytest.raises(httpx.RemoteProtocolError):
        post_comment(http)
    assert len(github.issue(1).comments) == comments


def test_a_fault_skips_some_requests_and_then_fails_a_limited_number(github: FakeGitHub, http: httpx.Client) -> None:
    github.faults.add("POST *", "5xx", times=2, after=1)
    assert [post_comment(http).status_code for _ in range(4)] == [201, 502, 502, 201]
    github.faults.add("POST *", "5xx", times=None)
    assert [post_comment(http).status_code for _ in range(3)] == [502, 502, 502]
    github.faults.clear()
    assert post_comment(http).status_code == 201
    with pytest.raises(ValueError, match=", ".join(KINDS)):
        github.faults.add("*", "flood")


@pytest.mark.parametrize("status", [403, 429])
def test_an_exhausted_hourly_limit_refuses_until_the_hour_is_over(
    github: FakeGitHub, http: httpx.Client, status: int
) -> None:
    github.limits.set(2)
    github.limits.status = status
    assert [post_comment(http).status_code for _ in range(3)] == [201, 201, status]
    limits = http.get("/rate_limit").json()["resources"]["core"]  # this one is free
    assert (limits["remaining"], limits["reset"]) == (0, github.clock.epoch + 3600)
    github.clock.advance(3600)
    assert post_comment(http).status_code == 201
