"""GitHub's replies when a fault strikes, with its own messages, statuses and headers."""

from __future__ import annotations

from typing import Any

from tests.fakes.exchange import RawRequest, Refusal, Reply, Route, redirect
from tests.fakes.faults import HOURLY, Fault

SECONDARY = "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."
PRIMARY = "API rate limit exceeded for installation ID 1."
LIMITED = (
    "An owner of this repository has limited the ability to comment to users that have contributed to it in the past."
)
WORDS = {
    "401": (401, "Bad credentials"),
    "locked": (403, "Unable to create comment because issue is locked."),
    "archived": (403, "Repository was archived so is read-only."),
    "limited": (403, LIMITED),
    "cap": (422, "Commenting is disabled on issues with more than 2500 comments"),
    "404": (404, "Not Found"),
    "410": (410, "This issue was deleted"),
    "issues-off": (410, "Issues are disabled for this repo"),
    "500": (500, "Server Error"),
}
LIMITS = {"secondary403": (403, SECONDARY), "429": (429, SECONDARY), "primary403": (403, PRIMARY)}
GRAPHQL_LIMITS = {
    "limit200": {"type": "RATE_LIMITED", "message": PRIMARY},
    "secondary200": {"message": SECONDARY},
}
UNPROCESSABLE = {
    "resource": "IssueComment",
    "code": "unprocessable",
    "field": "data",
    "message": "Body is not acceptable",
}
PAGES = {
    "5xx": (502, "502 Bad Gateway"),
    "503": (503, "Unicorn! &middot; GitHub"),
    "504": (504, "504 Gateway Time-out"),
    "html": (200, "Please log in to the network"),
}


def make_reply(fault: Fault, request: RawRequest, route: Route | None, server: Any) -> Reply | None:
    """The reply to a request that a fault struck; None if the correct reply is sent late, cut, or not at all."""
    kind = fault.kind
    if kind in ("empty", "issues-off") and request.path == "/graphql":
        return _no_issues(switched_on=kind == "empty")
    if kind in WORDS:
        return Refusal(*WORDS[kind]).reply
    if kind in PAGES:
        status, title = PAGES[kind]
        return Reply(status, f"<html><body><h1>{title}</h1></body></html>".encode(), {"Content-Type": "text/html"})
    if kind in LIMITS:
        return Refusal(*LIMITS[kind], _limit_headers(fault, server)).reply
    if kind in GRAPHQL_LIMITS:
        return Reply(200, {"errors": [GRAPHQL_LIMITS[kind]]}, _limit_headers(fault, server))
    if kind == "422":
        return Refusal(422, "Validation Failed", errors=[UNPROCESSABLE]).reply
    if kind == "permission":
        return _permission(request, route)
    return _moved(fault, request, server) if kind == "301" else None


def _no_issues(*, switched_on: bool) -> Reply:
    issues = {"totalCount": 0, "nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None}}
    return Reply(200, {"data": {"repository": {"hasIssuesEnabled": switched_on, "issues": issues}}})


def _limit_headers(fault: Fault, server: Any) -> dict[str, str]:
    if fault.kind in HOURLY:
        return {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(server.clock.epoch + 3600)}
    return {"Retry-After": str(int(fault.seconds))} if fault.seconds else {}


def _permission(request: RawRequest, route: Route | None) -> Reply:
    needs = (route.needs if route else "") or ("issues:write" if request.method != "GET" else "metadata:read")
    headers = {"X-Accepted-GitHub-Permissions": needs.replace(":", "=")}
    if request.path == "/graphql":
        error = {"type": "FORBIDDEN", "message": "Resource not accessible by integration"}
        return Reply(200, {"data": None, "errors": [error]}, headers)
    return Refusal(403, "Resource not accessible by integration", headers).reply


def _moved(fault: Fault, request: RawRequest, server: Any) -> Reply:
    """Redirect to an issue of another repository, or to this repository by its id; a write must be repeated there."""
    parts = request.path.split("/", 6)
    query = f"?{request.query}" if request.query else ""
    if not fault.to:
        return redirect(
            "/".join([f"{request.base}/repositories/{server.repo.id}", *parts[4:]]) + query, request.method
        ).reply
    name, _, number = fault.to.partition("#")
    target = server.world.names[name.lower()]
    where = "/".join([f"{request.base}/repositories/{target}/issues/{number}", *parts[6:]])
    return redirect(where + query, request.method).reply
