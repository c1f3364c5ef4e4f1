"""Reads the current state of another repository: who may read it, and one of its threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.domain.thread import Thread
from bot.domain.thread_json import storable
from bot.github.app import visibility_of
from bot.github.client import GitHubClient
from bot.github.discussions import DISCUSSION_FIELDS, discussion_of
from bot.github.errors import CATCH_UP_REMEDY, Gone, NotPermitted, Unreachable
from bot.github.graphql_queries import ISSUE_FIELDS, LINKED_PULLS, issue_json
from bot.github.threads import OwnCommentRule, object_in, split_own, thread_of

Json = Mapping[str, Any]

_QUERY = """
query Foreign($owner: String!, $name: String!VARIABLES) {
  repository(owner: $owner, name: $name) { databaseId nameWithOwner isPrivate visibility THREAD }
}
"""
_NEWEST = "last: 60"
"""Which comments and events of an issue are read: the newest tell how it ended, and one answer has room for them."""

_ISSUE = f"thread: issue(number: $number) {{ repository {{ databaseId }} {ISSUE_FIELDS.replace('PART', _NEWEST)} }}"
_DISCUSSION = f"thread: discussion(number: $number) {{ repository {{ databaseId }} {DISCUSSION_FIELDS} }}"
_DISCUSSION_VARIABLES = {"comments": 20, "replies": 10, "further": None}


@dataclass(frozen=True, slots=True)
class ForeignRepository:
    """A repository as it is now; ``thread`` is None if it was not requested or does not exist (any more)."""

    id: int
    name: str
    visibility: Visibility
    thread: Thread | None = None


def read_repository(
    api: GitHubClient, name: str, own: OwnCommentRule, number: int = 0, kind: Kind = Kind.ISSUE
) -> ForeignRepository:
    """Read the repository ``name`` (``owner/name``) with its own token, and one of its issues or discussions.

    One request; ``number`` 0 reads no thread. Of a long thread it has the part that tells the ending, without our
    ``own`` comments. Raises Gone if the token cannot see the repository, else ForgeError.
    """
    repository = object_in(_query(api, name, number, kind).get("repository"))
    key, full_name, is_private = (
        repository.get("databaseId"),
        storable(repository.get("nameWithOwner")),
        repository.get("isPrivate"),
    )
    if not repository:
        raise Gone(f"the repository {name} is not visible", certain=False)
    if type(key) is not int or "/" not in full_name:
        raise Unreachable("GitHub sent an unexpected answer", CATCH_UP_REMEDY)
    visibility = visibility_of(str(repository.get("visibility")).lower(), private=is_private is not False)
    node = object_in(repository.get("thread"))
    # GitHub may find a transferred thread by its former number.
    is_same = node.get("number") == number and object_in(node.get("repository")).get("databaseId") == key
    return ForeignRepository(key, full_name, visibility, _thread(node, full_name, own, kind) if is_same else None)


def _query(api: GitHubClient, name: str, number: int, kind: Kind) -> Json:
    owner, _, short = name.partition("/")
    variables: dict[str, Any] = {"owner": owner, "name": short}
    if not number:
        return api.query(_QUERY.replace("VARIABLES", "").replace("THREAD", ""), variables, "metadata: read")
    if kind is Kind.DISCUSSION:
        types = ", $number: Int!, $comments: Int!, $replies: Int!, $further: String"
        text = _QUERY.replace("VARIABLES", types).replace("THREAD", _DISCUSSION)
        return api.query(text, {**variables, "number": number, **_DISCUSSION_VARIABLES}, "discussions: read")
    text = _QUERY.replace("VARIABLES", ", $number: Int!").replace("THREAD", _ISSUE)
    try:
        return api.query(text.replace("LINKED", LINKED_PULLS), {**variables, "number": number}, "issues: read")
    except NotPermitted:  # GitHub refuses any query for pull requests to a token that may not read them
        return api.query(text.replace("LINKED", ""), {**variables, "number": number}, "issues: read")


def _thread(node: Json, repo: str, own: OwnCommentRule, kind: Kind) -> Thread:
    try:
        if kind is Kind.DISCUSSION:
            return discussion_of(node, own)
        issue, comments, events = issue_json(node, repo)
        return thread_of(issue, split_own(comments, own)[0], events)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise Unreachable("GitHub sent an unexpected answer", CATCH_UP_REMEDY) from error
