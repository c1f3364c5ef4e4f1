"""The meaning of GitHub's refusals: which of its limits was reached."""

from __future__ import annotations

import pytest

from bot.github.errors import RateLimited, error_for_graphql, error_for_status

EXHAUSTED = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1900000000"}
TOO_FAST = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
LIMITED = {"type": "RATE_LIMITED", "message": "API rate limit exceeded for installation ID 7."}


@pytest.mark.parametrize(
    ("headers", "path", "resource"),
    [
        (EXHAUSTED | {"x-ratelimit-resource": "core"}, "/repos/a/b/issues", "core"),
        (EXHAUSTED | {"x-ratelimit-resource": "search"}, "/repos/a/b/issues", "search"),
        (EXHAUSTED | {"x-ratelimit-resource": "graphql"}, "/graphql", "graphql"),
        (EXHAUSTED, "/graphql", "graphql"),
        (EXHAUSTED, "/search/issues", "search"),
        (EXHAUSTED, "/repos/a/graphql-things/issues", "core"),
        (EXHAUSTED | {"x-ratelimit-resource": "../x" * 20}, "/repos/a/b/issues", "core"),
        ({"retry-after": "30", "x-ratelimit-resource": "graphql"}, "/graphql", "secondary"),
        ({"x-ratelimit-remaining": "12", "x-ratelimit-resource": "core", "retry-after": "5"}, "/x", "secondary"),
    ],
)
@pytest.mark.parametrize("status", [403, 429])
def test_the_limited_resource_is_the_one_that_github_names_or_follows_from_the_path(
    status: int, headers: dict[str, str], path: str, resource: str
) -> None:
    rate_limit = error_for_status(status, headers, {"message": "no"}, path)
    assert isinstance(rate_limit, RateLimited)
    assert (rate_limit.resource, rate_limit.is_secondary) == (resource, resource == "secondary")


@pytest.mark.parametrize(
    ("headers", "error", "resource"),
    [
        (EXHAUSTED | {"x-ratelimit-resource": "graphql"}, LIMITED, "graphql"),
        (EXHAUSTED, LIMITED, "graphql"),
        ({"x-ratelimit-remaining": "3", "x-ratelimit-resource": "graphql"}, LIMITED, "graphql"),
        ({}, LIMITED, "graphql"),
        (EXHAUSTED, {"message": TOO_FAST}, "secondary"),
        ({"x-ratelimit-remaining": "3"}, {"message": TOO_FAST}, "secondary"),
        ({}, LIMITED | {"message": TOO_FAST}, "secondary"),
    ],
)
def test_an_exhausted_graphql_limit_differs_from_a_secondary_limit(
    headers: dict[str, str], error: dict[str, str], resource: str
) -> None:
    rate_limit = error_for_graphql([error], headers)
    assert isinstance(rate_limit, RateLimited)
    assert rate_limit.resource == resource
