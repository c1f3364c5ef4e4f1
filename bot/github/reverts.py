"""Tells whether a fix was taken back later."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from bot.github.client import GitHubClient
from bot.github.errors import Gone, Invalid
from bot.github.fixes import sha_in, time_in
from bot.github.threads import object_in

MAX_COMMITS = 3
"""Later commits whose messages are read."""

_REVERTS = re.compile(r"(?:revert\W{1,4}){1,20}", re.IGNORECASE)
_REVERT = re.compile(r"revert", re.IGNORECASE)
_AGAIN = re.compile(r"re-?(?:appl|land)", re.IGNORECASE)


def was_reverted(timeline: Iterable[Mapping[str, Any]], since: datetime, forge: GitHubClient, commits: str) -> bool:
    """Whether the last change after ``since`` in these timelines that takes a fix back, or reapplies it, takes it
    back: a merged pull request or a commit, by the first word of its title.

    A timeline only has what names its issue or pull request. ``commits`` is the path of the repository's commits in
    the API. Raises ForgeError.
    """
    items = [*timeline]
    changes = [*_pulls(items, since), *_commits(items, since, forge, commits)]
    told = [takes for _, title in sorted(changes) if (takes := _takes_back(title)) is not None]
    return bool(told) and told[-1]


def _takes_back(title: str) -> bool | None:
    """Whether a change with this title takes another one back; None if it does neither that nor the opposite."""
    if reverts := _REVERTS.match(title):
        return len(_REVERT.findall(reverts[0])) % 2 == 1
    return False if _AGAIN.match(title) else None


def _pulls(items: Iterable[Mapping[str, Any]], since: datetime) -> Iterator[tuple[datetime, str]]:
    for item in items:
        if item.get("event") == "cross-referenced":
            source = object_in(object_in(item.get("source")).get("issue"))
            merged_at = time_in(object_in(source.get("pull_request")).get("merged_at"))
            if merged_at and merged_at > since:
                yield merged_at, str(source.get("title") or "")


def _commits(
    items: Iterable[Mapping[str, Any]], since: datetime, forge: GitHubClient, commits: str
) -> Iterator[tuple[datetime, str]]:
    found: dict[str, datetime] = {}
    for item in items:
        sha, at = sha_in(item.get("commit_id")), time_in(item.get("created_at"))
        is_here = str(item.get("commit_url") or "").lower().endswith(f"{commits}/{sha}".lower())
        if item.get("event") == "referenced" and is_here and sha and at and at > since:
            found[sha] = at
    for sha, at in sorted(found.items(), key=lambda each: each[1])[-MAX_COMMITS:]:
        try:
            answer = forge.get(f"{commits}/{sha}", {"per_page": 1})[1]
        except (Gone, Invalid):  # it was pushed over, and GitHub has it no more
            continue
        yield at, str(object_in(object_in(answer).get("commit")).get("message") or "")
