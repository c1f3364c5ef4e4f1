"""Installations of the fake: tokens for single repositories, what revokes them, and the deliveries about it."""

import subprocess
import time
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from typing import Any

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from githubkit.webhooks import parse_obj

from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub

HELLO, OTHER = "octocat/hello-world", "octocat/other"
TOKENS = "/app/installations/{}/access_tokens"


@pytest.fixture(scope="module")
def key() -> str:
    plain = serialization.NoEncryption()
    private_key = rsa.generate_private_key(65537, 2048)
    return private_key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain).decode()


@pytest.fixture
def app(github: FakeGitHub, key: str) -> Iterator[httpx.Client]:
    """A client of App 77, which is installed nowhere yet; the second repository is private."""
    github.add_app(77, "precedent").installations.clear()
    github.add_project(OTHER).repo.private = True
    now = int(time.time())
    token = jwt.encode({"iat": now - 60, "exp": now + 540, "iss": "77"}, key, "RS256")
    with httpx.Client(base_url=github.url, headers={"Authorization": f"Bearer {token}"}) as client:
        yield client


def create_token(app: httpx.Client, installation: int, **fields: Any) -> dict[str, Any]:
    answer = app.post(TOKENS.format(installation), json=fields)
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


def status(github: FakeGitHub, token: str, path: str, method: str = "GET") -> int:
    body = {"body": "hello"} if method == "POST" else None
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.request(method, f"{github.url}{path}", headers=headers, json=body).status_code


def delivered_events(github: FakeGitHub) -> list[tuple[str, str]]:
    return [(each.event, str(each.payload.get("action"))) for each in github.hooks.deliveries]


def test_the_tokens_of_an_installation_share_its_limit(github: FakeGitHub, app: httpx.Client) -> None:
    first, other = github.tenants.install("octocat", [HELLO, OTHER]), github.tenants.install("octocat", [HELLO])
    left = []
    for number in (first, first, other):
        headers = {"Authorization": f"Bearer {create_token(app, number)['token']}"}
        left.append(int(httpx.get(f"{github.url}/repos/{HELLO}", headers=headers).headers["x-ratelimit-remaining"]))
    assert left == [4999, 4998, 4999]


def test_a_token_for_one_repository_names_it_and_reaches_nothing_else(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO, OTHER])
    created = create_token(app, number, repository_ids=[github.repo.id])
    assert [each["full_name"] for each in created["repositories"]] == [HELLO]
    assert status(github, created["token"], f"/repos/{HELLO}") == 200
    assert status(github, created["token"], f"/repos/{OTHER}") == 404
    assert status(github, create_token(app, number, repositories=["other"])["token"], f"/repos/{OTHER}") == 200
    assert status(github, create_token(app, number)["token"], f"/repos/{OTHER}") == 200


def test_a_token_for_one_repository_does_not_reach_another_by_graphql(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO, OTHER])
    token = create_token(app, number, repository_ids=[github.repo.id])["token"]
    query = '{{ repository(owner: "octocat", name: "{}") {{ id }} }}'
    headers = {"Authorization": f"Bearer {token}"}
    answers = [
        httpx.post(github.graphql_url, headers=headers, json={"query": query.format(name)}).json()
        for name in ("hello-world", "other")
    ]
    assert "errors" not in answers[0]
    assert answers[1]["errors"][0]["type"] == "NOT_FOUND"


def test_no_token_is_created_for_a_repository_outside_the_installation(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [OTHER])
    answer = app.post(TOKENS.format(number), json={"repository_ids": [github.repo.id]})
    assert (answer.status_code, "not accessible" in answer.json()["message"]) == (422, True)


def test_an_uninstalled_app_has_no_tokens(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO])
    token = create_token(app, number)["token"]
    github.tenants.uninstall(number)
    assert status(github, token, f"/repos/{HELLO}") == 401
    assert app.post(TOKENS.format(number), json={}).status_code == 404
    assert app.get(f"/app/installations/{number}").status_code == 404
    assert delivered_events(github) == [("installation", "created"), ("installation", "deleted")]


def test_a_suspended_installation_gets_no_token_and_its_tokens_are_refused(
    github: FakeGitHub, app: httpx.Client
) -> None:
    number = github.tenants.install("octocat", [HELLO])
    token = create_token(app, number)["token"]
    github.tenants.suspend(number)
    assert status(github, token, f"/repos/{HELLO}") == 403
    assert app.post(TOKENS.format(number), json={}).status_code == 403
    assert app.get(f"/app/installations/{number}").json()["suspended_at"]
    github.tenants.unsuspend(number)
    assert status(github, token, f"/repos/{HELLO}") == 200


def test_an_app_can_suspend_and_delete_its_own_installation(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO])
    assert app.put(f"/app/installations/{number}/suspended").status_code == 204
    assert number in github.apps.by_id[77].suspended
    assert app.delete(f"/app/installations/{number}/suspended").status_code == 204
    assert app.delete(f"/app/installations/{number}").status_code == 204
    assert app.get("/app/installations").json() == []


def test_a_removed_repository_is_out_of_reach(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [OTHER])
    token = create_token(app, number)["token"]
    github.tenants.remove(number, [OTHER])
    assert status(github, token, f"/repos/{OTHER}") == 404
    github.tenants.add(number, [OTHER])
    assert status(github, token, f"/repos/{OTHER}") == 200
    assert delivered_events(github)[1:] == [
        ("installation_repositories", "removed"),
        ("installation_repositories", "added"),
    ]


def test_an_old_name_redirects_until_somebody_takes_it(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO])
    token = create_token(app, number, repository_ids=[github.repo.id])["token"]
    github.tenants.rename(github, "renamed")
    assert status(github, token, f"/repos/{HELLO}") == 301
    github.add_project(HELLO).repo.private = True
    assert status(github, token, f"/repos/{HELLO}") == 404
    assert status(github, token, "/repos/octocat/renamed") == 200
    assert delivered_events(github)[-1] == ("repository", "renamed")


def test_a_transferred_repository_belongs_to_the_other_installation(github: FakeGitHub, app: httpx.Client) -> None:
    giver, taker = github.tenants.install("octocat", [HELLO]), github.tenants.install("octo-org")
    token = create_token(app, giver)["token"]
    github.open_issue("octocat", "Crash")
    github.tenants.transfer(github, "octo-org", taker)
    assert github.repo.full_name == "octo-org/hello-world"
    assert status(github, token, "/repos/octo-org/hello-world/issues/1/comments", "POST") == 403
    fresh = create_token(app, taker, repository_ids=[github.repo.id])["token"]
    assert status(github, fresh, "/repos/octo-org/hello-world/issues/1/comments", "POST") == 201
    assert github.hooks.deliveries[-1].payload["installation"]["id"] == taker
    assert delivered_events(github)[-1] == ("repository", "transferred")


@pytest.mark.slow
def test_a_strict_parser_accepts_every_payload(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO])
    taker = github.tenants.install("octo-org")
    github.tenants.remove(number, [HELLO])
    github.tenants.add(number, [HELLO])
    github.tenants.rename(github, "renamed")
    github.tenants.transfer(github, "octo-org", taker)
    github.tenants.suspend(number)
    github.tenants.unsuspend(number)
    github.tenants.uninstall(number)
    github.open_issue("octocat", "Crash")
    github.tenants.deliver(github, "issues", "opened", 1)
    parsed = [parse_obj(each.event, each.payload) for each in github.hooks.deliveries]  # type: ignore[call-overload]
    assert len(parsed) == 10


def test_deliveries_are_kept_for_three_days_and_shown_with_their_payload(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO])
    (shown,) = app.get("/app/hook/deliveries").json()
    details = app.get(f"/app/hook/deliveries/{shown['id']}").json()
    assert (shown["installation_id"], details["request"]["payload"]["installation"]["id"]) == (number, number)
    assert details["request"]["headers"]["X-GitHub-Hook-Installation-Target-ID"] == "77"
    github.clock.advance(3 * 24 * 3600 + 1)
    assert app.get("/app/hook/deliveries").json() == []
    assert app.get(f"/app/hook/deliveries/{shown['id']}").status_code == 404
    assert app.post(f"/app/hook/deliveries/{shown['id']}/attempts").status_code == 404


def test_the_date_header_shows_the_time_of_github(github: FakeGitHub, app: httpx.Client) -> None:
    github.ahead = 90
    shown_at = parsedate_to_datetime(app.get("/app").headers["date"]).timestamp()
    assert 85 < shown_at - time.time() < 95


def test_git_accepts_the_tokens_of_apps(github: FakeGitHub, app: httpx.Client, git_server: GitServer) -> None:
    git_server.access = github.tenants.access_level
    for name in (HELLO, OTHER):
        git_server.create(name)
    number = github.tenants.install("octocat", [HELLO, OTHER])
    token = create_token(app, number, repository_ids=[github.repo.id])["token"]

    def answer(name: str, secret: str = token) -> str:
        command = ["git", "ls-remote", git_server.remote(name, secret)]
        done = subprocess.run(command, capture_output=True, text=True, env={"GIT_TERMINAL_PROMPT": "0"}, check=False)
        return done.stderr

    assert answer(HELLO) == ""
    assert "not found" in answer(OTHER)
    github.tenants.rename(github, "renamed")
    git_server.rename(HELLO, "octocat/renamed")
    assert answer(HELLO) == answer("octocat/renamed") == ""
    github.add_project(HELLO).repo.private = True
    git_server.create(HELLO)
    assert "not found" in answer(HELLO)
    github.tenants.uninstall(number)
    assert "Authentication failed" in answer("octocat/renamed") or "could not read" in answer("octocat/renamed")


def test_an_app_has_an_hourly_allowance_of_its_own(github: FakeGitHub, app: httpx.Client) -> None:
    left = [int(app.get("/app").headers["X-RateLimit-Remaining"]) for _ in range(2)]
    anonymous = httpx.get(f"{github.url}/repos/{HELLO}").headers["X-RateLimit-Remaining"]
    assert (left, anonymous) == ([4999, 4998], "59")
