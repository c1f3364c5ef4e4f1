"""The issues API: issues and their timelines."""

from __future__ import annotations

from tests.fakes.exchange import Call, Refusal, Reply, RouteTable, invalid, not_found, redirect
from tests.fakes.paging import KeyedList, cached_view, cursor_reply, page_reply
from tests.fakes.state import Issue, Repository
from tests.fakes.timeline import in_order, timeline_shape

ROUTES = RouteTable()
ISSUES = "/repos/{owner}/{repo}/issues"
ISSUE = f"{ISSUES}/{{issue_number}}"
SUPPORTED = frozenset({"state", "labels", "creator", "since", "sort", "direction", "per_page", "page", "after"})
"""The supported parameters of the list; any other is reported as a gap in the fake, not silently ignored."""


def find_issue(call: Call) -> Issue:
    """The issue of the path: 410 if it is deleted or issues are off, 301 if it was moved, 404 if it is hidden."""
    repo, number = issues_of(call), call.number("issue_number")
    if number in repo.moved:
        target, there = repo.moved[number]
        rest = call.request.path.split("/", 6)[6:]
        raise redirect(
            "/".join([f"{call.request.base}/repositories/{target}/issues/{there}", *rest]), call.request.method
        )
    if number in repo.deleted:
        raise Refusal(410, "This issue was deleted")
    if number not in repo.issues:
        raise not_found()
    return repo.issues[number]


def issues_of(call: Call) -> Repository:
    repo = call.repository()
    if not repo.has_issues:
        raise Refusal(410, "Issues are disabled for this repo")
    return repo


@ROUTES.route("GET", ISSUES, needs="issues:read")
def list_issues(call: Call) -> Reply:
    """Newest first by default, including pull requests. Ties of a sort key are broken by number."""
    repo, query = issues_of(call), call.query
    unsupported = set(query) - SUPPORTED
    if unsupported:
        raise NotImplementedError(f"the fake does not know these parameters of {ISSUES}: {sorted(unsupported)}")
    field = query.get("sort", "created")
    if field not in ("created", "updated", "comments"):
        raise invalid("Issue", "sort")
    return cursor_reply(call, _sorted_issues(call, repo, field), call.shapes.issue)


def _sorted_issues(call: Call, repo: Repository, field: str) -> KeyedList[Issue]:
    query = {name: value for name, value in call.query.items() if name not in ("per_page", "page", "after")}
    descending = query.get("direction", "desc") == "desc"

    def make() -> KeyedList[Issue]:
        chosen = (issue for issue in repo.issues.values() if _matches(issue, query))
        return KeyedList.sort(chosen, lambda issue: _sort_key(issue, field), descending)

    return cached_view(call, ("rest", repo.id, *sorted(query.items())), make)


def _sort_key(issue: Issue, field: str) -> str:
    first = f"{len(issue.comments):06d}" if field == "comments" else getattr(issue, f"{field}_at")
    return f"{first}|{issue.number:09d}"


def _matches(issue: Issue, query: dict[str, str]) -> bool:
    state = query.get("state", "open")
    labels = [name for name in query.get("labels", "").split(",") if name]
    creator = query.get("creator")
    return (
        state in ("all", issue.state)
        and issue.updated_at >= query.get("since", "")
        and all(name in issue.labels for name in labels)
        and (creator is None or (issue.author is not None and issue.author.login == creator))
    )


@ROUTES.route("GET", ISSUE, needs="issues:read")
def get_issue(call: Call) -> Reply:
    return Reply(200, call.shapes.issue(find_issue(call)))


def check_may_change(call: Call, repo: Repository, own: bool) -> None:
    """People may change what is theirs or in a repository that they can write to; apps what their permissions allow."""
    if not (own or call.token is None or call.token.app or repo.writable_by(call.account)):
        raise Refusal(403, "Must have admin rights to Repository.")


@ROUTES.route("GET", f"{ISSUE}/timeline", needs="issues:read")
def list_timeline(call: Call) -> Reply:
    issue = find_issue(call)
    return page_reply(call, in_order(issue), lambda entry: timeline_shape(call.shapes, issue, entry))
