"""How the fields of discussions in the GraphQL schema are read from the fake's state."""

from __future__ import annotations

from typing import Any

from tests.fakes.discussions import ANSWERABLE, discussion_url, message_url
from tests.fakes.exchange import Call
from tests.fakes.graph_fields import Arguments, connect, list_labels, reaction_groups, refuse
from tests.fakes.graph_table import FIELDS as FIELDS  # noqa: PLC0414 - with those of this module
from tests.fakes.graph_table import lower, put, shape, upper
from tests.fakes.objects import from_node_id, node_id
from tests.fakes.paging import KeyedList
from tests.fakes.state import Discussion, DiscussionComment, Repository


def check_permission(call: Call, level: str = "read") -> None:
    if not call.server.allows(call.token, f"discussions:{level}"):
        raise refuse("FORBIDDEN", "Resource not accessible by integration")


def list_discussions(repo: Repository, call: Call, arguments: Arguments) -> dict[str, Any]:
    check_permission(call)
    order = arguments["orderBy"]

    def key(item: Discussion) -> str:
        return f"{item.updated_at if order['field'] == 'UPDATED_AT' else item.created_at}|{item.number:09d}"

    discussions = repo.discussions.values() if repo.has_discussions else ()
    return connect("discussions", KeyedList.sort(list(discussions), key, order["direction"] == "DESC"), arguments)


def find_discussion(repo: Repository, call: Call, arguments: Arguments) -> Discussion:
    check_permission(call)
    match = repo.discussions.get(arguments["number"]) if repo.has_discussions else None
    if match is None:
        number = arguments["number"]
        raise refuse("NOT_FOUND", f"Could not resolve to a Discussion with the number of {number}.")
    return match


def list_top_comments(discussion: Discussion, call: Call, arguments: Arguments) -> dict[str, Any]:
    top = [comment for comment in discussion.comments if comment.parent is None]
    return connect("comments", KeyedList.sort(top, lambda comment: f"{comment.id:012d}"), arguments)


def list_replies(comment: DiscussionComment, call: Call, arguments: Arguments) -> dict[str, Any]:
    replies = [reply for reply in comment.discussion.comments if reply.parent is comment]
    return connect("replies", KeyedList.sort(replies, lambda reply: f"{reply.id:012d}"), arguments)


def category(discussion: Discussion, call: Call) -> dict[str, Any]:
    name = discussion.category
    shown = {"name": name, "slug": name.lower(), "isAnswerable": name == ANSWERABLE}
    return {"id": node_id("DIC", sum(name.encode())), **shown}


def find_by_node(kind: str, text: str, call: Call) -> Any:
    """The discussion (D) or comment in one (DC) with this node id, in any repository."""
    try:
        found_kind, number = from_node_id(text)
    except ValueError:
        found_kind, number = "", 0
    discussions = [each for repo in call.world.repositories.values() for each in repo.discussions.values()]
    candidates = discussions if kind == "D" else [comment for each in discussions for comment in each.comments]
    match = next((each for each in candidates if found_kind == kind and each.id == number), None)
    if match is None:
        raise refuse("NOT_FOUND", f"Could not resolve to a node with the global id of '{text}'")
    return match


def add_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    fields = arguments["input"]
    check_permission(call, "write")
    discussion = find_by_node("D", fields["discussionId"], call)
    if discussion.locked:
        raise refuse("FORBIDDEN", "Discussion is locked")
    parent = find_by_node("DC", fields["replyToId"], call) if fields.get("replyToId") else None
    moment, author = call.world.clock.stamp(None), call.account
    comment = DiscussionComment(
        call.world.next_id(), discussion, author, "NONE", fields["body"], moment, moment, parent=parent
    )
    discussion.comments.append(comment)
    discussion.updated_at = max(discussion.updated_at, moment)
    return {"clientMutationId": fields.get("clientMutationId"), "comment": comment}


def update_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    fields = arguments["input"]
    comment = check_author(call, find_by_node("DC", fields["commentId"], call))
    comment.body, comment.updated_at = fields["body"], call.world.clock.stamp(None)
    comment.discussion.updated_at = max(comment.discussion.updated_at, comment.updated_at)
    return {"clientMutationId": fields.get("clientMutationId"), "comment": comment}


def delete_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    fields = arguments["input"]
    comment = check_author(call, find_by_node("DC", fields["id"], call))
    comment.discussion.comments.remove(comment)
    return {"clientMutationId": fields.get("clientMutationId"), "comment": comment}


def check_author(call: Call, comment: DiscussionComment) -> DiscussionComment:
    check_permission(call, "write")
    if comment.author is not call.account:
        raise refuse("FORBIDDEN", "Resource not accessible by integration")
    return comment


put("Repository", hasDiscussionsEnabled="has_discussions", discussions=list_discussions, discussion=find_discussion)
put("Discussion", number="number", title="title", body="body", author="author", authorAssociation="association")
put("Discussion", databaseId="id", createdAt="created_at", updatedAt="updated_at", locked="locked", repository="repo")
put("Discussion", closed="closed", closedAt="closed_at", stateReason=upper("state_reason"), category=shape(category))
put("Discussion", answer="answer", answerChosenAt="answered_at", answerChosenBy="answered_by")
put(
    "Discussion",
    isAnswered=shape(lambda item, call: item.answer is not None),
    comments=list_top_comments,
    labels=list_labels,
)
put("Discussion", id=shape(lambda item, call: node_id("D", item.id)), reactionGroups=reaction_groups)
put("Discussion", url=shape(lambda item, call: discussion_url(call.shapes, item)))
put("DiscussionComment", databaseId="id", author="author", authorAssociation="association", body="body")
put("DiscussionComment", createdAt="created_at", updatedAt="updated_at", deletedAt="deleted_at", replyTo="parent")
put("DiscussionComment", discussion="discussion", replies=list_replies, reactionGroups=reaction_groups)
put("DiscussionComment", id=shape(lambda item, call: node_id("DC", item.id)))
put("DiscussionComment", isAnswer=shape(lambda item, call: item.discussion.answer is item))
put("DiscussionComment", url=shape(lambda item, call: message_url(call.shapes, item)))
put("DiscussionComment", isMinimized=shape(lambda item, call: item.minimized is not None))
put("DiscussionComment", minimizedReason=lower("minimized"))
put("Mutation", addDiscussionComment=add_comment, updateDiscussionComment=update_comment)
put("Mutation", deleteDiscussionComment=delete_comment)
