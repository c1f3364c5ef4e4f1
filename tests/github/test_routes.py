"""Routes of requests to GitHub: those of its documentation, and never a name or a number."""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.github.observer import OTHER, route_of
from tests.fakes.service import BOOK, find_route

SEGMENTS = st.sampled_from(["repos", "repositories", "issues", "comments", "app", "rate_limit", "Sesame", "17", ""])


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


@given(st.lists(SEGMENTS | st.text(max_size=20).map(lambda text: quote(text, safe="")), max_size=8))
def test_nothing_but_words_of_github_is_in_a_route(parts: list[str]) -> None:
    route = route_of("/" + "/".join(parts))
    assert route == OTHER or re.fullmatch(r"(/([a-z_]+|\{[a-z_]+\}))+", route)
    assert not {"Sesame", "17"} & set(route.split("/"))


def test_routes_are_those_of_the_fake_which_has_them_from_the_contract() -> None:
    ours = [route.template for route in BOOK.routes if route_of(route.template) != OTHER]
    assert [route_of(template) for template in ours] == ours
    assert len(ours) >= 20
    assert find_route("GET", "/repos/octo-org/hello-world/tags")
