"""GraphQL: real queries over the same state, validated by GitHub's schema, with GitHub's limits."""

from typing import Any

import httpx
import pytest
from graphql import parse

from tests.fakes.github import FakeGitHub
from tests.fakes.graph import measure, validate_query

HISTORY = """
query ($after: String, $since: DateTime) {
  rateLimit { cost remaining }
  repository(owner: "octocat", name: "hello-world") {
    issues(first: 2, after: $after, orderBy: {field: UPDATED_AT, direction: ASC}, filterBy: {since: $since}) {
      pageInfo { hasNextPage endCursor }
      nodes {
        number title body state stateReason(enableDuplicate: true) createdAt updatedAt closedAt locked
        author { login __typename } authorAssociation labels(first: 10) { nodes { name } }
        comments(first: 50) {
          pageInfo { hasNextPage endCursor }
          nodes {
            databaseId body createdAt updatedAt authorAssociation author { login __typename }
            reactionGroups { content reactors { totalCount } }
          }
        }
        closedByPullRequestsReferences(first: 5, includeClosedPrs: true) { nodes { number } }
        timelineItems(first: 50, itemTypes: [CLOSED_EVENT, CROSS_REFERENCED_EVENT, MARKED_AS_DUPLICATE_EVENT]) {
          nodes {
            __typename
            ... on ClosedEvent {
              actor { login } createdAt closer { ... on PullRequest { number } ... on Commit { oid } }
            }
            ... on CrossReferencedEvent {
              willCloseTarget source { ... on Issue { number } ... on PullRequest { number } }
            }
            ... on MarkedAsDuplicateEvent { canonical { ... on Issue { number } } }
          }
        }
      }
    }
  }
}
"""


def run_query(fake: FakeGitHub, query: str, token: str | None = None, **variables: Any) -> dict[str, Any]:
    answer = httpx.post(
        fake.graphql_url,
        json={"query": query, "variables": variables},
        headers={"Authorization": f"bearer {token or fake.token}"},
    )
    assert answer.status_code == 200
    body: dict[str, Any] = answer.json()
    return body


def test_a_bulk_query_shows_how_issues_ended(github: FakeGitHub) -> None:
    for title in ("Crash", "Also crash", "Old crash"):
        github.open_issue("octocat", title, at="2026-01-02T00:00:00Z")
    github.set_permission("monalisa", "write")
    comment_id = github.comment(1, "github-actions[bot]", "Seen before.", at="2026-01-02T01:00:00Z")
    github.react(1, "hubot", "heart", comment_id)
    pull = github.add_pull("monalisa", "Fix", closes=[1], at="2026-01-03T00:00:00Z")
    github.merge_pull(pull, "monalisa", at="2026-01-04T00:00:00Z")
    github.mark_duplicate(2, 1, "monalisa", at="2026-01-04T01:00:00Z")
    github.close(2, "monalisa", "duplicate", at="2026-01-04T01:00:00Z")
    issues = run_query(github, HISTORY, since="2026-01-03T00:00:00Z")["data"]["repository"]["issues"]
    first, second = issues["nodes"]

    assert (first["number"], second["number"], issues["pageInfo"]["hasNextPage"]) == (1, 2, False)
    assert first["comments"]["nodes"][0]["author"] == {"login": "github-actions", "__typename": "Bot"}
    assert {"content": "HEART", "reactors": {"totalCount": 1}} in first["comments"]["nodes"][0]["reactionGroups"]
    assert first["closedByPullRequestsReferences"]["nodes"] == [{"number": pull}]
    assert first["timelineItems"]["nodes"] == [
        {"__typename": "CrossReferencedEvent", "willCloseTarget": True, "source": {"number": pull}},
        {
            "__typename": "ClosedEvent",
            "actor": {"login": "monalisa"},
            "createdAt": "2026-01-04T00:00:00Z",
            "closer": {"number": pull},
        },
    ]
    assert second["stateReason"] == "DUPLICATE"
    assert second["timelineItems"]["nodes"][0]["canonical"] == {"number": 1}


def test_pages_follow_the_cursor_to_the_end_and_leave_pulls_out(github: FakeGitHub) -> None:
    for i in range(5):
        github.open_issue("octocat", f"Issue {i}", at=f"2026-01-02T0{i}:00:00Z")
    github.add_pull("octocat", "Pull")
    seen, after = [], None
    while True:
        page = run_query(github, HISTORY, after=after)["data"]["repository"]["issues"]
        seen += [node["number"] for node in page["nodes"]]
        after = page["pageInfo"]["endCursor"]
        if not page["pageInfo"]["hasNextPage"]:
            break

    assert seen == [1, 2, 3, 4, 5]


def test_the_reason_duplicate_is_hidden_unless_requested(github: FakeGitHub) -> None:
    github.open_issue("octocat", "Crash")
    github.close(1, "octocat", "duplicate")
    query = '{ repository(owner: "octocat", name: "hello-world") { issue(number: 1) { stateReason } } }'

    assert run_query(github, query)["data"]["repository"]["issue"] == {"stateReason": None}


@pytest.mark.parametrize(
    ("query", "kind"),
    [
        ('{ repository(owner: "octocat", name: "absent") { name } }', "NOT_FOUND"),
        ('{ repository(owner: "octocat", name: "hello-world") { issue(number: 9) { title } } }', "NOT_FOUND"),
        (
            '{ repository(owner: "octocat", name: "hello-world") { issues { totalCount } } }',
            "MISSING_PAGINATION_BOUNDARIES",
        ),
        (
            '{ repository(owner: "octocat", name: "hello-world") { issues(first: 101) { totalCount } } }',
            "EXCESSIVE_PAGINATION",
        ),
    ],
)
def test_an_error_has_a_type_beside_its_message(github: FakeGitHub, query: str, kind: str) -> None:
    assert [error["type"] for error in run_query(github, query)["errors"]] == [kind]


def test_part_of_the_data_comes_with_the_errors(github: FakeGitHub) -> None:
    github.open_issue("octocat", "Crash")
    field = "issue(number: {n}) {{ title }}"
    inner = f"a: {field.format(n=1)} b: {field.format(n=2)}"
    answer = run_query(github, f'{{ repository(owner: "octocat", name: "hello-world") {{ {inner} }} }}')

    assert answer["data"]["repository"] == {"a": {"title": "Crash"}, "b": None}
    assert answer["errors"][0]["path"] == ["repository", "b"]


def test_a_query_that_githubs_schema_refuses_is_a_violation() -> None:
    with FakeGitHub() as fake:
        answer = run_query(fake, '{ repository(owner: "octocat", name: "hello-world") { isClever } }')

    assert "Cannot query field 'isClever'" in answer["errors"][0]["message"]
    assert len(fake.violations) == 1
    assert validate_query("{ viewer { login } }") == []


@pytest.mark.parametrize("wrong", [{"id": "DC_1"}, {"commentId": "DC_1", "body": "Hi", "id": 1}, {"body": "Hi"}])
def test_an_input_that_does_not_fit_githubs_schema_is_a_violation(wrong: dict[str, Any]) -> None:
    mutation = """mutation ($input: UpdateDiscussionCommentInput!) {
      updateDiscussionComment(input: $input) { comment { id } } }"""
    with FakeGitHub() as fake:
        answer = run_query(fake, mutation, input=wrong)

    assert "invalid value" in answer["errors"][0]["message"]
    assert len(fake.violations) == len(answer["errors"])


def test_an_exhausted_allowance_is_reported_with_status_200(github: FakeGitHub) -> None:
    github.limits.set(1, resource="graphql")
    assert "data" in run_query(github, HISTORY)
    answer = run_query(github, HISTORY)

    assert [error["type"] for error in answer["errors"]] == ["RATE_LIMITED"]


def test_the_cost_is_the_requests_that_a_query_may_cause() -> None:
    query = (
        "{ repository(owner: 1, name: 1) { issues(first: 100) { nodes { comments(first: $size) { nodes { id } } } } } }"
    )

    assert measure(parse(query), {"size": 50}) == (100 + 100 * 50, 1 + 100)


def test_only_writers_can_minimize_a_comment(github: FakeGitHub) -> None:
    github.add_token("reader", "github-actions[bot]", {"issues": "read"})
    github.open_issue("octocat", "Crash")
    comment_id = github.comment(1, "github-actions[bot]", "Seen before.")
    find = """{ repository(owner: "octocat", name: "hello-world") {
      issue(number: 1) { comments(first: 1) { nodes { id } } } } }"""
    node = run_query(github, find)["data"]["repository"]["issue"]["comments"]["nodes"][0]["id"]
    mutation = """mutation ($id: ID!) { minimizeComment(input: {subjectId: $id, classifier: OUTDATED}) {
      minimizedComment { isMinimized minimizedReason } } }"""

    assert run_query(github, mutation, "reader", id=node)["errors"][0]["type"] == "FORBIDDEN"
    assert github.comment_by_id(comment_id).minimized is None
    github.mark()
    answer = run_query(github, mutation, id=node)
    assert answer["data"]["minimizeComment"]["minimizedComment"] == {"isMinimized": True, "minimizedReason": "outdated"}
    assert (github.reads, github.writes) == (0, 1)
    assert github.comment_by_id(comment_id).minimized == "OUTDATED"
