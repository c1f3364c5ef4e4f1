"""Routes of requests to GitHub: as in its documentation, never with a name or a number."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.observer import OTHER, route_of
from tests.fakes.service import ROUTES, find_route

SEGMENTS = st.sampled_from(["repos", "repositories", "issues", "comments", "app", "rate_limit", "Sesame", "17", ""])
WORDS = SEGMENTS | st.text(max_size=20).map(lambda text: quote(text, safe=""))
TEMPLATES = [route.template for route in ROUTES.routes if route_of(route.template) != OTHER]
KNOWN = st.builds(
    lambda template, word: re.sub(r"\{\w+\}", lambda _: word, template), st.sampled_from(TEMPLATES), WORDS
)
"""Paths that have a route, with any name or number."""


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/repos/octo-org/hello-world/issues/5", "/repos/{owner}/{repo}/issues/{issue_number}"),
        ("/repos/octo-org/hello-world/issues/comments", "/repos/{owner}/{repo}/issues/comments"),
        ("/repos/issues/comments/issues/comments/5", "/repos/{owner}/{repo}/issues/comments/{comment_id}"),
        ("/repositories/17/issues/5/timeline", "/repositories/{repository_id}/issues/{issue_number}/timeline"),
        ("/repos/octo-org/hello-world/compare/a...b%2Fc", "/repos/{owner}/{repo}/compare/{basehead}"),
        ("/repos/octo-org/hello-world", "/repos/{owner}/{repo}"),
        ("/repos//hello-world", OTHER),
        ("/repos/octo-org/hello-world/secret-scanning/alerts", OTHER),
        ("/users/octocat", OTHER),
        ("", OTHER),
    ],
)
def test_a_path_is_named_by_its_route(path: str, expected: str) -> None:
    assert route_of(path) == expected


@given(KNOWN | st.lists(WORDS, max_size=8).map(lambda parts: "/" + "/".join(parts)))
def test_a_route_contains_only_words_of_github(path: str) -> None:
    route = route_of(path)
    assert route == OTHER or re.fullmatch(r"(/([a-z_]+|\{[a-z_]+\}))+", route)
    assert not {"Sesame", "17"} & set(route.split("/"))


def test_routes_are_those_of_githubs_api_description() -> None:
    assert [route_of(template) for template in TEMPLATES] == TEMPLATES
    assert len(TEMPLATES) >= 20
    assert find_route("GET", "/repos/octo-org/hello-world/tags")
