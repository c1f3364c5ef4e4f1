"""How each field of the GraphQL schema is read from the fake's state."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError

from tests.fakes.exchange import Call
from tests.fakes.objects import from_node_id
from tests.fakes.paging import KeyedList, cached_view
from tests.fakes.state import (
    Account,
    Comment,
    Commit,
    DiscussionComment,
    Event,
    Issue,
    Reaction,
    Repository,
    from_epoch,
    to_stamp,
)
from tests.fakes.timeline import in_order

Arguments = dict[str, Any]
Resolver = Callable[[Any, Call, Arguments], Any]
EVENT_TYPES = {
    "closed": "ClosedEvent",
    "reopened": "ReopenedEvent",
    "cross-referenced": "CrossReferencedEvent",
    "referenced": "ReferencedEvent",
    "marked_as_duplicate": "MarkedAsDuplicateEvent",
    "unmarked_as_duplicate": "UnmarkedAsDuplicateEvent",
    "labeled": "LabeledEvent",
    "unlabeled": "UnlabeledEvent",
    "locked": "LockedEvent",
    "unlocked": "UnlockedEvent",
    "renamed": "RenamedTitleEvent",
    "transferred": "TransferredEvent",
    "comment_deleted": "CommentDeletedEvent",
}
CONTENTS = {
    "+1": "THUMBS_UP",
    "-1": "THUMBS_DOWN",
    "laugh": "LAUGH",
    "hooray": "HOORAY",
    "confused": "CONFUSED",
    "heart": "HEART",
    "rocket": "ROCKET",
    "eyes": "EYES",
}


@dataclass(frozen=True)
class Entry:
    """An event with the issue whose timeline it is on."""

    issue: Issue
    event: Event


def type_name(value: Any) -> str:
    if isinstance(value, Issue):
        return "PullRequest" if value.pull else "Issue"
    if isinstance(value, Entry):
        return EVENT_TYPES[value.event.kind]
    if isinstance(value, DiscussionComment):
        return "DiscussionComment"
    if isinstance(value, Account):
        return value.type
    return {Comment: "IssueComment", Commit: "Commit", Repository: "Repository"}[type(value)]


def refuse(kind: str, text: str) -> GraphQLError:
    return GraphQLError(text, extensions={"type": kind})


def connect(name: str, listed: KeyedList[Any], arguments: Arguments) -> dict[str, Any]:
    """A page of a keyed list; ``first`` or ``last`` is required and at most 100."""
    first, last = arguments.get("first"), arguments.get("last")
    size = first if first is not None else last
    if size is None:
        text = f"You must provide a `first` or `last` value to properly paginate the `{name}` connection."
        raise refuse("MISSING_PAGINATION_BOUNDARIES", text)
    if not 0 <= size <= 100:
        text = f"Requesting {size} records on the `{name}` connection exceeds the `first` limit of 100 records."
        raise refuse("EXCESSIVE_PAGINATION", text)
    low = listed.after(_key(arguments["after"])) if arguments.get("after") else 0
    high = listed.after(_key(arguments["before"])) - 1 if arguments.get("before") else len(listed.items)
    start, end = (low, min(high, low + size)) if first is not None else (max(low, high - size), high)
    cursors = [_cursor(key) for key in listed.keys[start:end]]
    page = {
        "startCursor": cursors[0] if cursors else None,
        "endCursor": cursors[-1] if cursors else None,
        "hasNextPage": end < len(listed.items),
        "hasPreviousPage": start > 0,
    }
    return {"nodes": listed.items[start:end], "totalCount": len(listed.items), "pageInfo": page}


def _cursor(key: str) -> str:
    return base64.b64encode(f"cursor:v2:{key}".encode()).decode()


def _key(cursor: str) -> str:
    try:
        return base64.b64decode(cursor).decode().removeprefix("cursor:v2:")
    except ValueError:
        raise refuse("INVALID_CURSOR_ARGUMENTS", f"`{cursor}` does not appear to be a valid cursor.") from None


def check_issues(call: Call, level: str = "read") -> None:
    if not call.server.allows(call.token, f"issues:{level}"):
        raise refuse("FORBIDDEN", "Resource not accessible by integration")


def find_repository(_: Any, call: Call, arguments: Arguments) -> Repository:
    full_name = f"{arguments['owner']}/{arguments['name']}"
    repo_id = call.world.names.get(full_name.lower())
    repo = call.world.repositories.get(repo_id or 0)
    if repo is None or (repo.private and not call.server.sees(call.token, repo)):
        raise refuse("NOT_FOUND", f"Could not resolve to a Repository with the name '{full_name}'.")
    call.server.apps.note(call.token, repo.id)
    return repo


def list_issues(repo: Repository, call: Call, arguments: Arguments) -> dict[str, Any]:
    check_issues(call)
    order = arguments.get("orderBy") or {"field": "CREATED_AT", "direction": "ASC"}
    descending = order["direction"] == "DESC"

    def key(issue: Issue) -> str:
        if order["field"] == "COMMENTS":
            return f"{len(issue.comments):06d}|{issue.number:09d}"
        return f"{issue.updated_at if order['field'] == 'UPDATED_AT' else issue.created_at}|{issue.number:09d}"

    def make() -> KeyedList[Issue]:
        issues = repo.issues.values() if repo.has_issues else ()  # if switched off, they are silently hidden
        chosen = (issue for issue in issues if not issue.pull and _matches(issue, arguments))
        return KeyedList.sort(chosen, key, descending)

    chosen_by = {name: value for name, value in arguments.items() if name not in ("first", "last", "after", "before")}
    return connect("issues", cached_view(call, ("graph", repo.id, repr(chosen_by)), make), arguments)


def _matches(issue: Issue, arguments: Arguments) -> bool:
    filters = arguments.get("filterBy") or {}
    states = arguments.get("states") or filters.get("states")
    labels = arguments.get("labels") or filters.get("labels")
    creator = filters.get("createdBy")
    return (
        (not states or issue.state.upper() in states)
        and (not labels or any(name in issue.labels for name in labels))
        and (not filters.get("since") or issue.updated_at >= to_stamp(filters["since"]))
        and (not creator or (issue.author is not None and issue.author.login == creator))
    )


def find_issue(kind: str) -> Resolver:
    def resolve(repo: Repository, call: Call, arguments: Arguments) -> Issue:
        check_issues(call)
        issue = repo.issues.get(arguments["number"])
        is_kind = issue is not None and kind in ("issue or pull request", "PullRequest" if issue.pull else "Issue")
        if issue is None or not is_kind:
            raise refuse("NOT_FOUND", f"Could not resolve to an {kind} with the number of {arguments['number']}.")
        return issue

    return resolve


def list_comments(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    order = arguments.get("orderBy")

    def key(comment: Comment) -> str:
        return f"{comment.updated_at if order else ''}|{comment.id:012d}"

    descending = order is not None and order["direction"] == "DESC"
    return connect("comments", KeyedList.sort(issue.comments, key, descending), arguments)


def list_timeline(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    types = {name.replace("_", "").lower() for name in arguments.get("itemTypes") or ()}
    since = to_stamp(arguments["since"]) if arguments.get("since") else ""
    keys: list[str] = []
    nodes: list[Comment | Entry] = []
    for item in in_order(issue):
        at = item.created_at if isinstance(item, Comment) else item.at
        if isinstance(item, Event) and item.kind not in EVENT_TYPES:
            continue
        node = item if isinstance(item, Comment) else Entry(issue, item)
        if at >= since and (not types or type_name(node).lower() in types):
            keys.append(f"{at}|{item.id:012d}")
            nodes.append(node)
    skip = arguments.get("skip") or 0
    page = connect("timelineItems", KeyedList(keys[skip:], nodes[skip:]), arguments)
    return page | {"filteredCount": len(nodes), "updatedAt": issue.updated_at}


def list_labels(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    shapes = [call.shapes.label(issue.repo, name) for name in issue.labels]
    labels = [shape | {"id": shape["node_id"]} for shape in shapes]
    return connect("labels", KeyedList([f"{i:06d}" for i in range(len(labels))], labels), arguments)


def list_closing_pulls(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    """Pull requests that close the issue: only open ones, unless closed ones are requested."""
    if not call.server.allows(call.token, "pull_requests:read"):
        raise refuse("FORBIDDEN", "Resource not accessible by integration")
    pulls = [pull for pull in issue.repo.issues.values() if pull.pull and issue.number in pull.pull.closes]
    shown = [pull for pull in pulls if arguments.get("includeClosedPrs") or pull.state == "open"]
    listed = KeyedList.sort(shown, lambda pull: f"{pull.number:09d}")
    return connect("closedByPullRequestsReferences", listed, arguments)


def list_files(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    """The files that a pull request changes, sorted by path."""
    files = issue.pull.files if issue.pull else []
    return connect("files", KeyedList.sort(files, lambda file: file.path), arguments)


def state_reason(issue: Issue, call: Call, arguments: Arguments) -> str | None:
    reason = issue.state_reason
    hidden = reason == "duplicate" and not arguments.get("enableDuplicate")
    return None if reason is None or hidden else reason.upper()


def reaction_groups(holder: Issue | Comment, call: Call, arguments: Arguments) -> list[dict[str, Any]]:
    return [_group(holder.reactions, rest, name) for rest, name in CONTENTS.items()]


def _group(reactions: Sequence[Reaction], content: str, name: str) -> dict[str, Any]:
    matching = [reaction for reaction in reactions if reaction.content == content]
    count = {"totalCount": len(matching)}
    return {"content": name, "createdAt": matching[0].at if matching else None, "reactors": count, "users": count}


def minimize(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    fields = arguments["input"]
    comment = _find_minimizable(call, fields)
    comment.minimized = fields["classifier"]
    return {"clientMutationId": fields.get("clientMutationId"), "minimizedComment": comment}


def unminimize(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    fields = arguments["input"]
    comment = _find_minimizable(call, fields)
    comment.minimized = None
    return {"clientMutationId": fields.get("clientMutationId"), "unminimizedComment": comment}


def _find_minimizable(call: Call, fields: Arguments) -> Comment | DiscussionComment:
    try:
        kind, number = from_node_id(fields["subjectId"])
    except ValueError:
        kind, number = "", 0
    if not call.server.allows(call.token, f"{'discussions' if kind == 'DC' else 'issues'}:write"):
        raise refuse("FORBIDDEN", "Resource not accessible by integration")
    repos = call.world.repositories.values()
    discussion_comments = (comment for repo in repos for each in repo.discussions.values() for comment in each.comments)
    comments = (comment for repo in repos for comment in repo.comments.values())
    candidates: Iterable[Comment | DiscussionComment] = (
        comments if kind == "IC" else discussion_comments if kind == "DC" else ()
    )
    match = next((each for each in candidates if each.id == number), None)
    if match is None:
        raise refuse("NOT_FOUND", f"Could not resolve to a node with the global id of '{fields['subjectId']}'")
    return match


def rate_limit(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    allowance = call.server.limits.allowance(call.token, "graphql")
    totals = {
        "limit": allowance.limit,
        "remaining": allowance.remaining,
        "used": allowance.used,
        "resetAt": from_epoch(allowance.reset),
    }
    return totals | call.cost


def closer(entry: Entry, call: Call, arguments: Arguments) -> Issue | Commit | None:
    return entry.event.other or commit_of(entry, call, arguments)


def commit_of(entry: Entry, call: Call, arguments: Arguments) -> Commit | None:
    sha = entry.event.commit
    if sha is None:
        return None
    return entry.issue.repo.commits.get(sha) or Commit(sha, "", entry.event.actor, entry.event.at)


def actor_login(account: Account, call: Call, arguments: Arguments) -> str:
    """The login without the ``[bot]`` that only REST appends."""
    return account.login.removesuffix("[bot]")
