"""The fake is checked against GitHub's description, and a violation is reported."""

import json

import httpx
import pytest

from tests.fakes.contract import Exchange, find_violations, load_description, load_example
from tests.fakes.github import FakeGitHub
from tests.fakes.service import ROUTES

ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"
COMMENTS = f"{ISSUE}/comments"
PARAMS = {"owner": "octocat", "repo": "hello-world", "issue_number": "1"}
ERROR = {"message": "no", "documentation_url": ""}


def make_exchange(
    method: str = "GET", body: bytes = b"", status: int = 200, reply: object = None, template: str = ISSUE
) -> Exchange:
    text = json.dumps(reply).encode()
    return Exchange(method, template, PARAMS, "", {}, body, status, "application/json", text)


def test_the_routes_of_the_fake_are_those_of_the_description() -> None:
    described = load_description()["paths"]
    routes = {(route.method.lower(), route.template) for route in ROUTES.routes}
    assert routes == {(method, path) for path, methods in described.items() for method in methods}


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"title": None}, "title"),
        ({"number": "1"}, "number"),
        ({"state_reason": "forgotten"}, "state_reason"),
        ({"user": {"login": "octocat"}}, "user"),
        ({"labels": None}, "labels"),
        ({}, "'updated_at' is a required property"),
    ],
)
def test_a_broken_reply_is_reported_with_the_place(change: dict[str, object], word: str) -> None:
    example = load_example("issue")
    broken = {**example, **change} if change else {key: example[key] for key in example if key != "updated_at"}
    assert find_violations(make_exchange(reply=example)) == []
    (fault,) = find_violations(make_exchange(reply=broken))
    assert fault.startswith(f"GET {ISSUE}: 200: ")
    assert word in fault


def test_a_broken_request_is_reported_whatever_the_answer() -> None:
    faults = find_violations(make_exchange("POST", b'{"text": "hello"}', 201, load_example("issue-comment"), COMMENTS))
    assert faults == [f"POST {COMMENTS}: request: .: 'body' is a required property"]
    assert len(find_violations(make_exchange("POST", b"{}", 429, {}, COMMENTS), injected=True)) == 1
    assert find_violations(make_exchange(status=429, reply={}), injected=True) == []


@pytest.mark.parametrize(
    ("status", "reply", "word"),
    [(202, {}, "no such reply"), (403, {"error": "no"}, "not a basic error"), (403, ERROR, "")],
)
def test_an_undescribed_answer_must_be_a_basic_error(status: int, reply: object, word: str) -> None:
    violations = find_violations(make_exchange(status=status, reply=reply))
    assert [word in violation for violation in violations] == ([True] if word else [])


@pytest.mark.parametrize(("validate", "words"), [(True, ["not one of", "these parameters", "title"]), (False, [])])
def test_the_fake_collects_the_mistakes_of_clients_and_its_own(validate: bool, words: list[str]) -> None:
    with FakeGitHub(validate=validate) as fake:
        fake.open_issue("octocat", "Crash")
        fake.issue(1).title = None  # type: ignore[assignment]
        for query in ("?state=fixed", "?mentioned=hubot" if validate else "", "/1"):
            httpx.get(f"{fake.url}/repos/octocat/hello-world/issues{query}")

    assert len(fake.violations) >= len(words)
    assert all(any(word in violation for violation in fake.violations) for word in words)
    assert validate or fake.violations == []
