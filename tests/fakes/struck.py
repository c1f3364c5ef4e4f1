"""What GitHub answers when a fault strikes, in its own words, statuses and headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.fakes.exchange import Refusal, Reply, Route, Wire, redirect
from tests.fakes.faults import Fault

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
PAGES = {
    "5xx": (502, "502 Bad Gateway"),
    "503": (503, "Unicorn! &middot; GitHub"),
    "504": (504, "504 Gateway Time-out"),
    "html": (200, "Please log in to the network"),
}


def answer(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply | None:
    """The reply to a request that a fault has struck; None where the right one goes out, late or not at all."""
    if fault.kind in ("empty", "issues-off") and wire.path == "/graphql":
        return _no_issues(switched_on=fault.kind == "empty")
    if fault.kind in WORDS:
        return Refusal(*WORDS[fault.kind]).reply
    if fault.kind in PAGES:
        status, title = PAGES[fault.kind]
        return Reply(status, f"<html><body><h1>{title}</h1></body></html>".encode(), {"Content-Type": "text/html"})
    made = MAKERS.get(fault.kind)
    return made(fault, wire, route, server) if made else None


def _no_issues(*, switched_on: bool) -> Reply:
    issues = {"totalCount": 0, "nodes": [], "pageInfo": {"hasNextPage": False, "endCursor": None}}
    return Reply(200, {"data": {"repository": {"hasIssuesEnabled": switched_on, "issues": issues}}})


def _permission(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply:
    needs = (route.needs if route else "") or ("issues:write" if wire.method != "GET" else "metadata:read")
    told = {"X-Accepted-GitHub-Permissions": needs.replace(":", "=")}
    if wire.path == "/graphql":
        error = {"type": "FORBIDDEN", "message": "Resource not accessible by integration"}
        return Reply(200, {"data": None, "errors": [error]}, told)
    return Refusal(403, "Resource not accessible by integration", told).reply


def _later(fault: Fault) -> dict[str, str]:
    return {"Retry-After": str(int(fault.seconds))} if fault.seconds else {}


def _spent(server: Any) -> dict[str, str]:
    return {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": str(server.clock.epoch + 3600)}


def _secondary(status: int) -> Callable[[Fault, Wire, Route | None, Any], Reply]:
    return lambda fault, wire, route, server: Refusal(status, SECONDARY, _later(fault)).reply


def _primary(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply:
    return Refusal(403, PRIMARY, _spent(server)).reply


def _limit200(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply:
    return Reply(200, {"errors": [{"type": "RATE_LIMITED", "message": PRIMARY}]}, _spent(server))


def _secondary200(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply:
    return Reply(200, {"errors": [{"message": SECONDARY}]}, _later(fault))


def _moved(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply:
    """To an issue of another repository, or to this one under its number; a write is told to be repeated there."""
    parts = wire.path.split("/", 6)
    query = f"?{wire.query}" if wire.query else ""
    if not fault.to:
        return redirect("/".join([f"{wire.base}/repositories/{server.repo.id}", *parts[4:]]) + query, wire.method).reply
    name, _, number = fault.to.partition("#")
    target = server.world.names[name.lower()]
    where = "/".join([f"{wire.base}/repositories/{target}/issues/{number}", *parts[6:]])
    return redirect(where + query, wire.method).reply


def _invalid(fault: Fault, wire: Wire, route: Route | None, server: Any) -> Reply:
    error = {"resource": "IssueComment", "code": "unprocessable", "field": "data", "message": "Body is not acceptable"}
    return Refusal(422, "Validation Failed", errors=[error]).reply


MAKERS: dict[str, Callable[[Fault, Wire, Route | None, Any], Reply]] = {
    "permission": _permission,
    "secondary403": _secondary(403),
    "429": _secondary(429),
    "primary403": _primary,
    "limit200": _limit200,
    "secondary200": _secondary200,
    "301": _moved,
    "422": _invalid,
}
