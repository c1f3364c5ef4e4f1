"""How the fields of discussions in the GraphQL schema are read from the fake's state."""

from __future__ import annotations

from typing import Any

from tests.fakes.discussions import ANSWERABLE, discussion_url, message_url
from tests.fakes.exchange import Call
from tests.fakes.graph_fields import Arguments, connect, list_labels, reaction_groups, refuse
from tests.fakes.graph_table import FIELDS as FIELDS  # noqa: PLC0414 - with those of this module
from tests.fakes.graph_table import lower, put, shape, upper
from tests.fakes.objects import from_node_id, node_id
from tests.fakes.paging import Keyed
from tests.fakes.state import Discussion, Repository, Said


def check(call: Call, level: str = "read") -> None:
    if not call.server.allows(call.token, f"discussions:{level}"):
        raise refuse("FORBIDDEN", "Resource not accessible by integration")


def list_discussions(repo: Repository, call: Call, arguments: Arguments) -> dict[str, Any]:
    check(call)
    order = arguments["orderBy"]

    def key(one: Discussion) -> str:
        return f"{one.updated_at if order['field'] == 'UPDATED_AT' else one.created_at}|{one.number:09d}"

    there = repo.discussions.values() if repo.has_discussions else ()
    return connect("discussions", Keyed.sort(list(there), key, order["direction"] == "DESC"), arguments)


def find_discussion(repo: Repository, call: Call, arguments: Arguments) -> Discussion:
    check(call)
    found = repo.discussions.get(arguments["number"]) if repo.has_discussions else None
    if found is None:
        number = arguments["number"]
        raise refuse("NOT_FOUND", f"Could not resolve to a Discussion with the number of {number}.")
    return found


def list_said(discussion: Discussion, call: Call, arguments: Arguments) -> dict[str, Any]:
    top = [said for said in discussion.comments if said.parent is None]
    return connect("comments", Keyed.sort(top, lambda said: f"{said.id:012d}"), arguments)


def list_replies(said: Said, call: Call, arguments: Arguments) -> dict[str, Any]:
    below = [one for one in said.discussion.comments if one.parent is said]
    return connect("replies", Keyed.sort(below, lambda one: f"{one.id:012d}"), arguments)


def category(discussion: Discussion, call: Call) -> dict[str, Any]:
    name = discussion.category
    shown = {"name": name, "slug": name.lower(), "isAnswerable": name == ANSWERABLE}
    return {"id": node_id("DIC", sum(name.encode())), **shown}


def find_by_node(kind: str, text: str, call: Call) -> Any:
    """The discussion (D) or comment in one (DC) with this node id, in any repository."""
    try:
        told, number = from_node_id(text)
    except ValueError:
        told, number = "", 0
    there = [one for repo in call.world.repositories.values() for one in repo.discussions.values()]
    among = there if kind == "D" else [said for one in there for said in one.comments]
    found = next((one for one in among if told == kind and one.id == number), None)
    if found is None:
        raise refuse("NOT_FOUND", f"Could not resolve to a node with the global id of '{text}'")
    return found


def add_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    asked = arguments["input"]
    check(call, "write")
    there = find_by_node("D", asked["discussionId"], call)
    if there.locked:
        raise refuse("FORBIDDEN", "Discussion is locked")
    parent = find_by_node("DC", asked["replyToId"], call) if asked.get("replyToId") else None
    moment, author = call.world.clock.stamp(None), call.account
    made = Said(call.world.next_id(), there, author, "NONE", asked["body"], moment, moment, parent=parent)
    there.comments.append(made)
    there.updated_at = max(there.updated_at, moment)
    return {"clientMutationId": asked.get("clientMutationId"), "comment": made}


def update_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    asked = arguments["input"]
    said = written_by(call, find_by_node("DC", asked["commentId"], call))
    said.body, said.updated_at = asked["body"], call.world.clock.stamp(None)
    said.discussion.updated_at = max(said.discussion.updated_at, said.updated_at)
    return {"clientMutationId": asked.get("clientMutationId"), "comment": said}


def delete_comment(_: Any, call: Call, arguments: Arguments) -> dict[str, Any]:
    asked = arguments["input"]
    said = written_by(call, find_by_node("DC", asked["id"], call))
    said.discussion.comments.remove(said)
    return {"clientMutationId": asked.get("clientMutationId"), "comment": said}


def written_by(call: Call, said: Said) -> Said:
    check(call, "write")
    if said.author is not call.account:
        raise refuse("FORBIDDEN", "Resource not accessible by integration")
    return said


put("Repository", hasDiscussionsEnabled="has_discussions", discussions=list_discussions, discussion=find_discussion)
put("Discussion", number="number", title="title", body="body", author="author", authorAssociation="association")
put("Discussion", databaseId="id", createdAt="created_at", updatedAt="updated_at", locked="locked", repository="repo")
put("Discussion", closed="closed", closedAt="closed_at", stateReason=upper("state_reason"), category=shape(category))
put("Discussion", answer="answer", answerChosenAt="answered_at", answerChosenBy="answered_by")
put("Discussion", isAnswered=shape(lambda one, call: one.answer is not None), comments=list_said, labels=list_labels)
put("Discussion", id=shape(lambda one, call: node_id("D", one.id)), reactionGroups=reaction_groups)
put("Discussion", url=shape(lambda one, call: discussion_url(call.shapes, one)))
put("DiscussionComment", databaseId="id", author="author", authorAssociation="association", body="body")
put("DiscussionComment", createdAt="created_at", updatedAt="updated_at", deletedAt="deleted_at", replyTo="parent")
put("DiscussionComment", discussion="discussion", replies=list_replies, reactionGroups=reaction_groups)
put("DiscussionComment", id=shape(lambda one, call: node_id("DC", one.id)))
put("DiscussionComment", isAnswer=shape(lambda one, call: one.discussion.answer is one))
put("DiscussionComment", url=shape(lambda one, call: message_url(call.shapes, one)))
put("DiscussionComment", isMinimized=shape(lambda one, call: one.minimized is not None))
put("DiscussionComment", minimizedReason=lower("minimized"))
put("Mutation", addDiscussionComment=add_comment, updateDiscussionComment=update_comment)
put("Mutation", deleteDiscussionComment=delete_comment)
