"""Apps at the fake: tokens for single repositories, what revokes them, and the payloads of webhooks."""

import subprocess
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest
from githubkit.webhooks import parse_obj

from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub
from tests.fakes_tests.conftest import app_token, bearer

HELLO, OTHER = "octocat/hello-world", "octocat/other"
TOKENS = "/app/installations/{}/access_tokens"


@pytest.fixture(autouse=True)
def private_repository(github: FakeGitHub) -> None:
    github.add_project(OTHER).repo.private = True


def create_token(app: httpx.Client, installation: int, **fields: Any) -> str:
    answer = app.post(TOKENS.format(installation), json=fields)
    assert answer.status_code == 201, answer.text
    return str(answer.json()["token"])


def status(github: FakeGitHub, token: str, full_name: str) -> int:
    return httpx.get(f"{github.url}/repos/{full_name}", headers=bearer(token)).status_code


def delivered_events(github: FakeGitHub) -> list[tuple[str, str]]:
    return [(each.event, str(each.payload.get("action"))) for each in github.hooks.deliveries]


@pytest.mark.parametrize(
    ("key", "claims"),
    [("first", {"exp": 1}), ("first", {"exp": int(time.time()) + 5000}), ("first", {"iss": "78"}), ("foreign", {})],
)
def test_a_bad_app_token_is_refused(app: httpx.Client, key: str, claims: dict[str, Any]) -> None:
    assert app.get("/app").status_code == 200
    assert app.get("/app", headers=bearer(app_token(key, **claims))).status_code == 401


def test_the_tokens_of_an_installation_share_an_hourly_limit(github: FakeGitHub, app: httpx.Client) -> None:
    first, other = github.tenants.install("octocat", [HELLO, OTHER]), github.tenants.install("octocat", [HELLO])
    callers = [bearer(create_token(app, number)) for number in (first, first, other)]
    answers = [httpx.get(f"{github.url}/repos/{HELLO}", headers=headers) for headers in [*callers, {}]]
    assert [int(answer.headers["x-ratelimit-remaining"]) for answer in answers] == [4999, 4998, 4999, 59]
    assert [int(app.get("/app").headers["x-ratelimit-remaining"]) for _ in range(2)] == [4996, 4995]


@pytest.mark.slow
def test_a_token_for_one_repository_reaches_nothing_else(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO, OTHER])
    token = create_token(app, number, repository_ids=[github.repo.id])
    query = '{{ repository(owner: "octocat", name: "{}") {{ databaseId }} }}'
    answers = [
        httpx.post(github.graphql_url, headers=bearer(token), json={"query": query.format(name)}).json()
        for name in ("hello-world", "other")
    ]
    assert "errors" not in answers[0]
    assert answers[1]["errors"][0]["type"] == "NOT_FOUND"
    assert [status(github, token, name) for name in (HELLO, OTHER)] == [200, 404]
    assert status(github, create_token(app, number), OTHER) == 200


@pytest.mark.parametrize(
    ("change", "undo", "refusals", "event"),
    [
        (lambda tenants, it: tenants.uninstall(it), None, (401, 404), ("installation", "deleted")),
        (
            lambda tenants, it: tenants.suspend(it),
            lambda tenants, it: tenants.unsuspend(it),
            (403, 403),
            ("installation", "suspend"),
        ),
        (
            lambda tenants, it: tenants.remove(it, [OTHER]),
            lambda tenants, it: tenants.add(it, [OTHER]),
            (404, 201),
            ("installation_repositories", "removed"),
        ),
    ],
)
def test_changes_of_an_installation_refuse_its_tokens_at_once(
    github: FakeGitHub,
    app: httpx.Client,
    change: Callable[[Any, int], None],
    undo: Callable[[Any, int], None] | None,
    refusals: tuple[int, int],
    event: tuple[str, str],
) -> None:
    number = github.tenants.install("octocat", [OTHER])
    token = create_token(app, number)
    change(github.tenants, number)
    statuses = status(github, token, OTHER), app.post(TOKENS.format(number), json={}).status_code
    assert (statuses, delivered_events(github)) == (refusals, [("installation", "created"), event])
    if undo:
        undo(github.tenants, number)
        assert status(github, token, OTHER) == 200


def test_an_old_name_redirects_until_somebody_takes_it(github: FakeGitHub, app: httpx.Client) -> None:
    token = create_token(app, github.tenants.install("octocat", [HELLO]), repository_ids=[github.repo.id])
    github.tenants.rename(github, "renamed")
    assert status(github, token, HELLO) == 301
    github.add_project(HELLO).repo.private = True
    assert status(github, token, HELLO) == 404
    assert status(github, token, "octocat/renamed") == 200
    assert delivered_events(github)[-1] == ("repository", "renamed")


@pytest.mark.slow
def test_a_strict_parser_accepts_every_payload_about_an_installation(github: FakeGitHub, app: httpx.Client) -> None:
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


@pytest.mark.slow
def test_a_strict_parser_accepts_the_payload_of_a_comment(github: FakeGitHub) -> None:
    number = github.open_issue("octocat", "Crash", "It crashes.", labels=["bug"])
    event = parse_obj(
        "issue_comment", github.payload("issue_comment", "created", number, github.comment(number, "hubot", "Me too"))
    )
    assert (event.comment.body, event.sender.login) == ("Me too", "hubot")


@pytest.mark.parametrize("action", ["created", "answered", "closed", "deleted", "transferred"])
def test_a_strict_parser_accepts_the_payload_of_a_discussion(github: FakeGitHub, action: str) -> None:
    number = github.discuss("hubot", "How?", "Like this?", labels=["help"])
    github.mark_answer(number, github.say(number, "octocat", "Like that."), "hubot")
    match action:
        case "closed":
            github.close_discussion(number)
        case "deleted":
            github.delete_discussion(number)
        case "transferred":
            github.transfer_discussion(number, github.add_project("octocat/other"))
    event = parse_obj("discussion", github.payload("discussion", action, number))
    assert (event.action, event.discussion.number, event.sender.login) == (action, number, "hubot")


@pytest.mark.parametrize("action", ["created", "edited", "deleted"])
def test_a_strict_parser_accepts_the_payload_of_a_discussion_comment(github: FakeGitHub, action: str) -> None:
    number = github.discuss("hubot", "How?")
    top = github.say(number, "octocat", "Like that.")
    reply = github.say(number, "hubot", "Thanks!", to=top)
    changes = {"changes": {"body": {"from": "Thank"}}} if action == "edited" else {}
    event = parse_obj("discussion_comment", github.payload("discussion_comment", action, number, reply, changes))
    assert (event.comment.body, event.comment.parent_id, event.discussion.comments) == ("Thanks!", top, 2)


def test_deliveries_are_listed_and_sent_again_for_three_days(github: FakeGitHub, app: httpx.Client) -> None:
    number = github.tenants.install("octocat", [HELLO])
    (shown,) = app.get("/app/hook/deliveries").json()
    assert shown["installation_id"] == number
    github.clock.advance(3 * 24 * 3600 + 1)
    assert app.get("/app/hook/deliveries").json() == []
    assert app.post(f"/app/hook/deliveries/{shown['id']}/attempts").status_code == 404


def test_git_accepts_the_tokens_of_apps(github: FakeGitHub, app: httpx.Client, git_server: GitServer) -> None:
    git_server.access = github.tenants.access_level
    for name in (HELLO, OTHER):
        git_server.create(name)
    number = github.tenants.install("octocat", [HELLO, OTHER])
    token = create_token(app, number, repository_ids=[github.repo.id])

    def answer(name: str) -> str:
        command = ["git", "ls-remote", git_server.remote(name, token)]
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
    assert answer("octocat/renamed") not in ("", answer(HELLO))
