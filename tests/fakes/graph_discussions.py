"""How the fields of discussions in the GraphQL schema are read from the fake's state."""

from __future__ import annotations

from typing import Any

from tests.fakes.discussions import ANSWERABLE, discussion_url, said_url
from tests.fakes.exchange import Call
from tests.fakes.graph_fields import Arguments, connect, list_labels, reaction_groups, refuse
from tests.fakes.graph_table import FIELDS as FIELDS  # noqa: PLC0414 - with those of this module
from tests.fakes.graph_table import put, shape, upper
from tests.fakes.objects import node_id
from tests.fakes.paging import Keyed
from tests.fakes.state import Discussion, Repository, Said


def check(call: Call) -> None:
    if not call.server.allows(call.token, "discussions:read"):
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
put("DiscussionComment", url=shape(lambda one, call: said_url(call.shapes, one)))
put("DiscussionComment", isMinimized=shape(lambda one, call: False), minimizedReason=shape(lambda one, call: None))
