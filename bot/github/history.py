"""A repository's whole history, oldest change first, in batches to be remembered one by one; by GraphQL or by REST."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any, Protocol

from bot.archive import parse_time
from bot.github.batch import Listed, read_each
from bot.github.catch_up import News, comments_of, has_ended
from bot.github.errors import HISTORY, RateLimited
from bot.github.forge import Reader
from bot.github.graphql import NoGraphQL
from bot.github.threads import Own, split_own, thread_of
from bot.model import Thread

KEPT = 100
"""Requests of an hour that a reading of history leaves to the events of that hour."""


class History(Protocol):
    """Everything that changed since a moment, in batches; the cursor of a batch is safe once it is remembered."""

    def since(self, moment: datetime | None) -> Iterator[News]: ...


class EitherHistory:
    """The first way where the server has it, else the other: an older company server has no GraphQL."""

    def __init__(self, graphql: History, rest: History, note: Callable[[str], None]) -> None:
        self._graphql, self._rest, self._note = graphql, rest, note

    def since(self, moment: datetime | None) -> Iterator[News]:
        """Batches. Raises ForgeError; what came before it is complete."""
        try:
            yield from self._graphql.since(moment)
        except NoGraphQL:
            self._note("This server has no GraphQL: history is read issue by issue, which takes longer.")
            yield from self._rest.since(moment)


class RestingHistory:
    """History that is not asked for, as it is known that ``limit`` is not over."""

    def __init__(self, limit: RateLimited) -> None:
        self._limit = limit

    def since(self, moment: datetime | None) -> Iterator[News]:  # noqa: ARG002 - none is asked for
        """Raises RateLimited."""
        raise self._limit


class RestHistory:
    """History by the REST API, for servers without GraphQL: a hundred issues a page, then each one's timeline."""

    def __init__(self, own: Own, reader: Reader) -> None:
        self._own = own
        self._reader = reader

    def since(self, moment: datetime | None) -> Iterator[News]:
        """Batches of a hundred threads or, where more changed within one second, more; oldest change first."""
        pages = 1
        while True:
            listed, complete = self._reader.issues_since(moment, pages)
            cursor = max((parse_time(issue["updated_at"]) for issue in listed), default=None)
            yield replace(read_each(_issues(listed), self._thread), cursor=cursor, complete=complete)
            if complete:
                return
            pages = 2 * pages if cursor == moment else 1  # more than a page can change within one second
            moment = cursor

    def _thread(self, issue: dict[str, Any]) -> Thread:
        keep_some(self._reader)
        events = self._reader.timeline(issue["number"]) if issue.get("comments") or has_ended(issue) else []
        return thread_of(issue, split_own(comments_of(events), self._own)[0], events)


def keep_some(reader: Reader) -> None:
    """Raise RateLimited before the hour's requests are used up: an event of this hour wants to be answered."""
    rate = reader.rate
    if rate and rate.left < min(KEPT, rate.limit // 2):
        told = "most of this hour's requests are used, the rest is left to new issues"
        raise RateLimited(told, until=rate.anew, resource=HISTORY)


def _issues(listed: list[dict[str, Any]]) -> dict[Listed, dict[str, Any]]:
    issues = (issue for issue in listed if not issue.get("pull_request"))
    return {
        Listed(issue["number"], parse_time(issue["created_at"]), parse_time(issue["updated_at"])): issue
        for issue in issues
    }
