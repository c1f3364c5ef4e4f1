"""Names the route of a request to GitHub, as its documentation does: a path without the names and numbers in it.

https://docs.github.com/rest
"""

from __future__ import annotations

from collections.abc import Sequence

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
"""Where a word and a name both fit, the word comes first."""

_HOMES = ("/repos/{owner}/{repo}", "/repositories/{repository_id}")
"""The second is where redirects lead."""

_KNOWN = [
    (route, route.split("/")) for route in (*_ROUTES, *(f"{home}{rest}" for home in _HOMES for rest in _OF_REPOSITORY))
]


def route_of(path: str) -> str:
    """Return the route of a path below the API's address, "other" for an unknown one."""
    parts = path.split("/")
    return next((route for route, known in _KNOWN if _fits(known, parts)), OTHER)


def _fits(known: Sequence[str], parts: Sequence[str]) -> bool:
    if len(known) != len(parts):
        return False
    pairs = zip(known, parts, strict=True)
    return all(part == word or (part != "" and word.startswith("{")) for word, part in pairs)
