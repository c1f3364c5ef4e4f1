"""The table of GraphQL fields: (type, field) → how the fake reads it from its state."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from tests.fakes import graph_fields as fields
from tests.fakes.exchange import Call
from tests.fakes.graph_fields import Arguments, Entry, Resolver
from tests.fakes.objects import node_id
from tests.fakes.state import Account, Comment, Commit, Issue, Repository

FIELDS: dict[tuple[str, str], Resolver] = {}


def attribute(path: str) -> Resolver:
    """Read an attribute of the state, dots allowed; a missing link on the way is null."""
    read = attrgetter(path)

    def resolve(source: Any, call: Call, arguments: Arguments) -> Any:
        try:
            return read(source)
        except AttributeError:
            return None

    return resolve


def shape(make: Any) -> Resolver:
    return lambda source, call, arguments: make(source, call)


def put(types: str, **resolvers: Resolver | str) -> None:
    """Add fields of one or more types; a string is the name of an attribute."""
    for name in types.split():
        for field, resolver in resolvers.items():
            FIELDS[name, field] = attribute(resolver) if isinstance(resolver, str) else resolver


def issue_url(issue: Issue, call: Call) -> str:
    return call.shapes.html_url(issue)


def comment_url(comment: Comment, call: Call) -> str:
    return f"{call.shapes.html_url(comment.issue)}#issuecomment-{comment.id}"


def account_url(account: Account, call: Call) -> str:
    shaped = call.shapes.account(account)
    assert shaped is not None
    return str(shaped["html_url"])


def edited_at(comment: Comment, call: Call) -> str | None:
    return comment.updated_at if comment.updated_at != comment.created_at else None


def will_close(entry: Entry, call: Call) -> bool:
    source = entry.event.other
    return source is not None and source.pull is not None and entry.issue.number in source.pull.closes


def upper(path: str) -> Resolver:
    read = attribute(path)

    def resolve(source: Any, call: Call, arguments: Arguments) -> str | None:
        value = read(source, call, arguments)
        return value.upper().replace(" ", "_").replace("-", "_") if value else None

    return resolve


def lower(path: str) -> Resolver:
    read = attribute(path)

    def resolve(source: Any, call: Call, arguments: Arguments) -> str | None:
        value = read(source, call, arguments)
        return value.lower() if value else None

    return resolve


def event_label(entry: Entry, call: Call) -> dict[str, Any]:
    label = call.shapes.label(entry.issue.repo, entry.event.detail or "")
    return label | {"id": label["node_id"]}


def commit_url(commit: Commit, call: Call) -> str:
    return f"{call.shapes.site}/{call.server.repo.full_name}/commit/{commit.sha}"


def repository_url(repo: Repository, call: Call) -> str:
    return f"{call.shapes.site}/{repo.full_name}"


def pull_state(issue: Issue, call: Call) -> str:
    return "MERGED" if issue.pull and issue.pull.merged_at else issue.state.upper()


def merge_commit(issue: Issue, call: Call) -> Commit | None:
    pull = issue.pull
    if pull is None or pull.merge_commit is None:
        return None
    return issue.repo.commits.get(pull.merge_commit) or Commit(
        pull.merge_commit, "", pull.merged_by, pull.merged_at or ""
    )


put("Query", repository=fields.find_repository, rateLimit=fields.rate_limit)
put("Query", viewer=lambda source, call, arguments: call.account)
put("Mutation", minimizeComment=fields.minimize, unminimizeComment=fields.unminimize)
put("Repository", databaseId="id", name="name", nameWithOwner="full_name", owner="owner", isPrivate="private")
put("Repository", visibility=upper("visibility"))
put("Repository", isArchived="archived", hasIssuesEnabled="has_issues", createdAt="created_at")
put("Repository", id=shape(lambda repo, call: node_id("R", repo.id)), url=shape(repository_url))
put("Repository", issues=fields.list_issues, issue=fields.find_issue("Issue"))
put("Repository", pullRequest=fields.find_issue("PullRequest"))
put("Repository", issueOrPullRequest=fields.find_issue("issue or pull request"))

put("Issue PullRequest", databaseId="id", fullDatabaseId="id", number="number", title="title", author="author")
put("Issue PullRequest", createdAt="created_at", updatedAt="updated_at", closedAt="closed_at", locked="locked")
put("Issue PullRequest", authorAssociation="association", repository="repo", url=shape(issue_url))
put("Issue PullRequest", body=shape(lambda issue, call: issue.body or ""))
put("Issue PullRequest", closed=shape(lambda issue, call: issue.state == "closed"))
put(
    "Issue PullRequest", labels=fields.list_labels, comments=fields.list_comments, reactionGroups=fields.reaction_groups
)
put(
    "Issue", id=shape(lambda issue, call: node_id("I", issue.id)), state=upper("state"), stateReason=fields.state_reason
)
put("Issue", timelineItems=fields.list_timeline, closedByPullRequestsReferences=fields.list_closing_pulls)
put("Issue", activeLockReason=upper("lock_reason"), lastEditedAt=shape(lambda issue, call: None))
put("PullRequest", id=shape(lambda issue, call: node_id("PR", issue.id)), state=shape(pull_state))
put("PullRequest", merged=shape(lambda issue, call: issue.pull.merged_at is not None), mergedAt="pull.merged_at")
put("PullRequest", mergeCommit=shape(merge_commit), changedFiles=shape(lambda issue, call: len(issue.pull.files)))

put("PullRequest", isDraft="pull.draft", files=fields.list_files)
put("PullRequestChangedFile", path="path", additions="additions", deletions="deletions")

put("IssueComment", databaseId="id", fullDatabaseId="id", author="author", authorAssociation="association")
put("IssueComment", body="body", createdAt="created_at", updatedAt="updated_at", issue="issue")
put("IssueComment", id=shape(lambda comment, call: node_id("IC", comment.id)), url=shape(comment_url))
put("IssueComment", reactionGroups=fields.reaction_groups, lastEditedAt=shape(edited_at))
put("IssueComment", isMinimized=shape(lambda comment, call: comment.minimized is not None))
put("IssueComment", minimizedReason=lower("minimized"))

ACTORS = "User Bot Organization Mannequin Actor RepositoryOwner"
put(ACTORS, login=fields.actor_login, databaseId="id", url=shape(account_url), name="login")
put(ACTORS, id=shape(lambda account, call: node_id("BOT" if account.type == "Bot" else "U", account.id)))
put(ACTORS, avatarUrl=shape(lambda account, call: f"https://avatars.githubusercontent.com/u/{account.id}?v=4"))
put(ACTORS, resourcePath=shape(lambda account, call: f"/{account.login}"))
put("Commit", id=shape(lambda commit, call: f"C_{commit.sha}"), oid="sha", message="message", committedDate="at")
put("Commit", abbreviatedOid=shape(lambda commit, call: commit.sha[:7]), url=shape(commit_url))
put("Commit", messageHeadline=shape(lambda commit, call: commit.message.split("\n")[0]))

EVENTS = " ".join(fields.EVENT_TYPES.values())
put(EVENTS, actor="event.actor", createdAt="event.at", isCrossRepository=shape(lambda entry, call: False))
put(EVENTS, id=shape(lambda entry, call: node_id("EV", entry.event.id)))
put("ClosedEvent", closer=fields.closer)
put("ClosedEvent ReopenedEvent", stateReason=upper("event.detail"))
put("CrossReferencedEvent", source="event.other", target="issue", referencedAt="event.at")
put(
    "CrossReferencedEvent", willCloseTarget=shape(will_close), url=shape(lambda e, call: issue_url(e.event.other, call))
)
put("ReferencedEvent", commit=fields.commit_of, isDirectReference=shape(lambda entry, call: True))
put("MarkedAsDuplicateEvent UnmarkedAsDuplicateEvent", canonical="event.other", duplicate="issue")
put("LabeledEvent UnlabeledEvent", label=shape(event_label))
put("LockedEvent", lockReason=upper("event.detail"))
put("RenamedTitleEvent", previousTitle=shape(lambda entry, call: entry.event.renamed[0]))
put("RenamedTitleEvent", currentTitle=shape(lambda entry, call: entry.event.renamed[1]))
put("CommentDeletedEvent", deletedCommentAuthor=shape(lambda entry, call: None))
