"""Reads discussions, which only GitHub's GraphQL API has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from bot.domain.kinds import Kind
from bot.domain.thread import Thread
from bot.domain.thread_json import ANSWERED, parse_time, thread_from_archive
from bot.github.budget import MIN_RESERVE
from bot.github.errors import CATCH_UP_REMEDY, ForgeError, Gone, NotPermitted, Unreachable, permission_remedy
from bot.github.graphql_queries import comment_json, user_json
from bot.github.history import GraphQLHistory
from bot.github.threads import OwnCommentRule, message_fields, split_own

Json = dict[str, Any]

PAGE_SIZES = (20, 5)
"""Discussions per request: fewer if the server could not answer within its ten seconds. Twenty with thirty comments
each, and their replies, cost seven points, out of 5,000 an hour.
https://docs.github.com/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api"""

MAX_COMMENT_PAGES = 20
"""Pages of fifty comments, each with a hundred replies, that are read from one discussion. Later ones are left out."""

_COMMENT_FIELDS = """
            databaseId body createdAt updatedAt deletedAt authorAssociation author { login __typename }
            reactionGroups { content reactors { totalCount } }"""
DISCUSSION_FIELDS = """
        number title body locked closed closedAt stateReason createdAt updatedAt authorAssociation
        author { login __typename } category { name } labels(first: 50) { nodes { name } }
        answerChosenAt answerChosenBy { login __typename } answer { COMMENT }
        comments(first: $comments, after: $further) {
          pageInfo { hasNextPage endCursor }
          nodes { COMMENT replies(first: $replies) { pageInfo { hasNextPage } nodes { COMMENT } } }
        }""".replace("COMMENT", _COMMENT_FIELDS)

LIST_QUERY = """
query Discussions(
  $owner: String!, $name: String!, $first: Int!, $after: String, $direction: OrderDirection!,
  $comments: Int!, $replies: Int!, $further: String
) {
  repository(owner: $owner, name: $name) {
    hasDiscussionsEnabled
    discussions(first: $first, after: $after, orderBy: {field: UPDATED_AT, direction: $direction}) {
      pageInfo { hasNextPage endCursor }
      nodes { DISCUSSION }
    }
  }
}
""".replace("DISCUSSION", DISCUSSION_FIELDS)

DISCUSSION_QUERY = """
query Discussion(
  $owner: String!, $name: String!, $number: Int!, $comments: Int!, $replies: Int!, $further: String
) {
  repository(owner: $owner, name: $name) {
    discussion(number: $number) { DISCUSSION }
  }
}
""".replace("DISCUSSION", DISCUSSION_FIELDS)

_LIST_VARIABLES = {"comments": 30, "replies": 10, "further": None}
_SINGLE_VARIABLES = {"comments": 50, "replies": 100}


class DiscussionPage(NamedTuple):
    """A page of the list of discussions; the next one begins at ``after``, which is "" on the last page.

    ``are_on``: whether the repository has discussions switched on.
    """

    threads: tuple[Thread, ...]
    after: str = ""
    are_on: bool = True


class DiscussionReader:
    """The discussions of one repository, each with all its comments and their replies, oldest first."""

    def __init__(self, graphql: GraphQLHistory, own: OwnCommentRule) -> None:
        self._graphql, self._own = graphql, own

    def page(self, after: str) -> DiscussionPage:
        """The next page of the list, oldest change first. A discussion that changes meanwhile appears again later.

        Raises ForgeError.
        """
        return self._page(after, "ASC")

    def newest(self, since: datetime) -> Iterator[DiscussionPage]:
        """Yield the list by pages, newest change first; discussions that changed before ``since`` may lack comments.

        Raises ForgeError.
        """
        after = ""
        while True:
            yield (page := self._page(after, "DESC", since))
            if not page.after:
                return
            after = page.after

    def read_one(self, number: int) -> Thread:
        """Read one discussion. Raises ForgeError: for an unknown number Gone, never certain."""
        node = self._fetch_node(number, {**_SINGLE_VARIABLES, "further": None})
        return discussion_of(self._with_all_comments(node) if _is_incomplete(node) else node, self._own)

    def _page(self, after: str, direction: str, since: datetime | None = None) -> DiscussionPage:
        self._graphql.keep_reserve(MIN_RESERVE)
        fault: ForgeError | None = None
        for size in PAGE_SIZES:
            try:
                variables = {"first": size, "after": after or None, "direction": direction, **_LIST_VARIABLES}
                repository = self._query(LIST_QUERY, variables, repeats=size == PAGE_SIZES[-1])
            except Unreachable as error:  # too much for one answer
                fault = error
                continue
            listed = repository["discussions"] or {"nodes": [], "pageInfo": {"hasNextPage": False}}
            page_info = listed["pageInfo"]
            nodes = [
                self._with_all_comments(node) if _needs_comments(node, since) else node
                for node in listed["nodes"]
                if node
            ]
            after_this = str(page_info["endCursor"] or "") if page_info["hasNextPage"] else ""
            threads = tuple(discussion_of(node, self._own) for node in nodes)
            return DiscussionPage(threads, after_this, bool(repository["hasDiscussionsEnabled"]))
        raise fault or Unreachable("discussions could not be read", CATCH_UP_REMEDY)

    def _query(self, query: str, variables: Json, *, is_list: bool = True, repeats: bool = True) -> Json:
        try:
            data = self._graphql.query_repository(query, variables, is_list=is_list, repeats=repeats)
        except NotPermitted as error:
            raise NotPermitted("the token may not read discussions", permission_remedy("discussions: read")) from error
        repository: Json = data["repository"]
        return repository

    def _fetch_node(self, number: int, variables: Json) -> Json:
        node: Json | None = self._query(DISCUSSION_QUERY, {"number": number, **variables}, is_list=False)["discussion"]
        if node is None:
            raise Gone(f"there is no discussion {number}", certain=False)
        return node

    def _with_all_comments(self, node: Json) -> Json:
        """The discussion with the comments that the first answer left out."""
        comments: list[Json] = []
        cursor: str | None = None
        for _ in range(MAX_COMMENT_PAGES):
            self._graphql.keep_reserve()
            page = self._fetch_node(node["number"], {**_SINGLE_VARIABLES, "further": cursor})["comments"]
            comments += page["nodes"]
            cursor = page["pageInfo"]["endCursor"]
            if not page["pageInfo"]["hasNextPage"]:
                break
        return {**node, "comments": {"nodes": comments}}


def discussion_of(node: Mapping[str, Any], own: OwnCommentRule) -> Thread:
    """Convert a discussion with `DISCUSSION_FIELDS`, without our ``own`` comments."""
    comments, _ = split_own(_comments(node), own)
    return thread_from_archive({**_fields(node), "comments": [message_fields(comment) for comment in comments]})


def _needs_comments(node: Json, since: datetime | None) -> bool:
    """Whether some of its comments are missing and it changed at ``since`` or later."""
    return _is_incomplete(node) and (since is None or parse_time(node["updatedAt"]) >= since)


def _is_incomplete(node: Json) -> bool:
    comments = node["comments"]
    replies = (comment["replies"] for comment in comments["nodes"] if comment)
    return bool(comments["pageInfo"]["hasNextPage"]) or any(reply["pageInfo"]["hasNextPage"] for reply in replies)


def _comments(node: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Comments and replies in the shape of REST, the marked answer included, each once. Deleted comments are left out,
    but not the replies to them."""
    answer, seen = node.get("answer"), set[int]()
    for top in (*node["comments"]["nodes"], *([answer] if answer else [])):
        for item in (top, *(top.get("replies") or {"nodes": []})["nodes"]) if top else ():
            number = item["databaseId"] if item else None
            if number and not item.get("deletedAt") and number not in seen:
                seen.add(number)
                yield comment_json(item)


def answered_at(node: Mapping[str, Any]) -> str | None:
    """When an answer was marked. The words of the discussion's author are none, whoever marked them; nor are those of a
    deleted account, if the author's is deleted too."""
    answer, chosen_at = node.get("answer"), node.get("answerChosenAt")
    author, answerer = (((one or {}).get("author") or {}).get("login") for one in (node, answer))
    return str(chosen_at) if chosen_at and (answer is None or answerer != author) else None


def _fields(node: Mapping[str, Any]) -> dict[str, Any]:
    """The discussion in the shape of an archive, without its comments. Its category is one of its labels."""
    author, chosen_at = user_json(node["author"]) or {}, answered_at(node)
    category, labels = node.get("category") or {}, (node.get("labels") or {}).get("nodes") or ()
    chosen_by = (user_json(node.get("answerChosenBy")) or {}).get("login")
    reason = str(node.get("stateReason") or "").lower() or None
    answer = node.get("answer") or {}
    event = {"event": ANSWERED, "at": chosen_at, "actor": chosen_by, "comment": answer.get("databaseId")}
    is_over = bool(chosen_at or node["closed"])
    return {
        "id": node["number"],
        "kind": Kind.DISCUSSION.value,
        "title": node["title"],
        "body": node["body"],
        "author": author.get("login"),
        "author_association": node["authorAssociation"],
        "is_bot": author.get("type") == "Bot",
        "created_at": node["createdAt"],
        "updated_at": node["updatedAt"],
        "state": "closed" if is_over else "open",
        "state_reason": ANSWERED if chosen_at else reason,
        "closed_at": chosen_at or node.get("closedAt"),
        "closed_by": chosen_by if chosen_at else None,
        "locked": node["locked"],
        "labels": [label["name"] for label in (category, *labels) if label and label.get("name")],
        "events": [event] if chosen_at else [],
    }


def changed_since(page: DiscussionPage, moment: datetime) -> tuple[Thread, ...]:
    return tuple(thread for thread in page.threads if thread.revised_at >= moment)
