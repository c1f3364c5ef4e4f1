"""Reads and writes our comments in discussions, with the same calls as `GitHubClient` has for issues."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bot.github.client import GitHubClient
from bot.github.discussions import MAX_COMMENT_PAGES
from bot.github.errors import CATCH_UP_REMEDY, ForgeError, Gone
from bot.github.graphql_queries import comment_json
from bot.github.threads import OwnComment, object_in, objects_in

Json = dict[str, Any]

PERMISSION = "discussions: write"

COMMENTS_QUERY = """
query Comments($owner: String!, $name: String!, $number: Int!, $further: String) {
  repository(owner: $owner, name: $name) {
    discussion(number: $number) {
      id
      comments(first: 100, after: $further) {
        pageInfo { hasNextPage endCursor }
        nodes {
          id databaseId url body createdAt updatedAt authorAssociation author { login __typename }
          reactionGroups { content reactors { totalCount } }
          replies(first: 20) { nodes { id databaseId } }
        }
      }
    }
  }
}
"""
ADD_COMMENT = """
mutation Add($input: AddDiscussionCommentInput!) {
  addDiscussionComment(input: $input) { comment { id databaseId url } }
}
"""
UPDATE_COMMENT = """
mutation Update($input: UpdateDiscussionCommentInput!) {
  updateDiscussionComment(input: $input) { comment { id databaseId url } }
}
"""
DELETE_COMMENT = """
mutation Delete($input: DeleteDiscussionCommentInput!) {
  deleteDiscussionComment(input: $input) { comment { id } }
}
"""
ADD_REACTION = """
mutation React($input: AddReactionInput!) {
  addReaction(input: $input) { reaction { content } }
}
"""


COUNT_QUERY = """
query Count($owner: String!, $name: String!) {
  repository(owner: $owner, name: $name) { discussions(first: 1) { totalCount } }
}
"""


def count_discussions(client: GitHubClient, repo: str) -> int | None:
    """How many discussions the repository has; None if the token may not see them or GitHub does not answer."""
    owner, _, name = repo.partition("/")
    try:
        result = client.query(COUNT_QUERY, {"owner": owner, "name": name}, "discussions: read")
    except ForgeError:
        return None
    count = object_in(object_in(result.get("repository")).get("discussions")).get("totalCount")
    return count if isinstance(count, int) else None


class DiscussionComments:
    """The comments in the discussions of one repository, without the replies to them: ours are never replies. A reply
    can ask, though, and gets a reaction if it is among the first twenty.

    GraphQL identifies comments by node id, so only one that was listed or written before can be changed.
    """

    def __init__(self, client: GitHubClient, repo: str) -> None:
        self._client = client
        self._owner, _, self._name = repo.partition("/")
        self._discussions: dict[int, str] = {}
        self._nodes: dict[int, str] = {}

    def has_listed(self, number: int) -> bool:
        """Whether comments of a discussion with this number were listed."""
        return number in self._discussions

    def comments(self, number: int) -> list[Json]:
        """Raises Gone, never certain, if there is no discussion with this number."""
        comments: list[Json] = []
        cursor: str | None = None
        for _ in range(MAX_COMMENT_PAGES):
            variables = {"owner": self._owner, "name": self._name, "number": number, "further": cursor}
            discussion = object_in(self._client.query(COMMENTS_QUERY, variables, PERMISSION).get("repository")).get(
                "discussion"
            )
            if discussion is None:
                raise Gone(f"there is no discussion {number}", certain=False)
            self._discussions[number] = str(discussion["id"])
            comments += map(self._remember, _listed(discussion["comments"]))
            page_info = discussion["comments"]["pageInfo"]
            cursor = page_info["endCursor"]
            if not page_info["hasNextPage"]:
                break
        return comments

    def timeline(self, number: int) -> list[Json]:
        """The comments as events. GitHub does not report comments that were deleted from a discussion."""
        return [{"event": "commented", **comment} for comment in self.comments(number)]

    def create_comment(self, number: int, text: str) -> OwnComment:
        if number not in self._discussions:
            self.comments(number)
        result = self._client.mutate(ADD_COMMENT, {"discussionId": self._discussions[number], "body": text}, PERMISSION)
        return self._own_comment(result, "addDiscussionComment", text)

    def update_comment(self, comment_id: int, text: str) -> OwnComment:
        result = self._client.mutate(UPDATE_COMMENT, {"commentId": self._node_id(comment_id), "body": text}, PERMISSION)
        return self._own_comment(result, "updateDiscussionComment", text)

    def delete_comment(self, comment_id: int) -> None:
        self._client.mutate(DELETE_COMMENT, {"id": self._node_id(comment_id)}, PERMISSION)

    def react(self, number: int, comment_id: int, content: str) -> None:
        if comment_id not in self._nodes:
            self.comments(number)
        fields = {"subjectId": self._node_id(comment_id), "content": content.upper()}
        self._client.mutate(ADD_REACTION, fields, PERMISSION, optional=True)

    def _node_id(self, comment_id: int) -> str:
        if comment_id not in self._nodes:
            raise Gone(f"there is no comment {comment_id} in the discussions that were read", certain=False)
        return self._nodes[comment_id]

    def _remember(self, node: Json) -> Json:
        for written in (node, *_listed(node["replies"])):
            self._nodes[int(written["databaseId"])] = str(written["id"])
        return {**comment_json(node), "html_url": node["url"]}

    def _own_comment(self, result: Json, name: str, text: str) -> OwnComment:
        comment = object_in(object_in(result.get(name)).get("comment"))
        key = comment.get("databaseId")
        if not isinstance(key, int):
            raise ForgeError("GitHub sent an unexpected answer", CATCH_UP_REMEDY)
        self._nodes[key] = str(comment.get("id") or "")
        return OwnComment(key, text, str(comment.get("url") or ""))


def _listed(connection: Json) -> Iterator[Json]:
    """The comments of a page; one that GitHub imported has no number."""
    return (node for node in objects_in(connection["nodes"]) if node["databaseId"])


CommentClient = GitHubClient | DiscussionComments
"""Reads and writes comments on threads of some kind, in the shapes of the REST API. Each call may raise ForgeError."""
