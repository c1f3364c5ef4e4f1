"""The open pull requests that GitHub names for some issues, and answers of any shape."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.domain.post import OpenPull
from bot.github.client import GitHubClient
from bot.github.errors import RateLimited
from bot.github.open_pulls import MAX_ISSUES, find_open_pulls, read_pulls
from tests.examples import examples
from tests.fakes.github import FakeGitHub
from tests.github.conftest import REPOSITORY

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


def test_open_pull_requests_that_close_or_mention_the_issues_are_found_in_one_request(
    github: FakeGitHub, client: GitHubClient
) -> None:
    for title in ("Crash", "Slow", "Done"):
        github.open_issue("octocat", title)
    github.add_pull("hubot", "Fix it", "Fixes #1.", files=["a/b.py", "c.md"], closes=[1])
    github.add_pull("hubot", "About both", "See #1 and #2.")
    github.add_pull("hubot", "Old", "Fixes #2.", closes=[2])
    github.close(6, "hubot", None)
    github.add_pull("hubot", "Of a closed one", "Fixes #3.", closes=[3])
    github.close(3, "hubot")
    github.set_draft(5)
    github.mark()
    assert find_open_pulls(client, REPOSITORY, [1, 2, 3], NOW) == [
        OpenPull(1, 4, "Fix it", closes=True, files=("a/b.py", "c.md"), seen_at=NOW),
        OpenPull(1, 5, "About both", draft=True, seen_at=NOW),
        OpenPull(2, 5, "About both", draft=True, seen_at=NOW),
    ]
    assert (client.queries, client.reads, client.writes, len(github.recent)) == (1, 0, 0, 1)


def test_one_request_asks_for_as_many_issues_as_a_run_may_show(github: FakeGitHub, client: GitHubClient) -> None:
    for number in range(MAX_ISSUES):
        github.open_issue("octocat", f"Crash {number}")
    github.add_pull("hubot", "Fix it", f"Fixes #{MAX_ISSUES}.", closes=[MAX_ISSUES])
    assert [pull.about for pull in find_open_pulls(client, REPOSITORY, range(1, MAX_ISSUES + 1), NOW)] == [MAX_ISSUES]
    assert (client.queries, github.violations) == (1, [])


def test_a_query_that_is_not_sent_is_not_counted(github: FakeGitHub, client: GitHubClient) -> None:
    github.open_issue("octocat", "Crash")
    github.faults.add("POST /graphql", "limit200", None)
    for _ in range(2):
        with pytest.raises(RateLimited):
            find_open_pulls(client, REPOSITORY, [1], NOW)
    assert (client.queries, client.reads, client.writes) == (1, 0, 0)


def pull(number: object = 4, home: str = REPOSITORY, **fields: object) -> dict[str, Any]:
    return {"number": number, "title": "T", "state": "OPEN", "repository": {"nameWithOwner": home}} | fields


@pytest.mark.parametrize(
    ("node", "numbers"),
    [
        (pull(), [4]),
        (pull(home="Octocat/Hello-World"), [4]),
        (pull(home="octocat/private"), []),
        (pull(state="MERGED"), []),
        (pull(True), []),
        (pull(title=None, files=None), [4]),
        (pull(files={"nodes": [None, {"path": 3}, {"path": "\x00a"}]}), [4]),
        ({}, []),
        (None, []),
    ],
)
def test_only_open_pull_requests_of_the_repository_count(node: object, numbers: list[int]) -> None:
    issue = {"state": "OPEN", "closedByPullRequestsReferences": {"nodes": [node, node]}}
    assert [open_pull.id for open_pull in read_pulls(issue, 1, REPOSITORY, NOW)] == numbers


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(sorted(pull())), inner, max_size=4),
    max_leaves=9,
)
PULLS = st.builds(
    lambda number, changes: pull(number) | changes,
    st.integers() | JSON,
    st.dictionaries(st.sampled_from(sorted(pull())), JSON, max_size=1),
)
NODES = st.fixed_dictionaries({"nodes": st.lists(JSON | PULLS | st.fixed_dictionaries({"source": PULLS}), max_size=3)})


@settings(max_examples=examples(60), deadline=None)
@given(JSON | NODES, JSON | NODES)
def test_an_answer_of_any_shape_is_read(closing: object, events: object) -> None:
    issue = {"state": "OPEN", "closedByPullRequestsReferences": closing, "timelineItems": {"nodes": events}}
    assert all(type(open_pull.id) is int for open_pull in read_pulls(issue, 1, REPOSITORY, NOW))
