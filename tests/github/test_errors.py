"""What GitHub's refusals mean: here, which of its limits was reached."""

from __future__ import annotations

import pytest

from bot.github.errors import RateLimited, error_for_graphql, error_for_status

SPENT = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1900000000"}
SLOWER = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
LIMITED = {"type": "RATE_LIMITED", "message": "API rate limit exceeded for installation ID 7."}


@pytest.mark.parametrize(
    ("headers", "path", "resource"),
    [
        (SPENT | {"x-ratelimit-resource": "core"}, "/repos/a/b/issues", "core"),
        (SPENT | {"x-ratelimit-resource": "search"}, "/repos/a/b/issues", "search"),
        (SPENT | {"x-ratelimit-resource": "graphql"}, "/graphql", "graphql"),
        (SPENT, "/graphql", "graphql"),
        (SPENT, "/search/issues", "search"),
        (SPENT, "/repos/a/graphql-things/issues", "core"),
        (SPENT | {"x-ratelimit-resource": "../x" * 20}, "/repos/a/b/issues", "core"),
        ({"retry-after": "30", "x-ratelimit-resource": "graphql"}, "/graphql", "secondary"),
        ({"x-ratelimit-remaining": "12", "x-ratelimit-resource": "core", "retry-after": "5"}, "/x", "secondary"),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
def test_a_limit_is_of_what_github_names_or_else_of_what_was_asked(
    status: int, headers: dict[str, str], path: str, resource: str
) -> None:
    found = error_for_status(status, headers, {"message": "no"}, path)
    assert isinstance(found, RateLimited)
    assert (found.resource, found.is_secondary) == (resource, resource == "secondary")


@pytest.mark.parametrize(
    ("headers", "error", "resource"),
    [
        (SPENT | {"x-ratelimit-resource": "graphql"}, LIMITED, "graphql"),
        (SPENT, LIMITED, "graphql"),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-resource": "graphql"}, LIMITED, "graphql"),
        ({}, LIMITED, "graphql"),
        (SPENT, {"message": SLOWER}, "secondary"),
        ({"x-ratelimit-remaining": "3"}, {"message": SLOWER}, "secondary"),
        ({}, LIMITED | {"message": SLOWER}, "secondary"),
    ],
)
def test_graphql_is_out_of_points_or_was_asked_too_fast(
    headers: dict[str, str], error: dict[str, str], resource: str
) -> None:
    found = error_for_graphql([error], headers)
    assert isinstance(found, RateLimited)
    assert found.resource == resource
