"""The issues API: issues, their timelines and their reactions."""

from __future__ import annotations

from typing import Any

from tests.fakes.exchange import Call, Refusal, Reply, RouteTable, invalid, not_found, redirect
from tests.fakes.paging import KeyedList, cached_view, cursor_reply, page_reply
from tests.fakes.state import REACTIONS, Issue, Repository
from tests.fakes.timeline import TIMELINE_ONLY, event_shape, in_order, timeline_shape

ROUTES = RouteTable()
ISSUES = "/repos/{owner}/{repo}/issues"
ISSUE = f"{ISSUES}/{{issue_number}}"
SUPPORTED = frozenset({"state", "labels", "creator", "since", "sort", "direction", "per_page", "page", "after"})
"""The supported parameters of the list; any other is reported as a gap in the fake, not silently ignored."""
REASONS = frozenset({"completed", "not_planned", "duplicate", "reopened", None})


def find_issue(call: Call) -> Issue:
    """The issue of the path: 410 if it is deleted or issues are off, 301 if it was moved, 404 if it is hidden."""
    repo, number = issues_of(call), call.number("issue_number")
    if number in repo.moved:
        target, there = repo.moved[number]
        rest = call.path.split("/", 6)[6:]
        raise redirect("/".join([f"{call.base}/repositories/{target}/issues/{there}", *rest]), call.method)
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


@ROUTES.route("POST", ISSUES, needs="issues:write")
def create_issue(call: Call) -> Reply:
    repo, payload = issues_of(call), call.json()
    title = payload.get("title")
    if not isinstance(title, str) or not title.strip():
        raise invalid("Issue", "title", "missing_field")
    project = call.server.project(repo)
    number = project.open_issue(call.login, title, payload.get("body"), None, payload.get("labels") or ())
    shape = call.shapes.issue(repo.issues[number])
    return Reply(201, shape, {"Location": shape["url"]})


@ROUTES.route("GET", ISSUE, needs="issues:read")
def get_issue(call: Call) -> Reply:
    return Reply(200, call.shapes.issue(find_issue(call)))


@ROUTES.route("PATCH", ISSUE, needs="issues:write")
def update_issue(call: Call) -> Reply:
    issue, payload = find_issue(call), call.json()
    check_may_change(call, issue.repo, issue.author is call.account)
    project, login = call.server.project(issue.repo), call.login
    project.edit_issue(issue.number, payload.get("title"), payload.get("body"), by=login)
    if "labels" in payload:
        names = [item if isinstance(item, str) else item["name"] for item in payload["labels"]]
        project.unlabel(issue.number, *[name for name in issue.labels if name not in names], actor=login)
        project.label(issue.number, *names, actor=login)
    _change_state(call, issue, payload)
    return Reply(200, call.shapes.issue(issue))


def _change_state(call: Call, issue: Issue, payload: dict[str, Any]) -> None:
    state, reason = payload.get("state"), payload.get("state_reason")
    if state not in ("open", "closed", None) or reason not in REASONS:
        raise invalid("Issue", "state")
    project, login = call.server.project(issue.repo), call.login
    if state == "closed":
        project.close(issue.number, login, reason or "completed")
    elif state == "open":
        project.reopen(issue.number, login)


def check_may_change(call: Call, repo: Repository, own: bool) -> None:
    """People may change what is theirs or in a repository that they can write to; apps what their permissions allow."""
    if not (own or call.token is None or call.token.app or repo.writable_by(call.account)):
        raise Refusal(403, "Must have admin rights to Repository.")


@ROUTES.route("GET", f"{ISSUE}/timeline", needs="issues:read")
def list_timeline(call: Call) -> Reply:
    issue = find_issue(call)
    return page_reply(call, in_order(issue), lambda entry: timeline_shape(call.shapes, issue, entry))


@ROUTES.route("GET", f"{ISSUE}/events", needs="issues:read")
def list_events(call: Call) -> Reply:
    issue = find_issue(call)
    events = [event for event in issue.events if event.kind not in TIMELINE_ONLY]
    return page_reply(call, events, lambda event: event_shape(call.shapes, issue, event))


@ROUTES.route("GET", f"{ISSUE}/reactions", needs="issues:read")
def list_reactions(call: Call) -> Reply:
    return page_reply(call, find_issue(call).reactions, call.shapes.reaction)


@ROUTES.route("POST", f"{ISSUE}/reactions", needs="issues:write")
def create_reaction(call: Call) -> Reply:
    return add_reaction(call, find_issue(call), None)


def add_reaction(call: Call, issue: Issue, comment_id: int | None) -> Reply:
    """201 for a new reaction, 200 for an existing one."""
    content = call.json().get("content")
    if content not in REACTIONS:
        raise invalid("Reaction", "content")
    target = issue if comment_id is None else issue.repo.comments[comment_id]
    before = len(target.reactions)
    reaction_id = call.server.project(issue.repo).react(issue.number, call.login, content, comment_id)
    shape = next(call.shapes.reaction(reaction) for reaction in target.reactions if reaction.id == reaction_id)
    return Reply(201 if len(target.reactions) > before else 200, shape)
