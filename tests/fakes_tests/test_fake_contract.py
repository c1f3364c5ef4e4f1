"""The fake is checked against GitHub's description, and a violation is reported."""

import json

import httpx
import pytest

from tests.fakes.contract import FOLDER, Exchange, find_violations, load_description, load_example
from tests.fakes.github import FakeGitHub
from tests.fakes.service import ROUTES

ISSUE = "/repos/{owner}/{repo}/issues/{issue_number}"
PARAMS = {"owner": "octocat", "repo": "hello-world", "issue_number": "1"}


def make_exchange(
    method: str = "GET", body: bytes = b"", status: int = 200, reply: object = None, template: str = ISSUE
) -> Exchange:
    text = json.dumps(reply).encode()
    return Exchange(method, template, PARAMS, "", {}, body, status, "application/json", text)


def test_every_route_of_the_fake_is_in_the_description() -> None:
    described = load_description()["paths"]

    assert [route for route in ROUTES.routes if route.method.lower() not in described.get(route.template, {})] == []
    assert len(ROUTES.routes) == sum(len(methods) for methods in described.values())


def test_the_descriptions_own_example_passes() -> None:
    assert find_violations(make_exchange(reply=load_example("issue"))) == []


@pytest.mark.parametrize(
    ("field", "value"),
    [("title", None), ("number", "1"), ("state_reason", "forgotten"), ("user", {"login": "octocat"}), ("labels", None)],
)
def test_a_broken_reply_is_reported_with_the_place(field: str, value: object) -> None:
    faults = find_violations(make_exchange(reply={**load_example("issue"), field: value}))

    assert len(faults) == 1
    assert faults[0].startswith(f"GET {ISSUE}: 200: ")
    assert field in faults[0]


def test_a_missing_field_is_reported() -> None:
    reply = {key: value for key, value in load_example("issue").items() if key != "updated_at"}

    assert "'updated_at' is a required property" in find_violations(make_exchange(reply=reply))[0]


def test_a_broken_request_is_reported() -> None:
    comments = f"{ISSUE}/comments"
    faults = find_violations(make_exchange("POST", b'{"text": "hello"}', 201, load_example("issue-comment"), comments))

    assert faults == [f"POST {comments}: request: .: 'body' is a required property"]


def test_an_undescribed_answer_is_reported() -> None:
    assert find_violations(make_exchange(status=202, reply={})) == [
        f"GET {ISSUE}: 202: the description has no such reply",
    ]
    assert "not a basic error" in find_violations(make_exchange(status=403, reply={"error": "no"}))[0]
    assert find_violations(make_exchange(status=403, reply={"message": "no", "documentation_url": ""})) == []


def test_an_injected_fault_is_exempt_but_its_request_is_not() -> None:
    assert find_violations(make_exchange(status=429, reply={}), injected=True) == []
    comments = f"{ISSUE}/comments"
    assert len(find_violations(make_exchange("POST", b"{}", 429, {}, comments), injected=True)) == 1


def test_the_fake_collects_the_mistakes_of_clients() -> None:
    with FakeGitHub() as fake:
        fake.open_issue("octocat", "Crash")
        httpx.get(f"{fake.url}/repos/octocat/hello-world/issues?state=fixed")
        httpx.get(f"{fake.url}/repos/octocat/hello-world/issues?mentioned=hubot")

    assert len(fake.violations) == 2
    assert "'fixed' is not one of ['open', 'closed', 'all']" in fake.violations[0]
    assert "does not know these parameters" in fake.violations[1]


def test_the_fake_collects_its_own_broken_objects() -> None:
    with FakeGitHub() as fake:
        fake.open_issue("octocat", "Crash")
        fake.issue(1).state = "melted"
        fake.issue(1).title = None  # type: ignore[assignment]
        httpx.get(f"{fake.url}/repos/octocat/hello-world/issues/1")

    assert "title" in fake.violations[0]


def test_validation_can_be_switched_off() -> None:
    with FakeGitHub(validate=False) as fake:
        httpx.get(f"{fake.url}/repos/octocat/hello-world/issues?state=fixed")

    assert fake.violations == []


def test_the_contract_is_small() -> None:
    assert (FOLDER / "openapi.json.gz").stat().st_size < 250_000
