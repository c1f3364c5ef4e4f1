"""The table of GraphQL fields: (type, field) → how the fake reads it from its state."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from tests.fakes import graph_discussions as discussions
from tests.fakes import graph_fields as fields
from tests.fakes.discussions import message_url
from tests.fakes.exchange import Call
from tests.fakes.graph_fields import Arguments, Entry, Resolver
from tests.fakes.objects import node_id
from tests.fakes.state import Issue

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


def will_close(entry: Entry, call: Call) -> bool:
    source = entry.event.other
    return source is not None and source.pull is not None and entry.issue.number in source.pull.closes


def upper(path: str) -> Resolver:
    read = attribute(path)

    def resolve(source: Any, call: Call, arguments: Arguments) -> str | None:
        value = read(source, call, arguments)
        return value.upper().replace(" ", "_").replace("-", "_") if value else None

    return resolve


def pull_state(issue: Issue, call: Call) -> str:
    return "MERGED" if issue.pull and issue.pull.merged_at else issue.state.upper()


put("Query", repository=fields.find_repository, rateLimit=fields.rate_limit)
put("Mutation", minimizeComment=fields.minimize)
put("Mutation", addDiscussionComment=discussions.add_comment, updateDiscussionComment=discussions.update_comment)
put("Mutation", deleteDiscussionComment=discussions.delete_comment, addReaction=discussions.add_reaction)
put("Reaction", content=shape(lambda reaction, call: fields.CONTENTS[reaction.content]))
put("Repository", databaseId="id", nameWithOwner="full_name", isPrivate="private", visibility=upper("visibility"))
put("Repository", hasIssuesEnabled="has_issues", issues=fields.list_issues, issue=fields.find_issue)
put("Repository", issueOrPullRequest=fields.find_issue_or_pull)
put("Repository", hasDiscussionsEnabled="has_discussions")
put("Repository", discussions=discussions.list_discussions, discussion=discussions.find_discussion)

put("Issue PullRequest", number="number", title="title", repository="repo")
put("Issue Discussion", locked="locked", labels=fields.list_labels)
put("Issue", body=shape(lambda issue, call: issue.body or ""), state=upper("state"), stateReason=fields.state_reason)
put("Issue", comments=fields.list_comments, timelineItems=fields.list_timeline)
put("Issue", closedByPullRequestsReferences=fields.list_closing_pulls)
put("PullRequest", state=shape(pull_state), mergedAt="pull.merged_at", isDraft="pull.draft", files=fields.list_files)
put("PullRequest", body=shape(lambda pull, call: pull.body or ""), mergeCommit=fields.merge_commit)
put("PullRequestChangedFile", path="path")

TEXTS = "Issue IssueComment Discussion DiscussionComment"
put(TEXTS, author="author", authorAssociation="association", createdAt="created_at", updatedAt="updated_at")
put(TEXTS, reactionGroups=fields.reaction_groups)
put("IssueComment DiscussionComment", databaseId="id", body="body")
put("IssueComment DiscussionComment", isMinimized=shape(lambda comment, call: comment.minimized is not None))
put("Issue Discussion", closedAt="closed_at")

put("User Bot", login=fields.actor_login)
put("Commit", oid="sha")
EVENTS = " ".join(fields.EVENT_TYPES.values())
put(EVENTS, actor="event.actor", createdAt="event.at", isCrossRepository=shape(lambda entry, call: False))
put("ClosedEvent", closer=fields.closer)
put("CrossReferencedEvent", source="event.other", willCloseTarget=shape(will_close))
put("ReferencedEvent", commit=fields.commit_of)
put("MarkedAsDuplicateEvent", canonical="event.other")

put("Discussion", id=shape(lambda item, call: node_id("D", item.id)), number="number", title="title", body="body")
put("Discussion", repository="repo", closed="closed", stateReason=upper("state_reason"))
put("Discussion", category=shape(lambda item, call: {"name": item.category}), comments=discussions.list_top_comments)
put("Discussion", answer="answer", answerChosenAt="answered_at", answerChosenBy="answered_by")
put("DiscussionComment", id=shape(lambda item, call: node_id("DC", item.id)), deletedAt="deleted_at")
put("DiscussionComment", url=shape(lambda item, call: message_url(call.shapes, item)), replies=discussions.list_replies)
