"""Deliveries that GitHub sent and we did not store: each is requested again a few times."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bot.github.app import App, DeliveryInfo
from bot.github.errors import ForgeError, RateLimited, Unauthorised, Unreachable
from bot.server.inbox import Inbox
from bot.server.model import MINUTE, Instant, RepositoryKey
from bot.server.webhook import EVENTS, OF_REPOSITORY

HEARTBEAT = "lost"
"""The heartbeat that stores the state of this module."""

SHOWN = 3 * 24 * 60 * MINUTE
"""Milliseconds that GitHub keeps a delivery for.
https://docs.github.com/webhooks/using-webhooks/handling-failed-webhook-deliveries"""

AGAIN = 10 * MINUTE
"""Deliveries this close before the last one seen are checked again, as they are not listed in strict order."""

UNDER_WAY = MINUTE
"""A younger delivery may be about to be answered."""

PATIENCE = 5 * MINUTE
"""How long a redelivery may take."""

MOST = 200
"""Deliveries that one resync requests."""

TRIES = 3
_REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class PendingRedelivery:
    """A delivery that was requested again: its last attempt, how often and when."""

    attempt: int
    times: int
    asked_at: Instant


@dataclass(frozen=True, slots=True)
class MissedDeliveries:
    """The result of one search. ``lanes`` have answered deliveries that this database lacks: look at each once.

    ``given_up``: the ids of those that were requested three times and never came. ``trouble`` ended the search early.
    """

    asked: int = 0
    lanes: frozenset[RepositoryKey] = frozenset()
    given_up: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(slots=True)
class _Memory:
    """Attempts up to ``until`` were checked, 0 for none. ``owed`` is by the id that all attempts share."""

    until: Instant = 0
    owed: dict[str, PendingRedelivery] = field(default_factory=dict)

    def give_up(self, now: Instant) -> tuple[str, ...]:
        """The deliveries that were requested often enough and did not come; each is named once."""
        found = [guid for guid, each in self.owed.items() if each.times == TRIES and now - each.asked_at >= PATIENCE]
        self.owed |= {guid: replace(self.owed[guid], times=TRIES + 1) for guid in found}
        return tuple(found)


class Redelivery:
    """Searches GitHub's list of deliveries, and requests those again that were never stored, oldest first.

    A delivery that failed for GitHub may have been stored, with only its answer lost: it is left alone. So is one that
    was answered and dropped, which the list shows only as answered.
    """

    def __init__(self, api: App, inbox: Inbox, app: int) -> None:
        self._api = api
        self._inbox = inbox
        self._app = app

    def ask(self, now: Instant) -> MissedDeliveries:
        """Request missing deliveries. Raises ForgeError if there is no list, WorldError without a database."""
        memory = self._recall()
        is_first, since = not memory.until, max(memory.until - AGAIN, now - SHOWN)
        attempts = [each for each in self._api.deliveries(since) if each.event in EVENTS and each.guid]
        stored = self._stored([*(each.guid for each in attempts), *memory.owed])
        memory.owed = {guid: owed for guid, owed in memory.owed.items()
                       if guid not in stored and owed.asked_at > now - SHOWN}  # fmt: skip
        latest = {each.guid: each for each in sorted(attempts, key=lambda each: each.id)}
        missing = [each for each in latest.values() if each.guid not in stored]
        found = self._redeliver(memory, _failed(missing, attempts, now), now)
        seen = [each.delivered_at for each in attempts]
        memory.until = (memory.until or since) if found.trouble else max(memory.until, since, *seen)
        self._keep(memory)
        return replace(found, lanes=_lanes(missing) if is_first else frozenset())

    def _redeliver(self, memory: _Memory, failed: Mapping[str, DeliveryInfo], now: Instant) -> MissedDeliveries:
        """Request the due deliveries, oldest first and at most MOST, and remember them."""
        asked, given_up = 0, memory.give_up(now)
        wanted = {guid: each.attempt for guid, each in memory.owed.items()}
        wanted |= {guid: each.id for guid, each in failed.items()}
        for guid, attempt in sorted(wanted.items(), key=lambda item: item[1]):
            before = memory.owed.get(guid, PendingRedelivery(attempt, 0, 0))
            if before.times >= TRIES or now - before.asked_at < PATIENCE:
                continue
            if asked >= MOST:
                return MissedDeliveries(asked, given_up=given_up, trouble=f"more than {MOST} deliveries are missing")
            try:
                self._api.redeliver(attempt)
            except (RateLimited, Unreachable, Unauthorised) as error:
                return MissedDeliveries(asked, given_up=given_up, trouble=str(error))
            except ForgeError:  # it is gone for good
                memory.owed[guid] = PendingRedelivery(attempt, TRIES, now)
                continue
            asked += 1
            memory.owed[guid] = PendingRedelivery(attempt, before.times + 1, now)
        return MissedDeliveries(asked, given_up=given_up)

    def _stored(self, guids: Iterable[str]) -> frozenset[str]:
        prefix = f"{self._app}:"
        return frozenset(name.removeprefix(prefix) for name in self._inbox.known([prefix + guid for guid in guids]))

    def _recall(self) -> _Memory:
        _, note = self._inbox.heartbeats().get(HEARTBEAT, (0, {}))
        try:
            listed = json.loads(str(note.get("owed", "{}")))
            owed = {str(guid): PendingRedelivery(*map(int, each)) for guid, each in listed.items()}
            return _Memory(int(note.get("until", 0)), owed)
        except (ValueError, TypeError, AttributeError):
            return _Memory()

    def _keep(self, memory: _Memory) -> None:
        """Store the newest requests, as many as there is room for."""
        kept = sorted(memory.owed.items(), key=lambda item: item[1].asked_at)[-_REMEMBERED:]
        owed = json.dumps({guid: [each.attempt, each.times, each.asked_at] for guid, each in kept})
        self._inbox.heartbeat(HEARTBEAT, {"until": memory.until, "owed": owed})


def _failed(missing: Iterable[DeliveryInfo], attempts: Iterable[DeliveryInfo], now: Instant) -> dict[str, DeliveryInfo]:
    """The missing deliveries that were never answered with success and are not under way."""
    answered = {each.guid for each in attempts if _is_answered(each)}
    return {each.guid: each for each in missing if each.guid not in answered and each.delivered_at < now - UNDER_WAY}


def _lanes(missing: Iterable[DeliveryInfo]) -> frozenset[RepositoryKey]:
    return frozenset(
        RepositoryKey(each.installation_id, each.repository_id)
        for each in missing
        if _is_answered(each) and each.event in OF_REPOSITORY and each.installation_id and each.repository_id
    )


def _is_answered(attempt: DeliveryInfo) -> bool:
    return 200 <= attempt.status_code < 300
