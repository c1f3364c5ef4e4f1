"""How each field of the GraphQL schema is read from the fake's state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from graphql import GraphQLError

from tests.fakes.exchange import Call
from tests.fakes.objects import from_node_id
from tests.fakes.paging import KeyedList, cached_view, decode_cursor, encode_cursor
from tests.fakes.state import (
    Account,
    Comment,
    Commit,
    Discussion,
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
Reactable = Issue | Comment | Discussion | DiscussionComment
Resolver = Callable[[Any, Call, Arguments], Any]
EVENT_TYPES = {
    "closed": "ClosedEvent",
    "reopened": "ReopenedEvent",
    "cross-referenced": "CrossReferencedEvent",
    "referenced": "ReferencedEvent",
    "marked_as_duplicate": "MarkedAsDuplicateEvent",
}
"""The events that a timeline can be asked for; the fake knows no others in GraphQL."""
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
    if isinstance(value, Account):
        return value.type
    return {Comment: "IssueComment", DiscussionComment: "DiscussionComment", Commit: "Commit"}[type(value)]


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
    try:
        low = listed.after(decode_cursor(arguments["after"])) if arguments.get("after") else 0
    except ValueError:
        text = f"`{arguments['after']}` does not appear to be a valid cursor."
        raise refuse("INVALID_CURSOR_ARGUMENTS", text) from None
    high = len(listed.items)
    start, end = (low, min(high, low + size)) if first is not None else (max(low, high - size), high)
    cursor = encode_cursor(listed.keys[end - 1]) if end > start else None
    page = {"endCursor": cursor, "hasNextPage": end < high}
    return {"nodes": listed.items[start:end], "totalCount": high, "pageInfo": page}


def check_permission(call: Call, need: str) -> None:
    if not call.server.allows(call.token, need):
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
    check_permission(call, "issues:read")
    order = arguments.get("orderBy") or {"field": "CREATED_AT", "direction": "ASC"}
    since = (arguments.get("filterBy") or {}).get("since")

    def make() -> KeyedList[Issue]:
        issues = repo.issues.values() if repo.has_issues else ()  # if switched off, they are silently hidden
        chosen = (each for each in issues if not each.pull and (not since or each.updated_at >= to_stamp(since)))
        return KeyedList.sort(chosen, order_key(order), order["direction"] == "DESC")

    return connect("issues", cached_view(call, ("graph", repo.id, repr(order), since), make), arguments)


def order_key(order: dict[str, Any]) -> Callable[[Issue | Discussion], str]:
    """The key for a list of issues or discussions by the time of creation or of the last change."""
    name = order["field"].lower()
    return lambda thread: f"{getattr(thread, name)}|{thread.number:09d}"


def find_issue(repo: Repository, call: Call, arguments: Arguments) -> Issue:
    check_permission(call, "issues:read")
    issue = repo.issues.get(arguments["number"])
    if issue is None or issue.pull:
        raise refuse("NOT_FOUND", f"Could not resolve to an Issue with the number of {arguments['number']}.")
    return issue


def find_issue_or_pull(repo: Repository, call: Call, arguments: Arguments) -> Issue:
    number = arguments["number"]
    thread = repo.issues.get(number)
    if thread is None:
        raise refuse("NOT_FOUND", f"Could not resolve to an issue or pull request with the number of {number}.")
    check_permission(call, "pull_requests:read" if thread.pull else "issues:read")
    return thread


def merge_commit(pull: Issue, call: Call, arguments: Arguments) -> Commit | None:
    assert pull.pull
    return pull.repo.commits.get(pull.pull.merge_commit or "")


def list_comments(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    return connect("comments", KeyedList.sort(issue.comments, lambda comment: f"{comment.id:012d}"), arguments)


def list_timeline(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    """The events of the requested types."""
    types = {name.replace("_", "").lower() for name in arguments["itemTypes"]}
    if unknown := types - {name.lower() for name in EVENT_TYPES.values()}:
        raise NotImplementedError(f"the fake has no timeline items {sorted(unknown)}")
    events = (event for event in in_order(issue) if isinstance(event, Event) and event.kind in EVENT_TYPES)
    entries = [Entry(issue, event) for event in events]
    shown = [entry for entry in entries if type_name(entry).lower() in types]
    listed = KeyedList([f"{entry.event.at}|{entry.event.id:012d}" for entry in shown], shown)
    return connect("timelineItems", listed, arguments)


def list_labels(issue: Issue | Discussion, call: Call, arguments: Arguments) -> dict[str, Any]:
    labels = [{"name": name} for name in issue.labels]
    return connect("labels", KeyedList([f"{i:06d}" for i in range(len(labels))], labels), arguments)


def list_closing_pulls(issue: Issue, call: Call, arguments: Arguments) -> dict[str, Any]:
    """Pull requests that close the issue: only open ones, unless closed ones are requested."""
    check_permission(call, "pull_requests:read")
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


def reaction_groups(holder: Reactable, call: Call, arguments: Arguments) -> list[dict[str, Any]]:
    return [_group(holder.reactions, rest, name) for rest, name in CONTENTS.items()]


def _group(reactions: Sequence[Reaction], content: str, name: str) -> dict[str, Any]:
    matching = [reaction for reaction in reactions if reaction.content == content]
    return {"content": name, "reactors": {"totalCount": len(matching)}}


def minimize(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    comment = _find_minimizable(call, arguments["input"]["subjectId"])
    comment.minimized = arguments["input"]["classifier"]
    return {"minimizedComment": comment}


def _find_minimizable(call: Call, node: str) -> Comment | DiscussionComment:
    is_in_discussion = node.startswith("DC_")
    check_permission(call, "discussions:write" if is_in_discussion else "issues:write")
    match: Comment | DiscussionComment = find_by_node("DC" if is_in_discussion else "IC", node, call)
    return match


def find_by_node(kind: str, node: str, call: Call) -> Any:
    """The comment (IC), discussion (D) or comment in one (DC) with this node id, in any repository."""
    try:
        found_kind, number = from_node_id(node)
    except ValueError:
        found_kind, number = "", 0
    repos = call.world.repositories.values()
    discussions = [each for repo in repos for each in repo.discussions.values()]
    candidates: dict[str, list[Any]] = {
        "IC": [comment for repo in repos for comment in repo.comments.values()],
        "D": discussions,
        "DC": [comment for each in discussions for comment in each.comments],
    }
    match = next((each for each in candidates[kind] if found_kind == kind and each.id == number), None)
    if match is None:
        raise refuse("NOT_FOUND", f"Could not resolve to a node with the global id of '{node}'")
    return match


def rate_limit(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    allowance = call.server.limits.allowance(call.token, "graphql")
    return {"limit": allowance.limit, "remaining": allowance.remaining, "resetAt": from_epoch(allowance.reset)}


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
