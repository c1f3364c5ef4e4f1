"""Reads the current state of another repository: who may read it, and one of its threads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bot.domain.kinds import Kind
from bot.domain.organisation import Visibility
from bot.domain.thread_json import MAX_TITLE, clean, parse_time, storable_text
from bot.github.app import visibility_of
from bot.github.client import GitHubClient
from bot.github.discussions import answered_at
from bot.github.errors import CATCH_UP_REMEDY, Gone, Unreachable
from bot.github.threads import object_in

Json = Mapping[str, Any]

_QUERY = """
query Foreign($owner: String!, $name: String!{number}) {{
  repository(owner: $owner, name: $name) {{ databaseId nameWithOwner isPrivate visibility {thread} }}
}}
"""
_THREAD_FIELDS = "number title createdAt closedAt repository { databaseId }"
_ISSUE_SELECTION = f"thread: issue(number: $number) {{ {_THREAD_FIELDS} state stateReason(enableDuplicate: true) }}"
_DISCUSSION_SELECTION = (
    f"thread: discussion(number: $number) {{ {_THREAD_FIELDS} closed stateReason"
    " author { login } answerChosenAt answer { author { login } } }"
)


@dataclass(frozen=True, slots=True)
class ForeignThread:
    """A thread of another repository as it is now."""

    title: str
    state: str
    created_at: datetime
    state_reason: str | None = None
    closed_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ForeignRepository:
    """A repository as it is now; ``thread`` is None if it was not requested or does not exist (any more)."""

    id: int
    name: str
    visibility: Visibility
    thread: ForeignThread | None = None


def read_repository(api: GitHubClient, name: str, number: int = 0, kind: Kind = Kind.ISSUE) -> ForeignRepository:
    """Read the repository ``name`` (``owner/name``) with its own token, and one of its issues or discussions.

    One request; ``number`` 0 reads no thread. Raises Gone if the token cannot see the repository, else ForgeError.
    """
    owner, _, short = name.partition("/")
    variables: dict[str, Any] = {"owner": owner, "name": short}
    needed, text = "metadata: read", _QUERY.format(number="", thread="")
    if number:
        needed, thread = (
            ("discussions: read", _DISCUSSION_SELECTION)
            if kind is Kind.DISCUSSION
            else ("issues: read", _ISSUE_SELECTION)
        )
        variables["number"], text = number, _QUERY.format(number=", $number: Int!", thread=thread)
    repository = object_in(api.query(text, variables, needed).get("repository"))
    key, full_name, is_private = (
        repository.get("databaseId"),
        clean(repository.get("nameWithOwner")),
        repository.get("isPrivate"),
    )
    if not repository:
        raise Gone(f"the repository {name} is not visible", certain=False)
    if type(key) is not int or "/" not in full_name:
        raise Unreachable("GitHub sent an unexpected answer", CATCH_UP_REMEDY)
    visibility = visibility_of(str(repository.get("visibility")).lower(), private=is_private is not False)
    return ForeignRepository(key, full_name, visibility, _thread(object_in(repository.get("thread")), key, number))


def _thread(node: Json, repository: int, number: int) -> ForeignThread | None:
    """The thread, unless it is a different one: GitHub may find a transferred thread by its former number."""
    is_same = node.get("number") == number and object_in(node.get("repository")).get("databaseId") == repository
    if not node or not is_same:
        return None
    chosen_at, reason = answered_at(node), node.get("stateReason")
    is_closed = bool(chosen_at) or node.get("closed") is True or node.get("state") == "CLOSED"
    closed_at = chosen_at or node.get("closedAt")
    try:
        return ForeignThread(
            storable_text(node.get("title"))[:MAX_TITLE],
            "closed" if is_closed else "open",
            parse_time(node.get("createdAt")),
            clean(reason).lower() if reason else None,
            parse_time(closed_at) if is_closed and closed_at else None,
        )
    except ValueError as error:
        raise Unreachable("GitHub sent an unexpected answer", CATCH_UP_REMEDY) from error
