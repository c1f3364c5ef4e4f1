"""How the fields of discussions in the GraphQL schema are read from the fake's state."""

from __future__ import annotations

from typing import Any

from tests.fakes.exchange import Call
from tests.fakes.graph_fields import CONTENTS, Arguments, check_permission, connect, find_by_node, order_key, refuse
from tests.fakes.paging import KeyedList
from tests.fakes.state import Discussion, DiscussionComment, Reaction, Repository


def list_discussions(repo: Repository, call: Call, arguments: Arguments) -> dict[str, Any]:
    check_permission(call, "discussions:read")
    order = arguments["orderBy"]
    discussions = repo.discussions.values() if repo.has_discussions else ()
    listed = KeyedList.sort(discussions, order_key(order), order["direction"] == "DESC")
    return connect("discussions", listed, arguments)


def find_discussion(repo: Repository, call: Call, arguments: Arguments) -> Discussion:
    check_permission(call, "discussions:read")
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


def add_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    fields = arguments["input"]
    check_permission(call, "discussions:write")
    discussion = find_by_node("D", fields["discussionId"], call)
    if discussion.locked:
        raise refuse("FORBIDDEN", "Discussion is locked")
    parent = find_by_node("DC", fields["replyToId"], call) if fields.get("replyToId") else None
    moment, author = call.world.clock.stamp(None), call.account
    comment = DiscussionComment(
        call.world.next_id(), discussion, author, "NONE", fields["body"], moment, moment, parent=parent
    )
    discussion.comments.append(comment)
    discussion.touch(moment)
    return {"comment": comment}


def update_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    comment = _find_own(call, arguments["input"]["commentId"])
    comment.body, comment.updated_at = arguments["input"]["body"], call.world.clock.stamp(None)
    comment.discussion.touch(comment.updated_at)
    return {"comment": comment}


def delete_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    comment = _find_own(call, arguments["input"]["id"])
    comment.discussion.comments.remove(comment)
    return {"comment": comment}


def add_reaction(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    """The same reaction again is the one that is there."""
    fields = arguments["input"]
    check_permission(call, "discussions:write")
    comment: DiscussionComment = find_by_node("DC", fields["subjectId"], call)
    content = next(rest for rest, name in CONTENTS.items() if name == fields["content"])
    reaction = Reaction(call.world.next_id(), call.account, content, call.world.clock.now)
    if not any((old.author, old.content) == (reaction.author, content) for old in comment.reactions):
        comment.reactions.append(reaction)
    return {"reaction": reaction}


def _find_own(call: Call, node: str) -> DiscussionComment:
    comment: DiscussionComment = find_by_node("DC", node, call)
    check_permission(call, "discussions:write")
    if comment.author is not call.account:
        raise refuse("FORBIDDEN", "Resource not accessible by integration")
    return comment
