"""Finds the deliveries that never came, and requests them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from bot.github.app import App, DeliveryInfo
from bot.github.errors import ForgeError, RateLimited, Unauthorised, Unreachable
from bot.server.model import (
    MINUTE,
    Instant,
    RepositoryKey,
)
from bot.server.receive.webhook import EVENTS, REPOSITORY_EVENTS
from bot.server.storage.heartbeats import Heartbeats
from bot.server.storage.inbox import Inbox

REDELIVERY_HEARTBEAT = "lost"
"""The heartbeat that stores which deliveries were requested again."""

GITHUB_RETENTION = 3 * 24 * 60 * MINUTE
"""Milliseconds for which GitHub keeps a delivery.
https://docs.github.com/webhooks/using-webhooks/handling-failed-webhook-deliveries"""

OVERLAP = 10 * MINUTE
"""Deliveries this close before the last one seen are checked again, as they are not listed in strict order."""

MIN_DELIVERY_AGE = MINUTE
"""A younger delivery may be about to be answered."""

REDELIVERY_TIMEOUT = 5 * MINUTE
"""How long a redelivery may take."""

BATCH = 200
"""Deliveries that are requested before what was requested is stored."""

MAX_TRIES = 3
_MAX_REMEMBERED = 2_000


@dataclass(frozen=True, slots=True)
class PendingRedelivery:
    """A delivery that was requested again: its last attempt, how often and when."""

    attempt: int
    times: int
    asked_at: Instant


@dataclass(frozen=True, slots=True)
class MissedDeliveries:
    """The result of one search. ``repositories`` have answered deliveries that this database lacks: look at each once.

    ``given_up``: the ids of those that were requested three times and never came. ``trouble`` ended the search early.
    """

    asked: int = 0
    repositories: frozenset[RepositoryKey] = frozenset()
    given_up: tuple[str, ...] = ()
    trouble: str = ""


@dataclass(slots=True)
class _RedeliveryState:
    """Attempts up to ``until`` were checked, 0 for none. ``pending`` is by the id that all attempts share."""

    until: Instant = 0
    pending: dict[str, PendingRedelivery] = field(default_factory=dict)

    def give_up(self, now: Instant) -> tuple[str, ...]:
        """The deliveries that were requested often enough and did not come; each is named once."""
        found = [
            guid
            for guid, each in self.pending.items()
            if each.times == MAX_TRIES and now - each.asked_at >= REDELIVERY_TIMEOUT
        ]
        self.pending |= {guid: replace(self.pending[guid], times=MAX_TRIES + 1) for guid in found}
        return tuple(found)


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Searches GitHub's list of deliveries, and requests those again that were never stored, oldest first.

    A delivery that failed for GitHub may have been stored, with only its answer lost: it is left alone. So is one that
    was answered and dropped, which the list shows only as answered.
    """

    api: App
    inbox: Inbox
    app: int

    def request_missing(self, now: Instant) -> MissedDeliveries:
        """Request missing deliveries. Raises ForgeError if there is no list, WorldError without a database."""
        state = self._load()
        is_first, since = not state.until, max(state.until - OVERLAP, now - GITHUB_RETENTION)
        attempts = [each for each in self.api.deliveries(since) if each.event in EVENTS and each.guid]
        stored = self._stored_guids([each.guid for each in attempts])
        self._forget_arrived(state, now)
        latest = {each.guid: each for each in sorted(attempts, key=lambda each: each.id)}
        missing = [each for each in latest.values() if each.guid not in stored]
        result = self._redeliver(state, _failed_deliveries(missing, attempts, now), now)
        seen = [each.delivered_at for each in attempts]
        state.until = (state.until or since) if result.trouble else max(state.until, since, *seen)
        self._save(state)
        return replace(result, repositories=_repositories_of(missing) if is_first else frozenset())

    def _redeliver(self, state: _RedeliveryState, failed: Mapping[str, DeliveryInfo], now: Instant) -> MissedDeliveries:
        """Request the due deliveries, oldest first, and remember them."""
        requested, given_up = 0, state.give_up(now)
        attempts = {guid: each.attempt for guid, each in state.pending.items()}
        attempts |= {guid: each.id for guid, each in failed.items()}
        for guid, attempt in sorted(attempts.items(), key=lambda item: item[1]):
            earlier = state.pending.get(guid, PendingRedelivery(attempt, 0, 0))
            if earlier.times >= MAX_TRIES or now - earlier.asked_at < REDELIVERY_TIMEOUT:
                continue
            if requested and requested % BATCH == 0:
                self._forget_arrived(state, now)
                self._save(state)
            try:
                self.api.redeliver(attempt)
            except (RateLimited, Unreachable, Unauthorised) as error:
                return MissedDeliveries(requested, given_up=given_up, trouble=str(error))
            except ForgeError:  # it is gone for good
                state.pending[guid] = PendingRedelivery(attempt, MAX_TRIES, now)
                continue
            requested += 1
            state.pending[guid] = PendingRedelivery(attempt, earlier.times + 1, now)
        return MissedDeliveries(requested, given_up=given_up)

    def _forget_arrived(self, state: _RedeliveryState, now: Instant) -> None:
        """Forget the requests whose delivery has arrived, or is too old to be repeated."""
        stored = self._stored_guids(state.pending)
        state.pending = {guid: pending for guid, pending in state.pending.items()
                         if guid not in stored and pending.asked_at > now - GITHUB_RETENTION}  # fmt: skip

    def _stored_guids(self, guids: Iterable[str]) -> frozenset[str]:
        prefix = f"{self.app}:"
        return frozenset(
            name.removeprefix(prefix) for name in self.inbox.existing_ids([prefix + guid for guid in guids])
        )

    def _load(self) -> _RedeliveryState:
        _, note = Heartbeats(self.inbox.database, self.inbox.now).all().get(REDELIVERY_HEARTBEAT, (0, {}))
        try:
            listed = json.loads(str(note.get("owed", "{}")))
            pending = {str(guid): PendingRedelivery(*map(int, each)) for guid, each in listed.items()}
            return _RedeliveryState(int(note.get("until", 0)), pending)
        except (ValueError, TypeError, AttributeError):
            return _RedeliveryState()

    def _save(self, state: _RedeliveryState) -> None:
        """Store the newest requests, as many as there is room for."""
        newest = sorted(state.pending.items(), key=lambda item: item[1].asked_at)[-_MAX_REMEMBERED:]
        pending = json.dumps({guid: [each.attempt, each.times, each.asked_at] for guid, each in newest})
        Heartbeats(self.inbox.database, self.inbox.now).store(
            REDELIVERY_HEARTBEAT, {"until": state.until, "owed": pending}
        )


def _failed_deliveries(
    missing: Iterable[DeliveryInfo], attempts: Iterable[DeliveryInfo], now: Instant
) -> dict[str, DeliveryInfo]:
    """The missing deliveries that were never answered with success and are not under way."""
    answered = {each.guid for each in attempts if _is_answered(each)}
    return {
        each.guid: each for each in missing if each.guid not in answered and each.delivered_at < now - MIN_DELIVERY_AGE
    }


def _repositories_of(missing: Iterable[DeliveryInfo]) -> frozenset[RepositoryKey]:
    return frozenset(
        RepositoryKey(each.installation_id, each.repository_id)
        for each in missing
        if _is_answered(each) and each.event in REPOSITORY_EVENTS and each.installation_id and each.repository_id
    )


def _is_answered(attempt: DeliveryInfo) -> bool:
    return 200 <= attempt.status_code < 300
