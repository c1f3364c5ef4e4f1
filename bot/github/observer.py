"""Reports each request to GitHub to the observer of the current thread or task, if any; and names routes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar

TellAnswer = Callable[[int, Mapping[str, str]], None]
"""Takes the status of an answer and its headers, whose names are in lower case."""

RequestObserver = Callable[[str, str], AbstractContextManager[TellAnswer]]
"""Takes the verb and the path of a request, without its query, and returns a context manager around it.

The path has names of accounts and repositories: see `route_of`.
"""

_observer: ContextVar[RequestObserver | None] = ContextVar("request observer", default=None)
_unobserved = nullcontext[TellAnswer](lambda _status, _headers: None)


@contextmanager
def observed_by(observer: RequestObserver) -> Iterator[None]:
    """Report to the observer every request that this thread or task makes within the block."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)


def observe_request(verb: str, path: str) -> AbstractContextManager[TellAnswer]:
    """Return the context manager for a request. If its function is not called, there was no answer."""
    observer = _observer.get()
    return observer(verb, path) if observer else _unobserved


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
_REPOSITORY_ROUTES = (
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
"""If a literal word and a parameter both fit, the word comes first."""

_REPOSITORY_PREFIXES = ("/repos/{owner}/{repo}", "/repositories/{repository_id}")
"""The second is where redirects lead."""

_SPLIT_ROUTES = [
    (route, route.split("/"))
    for route in (*_ROUTES, *(f"{home}{rest}" for home in _REPOSITORY_PREFIXES for rest in _REPOSITORY_ROUTES))
]


def route_of(path: str) -> str:
    """Return a path below the API's address as GitHub's documentation writes it, without names and numbers.

    "other" for an unknown one. https://docs.github.com/rest
    """
    parts = path.split("/")
    return next((route for route, pattern in _SPLIT_ROUTES if _matches(pattern, parts)), OTHER)


def _matches(pattern: Sequence[str], parts: Sequence[str]) -> bool:
    if len(pattern) != len(parts):
        return False
    pairs = zip(pattern, parts, strict=True)
    return all(part == word or (part != "" and word.startswith("{")) for word, part in pairs)
