"""Names the route of a request to GitHub, as its documentation does: a path without the names and numbers in it.

https://docs.github.com/rest
"""

from __future__ import annotations

OTHER = "other"

_ROUTES = (
    "/app",
    "/app/hook/deliveries",
    "/app/hook/deliveries/{delivery_id}/attempts",
    "/app/installations",
    "/app/installations/{installation_id}/access_tokens",
    "/graphql",
    "/installation/repositories",
    "/rate_limit",
    "/repositories/{repository_id}",
)
_OF_REPOSITORY = (
    "",
    "/collaborators/{username}/permission",
    "/commits/{ref}",
    "/compare/{basehead}",
    "/issues",
    "/issues/comments",
    "/issues/comments/{comment_id}",
    "/issues/comments/{comment_id}/reactions",
    "/issues/{issue_number}",
    "/issues/{issue_number}/comments",
    "/issues/{issue_number}/timeline",
    "/pulls/{pull_number}",
    "/pulls/{pull_number}/files",
    "/releases",
    "/tags",
)
_HOME, _BY_NUMBER = "/repos/{owner}/{repo}", "/repositories/{repository_id}"
"""Redirects lead to the second."""

_KNOWN = {
    tuple(route.split("/")): route
    for route in (*_ROUTES, *(f"{home}{rest}" for home in (_HOME, _BY_NUMBER) for rest in _OF_REPOSITORY))
}


def route_of(path: str) -> str:
    """Return the route of a path below the API's address, "other" for an unknown one. A word wins over a name."""
    parts = path.split("/")
    fitting = [known for known in _KNOWN if len(known) == len(parts) and all(map(_fits, known, parts))]
    return _KNOWN[min(fitting, key=_names)] if fitting else OTHER


def _fits(known: str, part: str) -> bool:
    return known == part or (known.startswith("{") and part != "")


def _names(known: tuple[str, ...]) -> int:
    return sum(part.startswith("{") for part in known)
