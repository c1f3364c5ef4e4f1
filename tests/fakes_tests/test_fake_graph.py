"""GraphQL: real queries over the same state, validated by GitHub's schema, with GitHub's limits."""

from typing import Any

import httpx
import pytest
from graphql import parse

from tests.fakes.github import FakeGitHub
from tests.fakes.graph import measure
from tests.fakes_tests.conftest import bearer

HOME = 'repository(owner: "octocat", name: "hello-world")'
MINIMIZE = """mutation ($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {
  minimizedComment { isMinimized } } }"""
UPDATE = """mutation ($input: UpdateDiscussionCommentInput!) {
  updateDiscussionComment(input: $input) { comment { id } } }"""


def run_query(fake: FakeGitHub, query: str, token: str | None = None, **variables: Any) -> dict[str, Any]:
    body = {"query": query, "variables": {"owner": "octocat", "name": "hello-world", "first": 2, **variables}}
    answer = httpx.post(fake.graphql_url, json=body, headers=bearer(token or fake.token))
    assert answer.status_code == 200
    return dict(answer.json())


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ('repository(owner: "octocat", name: "absent") { databaseId }', "NOT_FOUND"),
        (f"{HOME} {{ databaseId issue(number: 9) {{ title }} }}", "NOT_FOUND"),
        (f"{HOME} {{ databaseId issues {{ totalCount }} }}", "MISSING_PAGINATION_BOUNDARIES"),
        (f"{HOME} {{ databaseId issues(first: 101) {{ totalCount }} }}", "EXCESSIVE_PAGINATION"),
    ],
)
def test_an_error_has_a_type_and_leaves_the_other_data(github: FakeGitHub, query: str, kind: str) -> None:
    answer = run_query(github, f"{{ rateLimit {{ limit }} {query} }}")
    assert [error["type"] for error in answer["errors"]] == [kind]
    assert answer["data"]["rateLimit"] == {"limit": 1000}


@pytest.mark.parametrize(
    ("query", "variables"),
    [
        (f"{{ {HOME} {{ isClever }} }}", {}),
        (f"{{ {HOME} {{ forkCount }} }}", {}),  # in the schema, but not in the fake
        (UPDATE, {"input": {"commentId": "DC_1", "body": "Hi", "id": 1}}),
        (UPDATE, {"input": {"body": "Hi"}}),
    ],
)
def test_what_the_schema_or_the_fake_does_not_have_is_a_violation(query: str, variables: dict[str, Any]) -> None:
    with FakeGitHub() as fake:
        answer = run_query(fake, query, **variables)
    assert len(fake.violations) == len(answer["errors"]) == 1


def test_the_cost_is_the_requests_that_a_query_may_cause() -> None:
    query = "{ repository { issues(first: 100) { nodes { comments(first: $size) { nodes { id } } } } } }"
    assert measure(parse(query), {"size": 50}) == (100 + 100 * 50, 1 + 100)


def test_only_writers_can_minimize_a_comment(github: FakeGitHub, http: httpx.Client) -> None:
    github.add_token("reader", "github-actions[bot]", {"issues": "read"})
    github.open_issue("octocat", "Crash")
    comment_id = github.comment(1, "github-actions[bot]", "Seen before.")
    node = http.get("/repos/octocat/hello-world/issues/1/comments").json()[0]["node_id"]

    assert run_query(github, MINIMIZE, "reader", id=node)["errors"][0]["type"] == "FORBIDDEN"
    assert github.comment_by_id(comment_id).minimized is None
    github.mark()
    answer = run_query(github, MINIMIZE, id=node)
    assert answer["data"]["minimizeComment"]["minimizedComment"] == {"isMinimized": True}
    assert (github.reads, github.writes, github.comment_by_id(comment_id).minimized) == (0, 1, "OUTDATED")
