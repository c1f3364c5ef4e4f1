"""Converts rows of deliveries to values and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bot.domain.thread_json import storable
from bot.github.events import Event
from bot.server.model import Arrival, Delivery, Instant, RepositoryKey, Result
from bot.server.storage.database import Row, to_json


def arrival_columns(arrival: Arrival, next_at: Instant = 0) -> dict[str, str | int]:
    """The row of a new delivery; missing numbers are 0. It never holds a person's name."""
    event = arrival.event
    return {
        "id": arrival.id,
        "repository": arrival.repository.text,
        "event": storable(event.name),
        "action": storable(event.action),
        "number": event.number or 0,
        "is_pull": int(event.is_pull),
        "comment_id": event.comment_id or 0,
        "moved_to": storable(event.moved_to),
        "name": storable(arrival.name),
        "private": int(arrival.private),
        "received_at": arrival.received_at,
        "next_at": next_at,
        "request": arrival.request,
        "extra": to_json([(name, storable(value)) for name, value in arrival.extra]),
        "priority": int(arrival.priority),
    }


def result_columns(delivery: Delivery, result: Result, now: Instant) -> dict[str, str | int]:
    """The columns that a run writes for one of its deliveries."""
    is_waiting = result.state == "waiting"
    return {
        "seq": delivery.seq,
        "run": delivery.run,
        "state": result.state,
        "reason": storable(result.reason),
        "next_at": result.next_at if is_waiting else 0,
        "finished_at": 0 if is_waiting else now,
        "attempts": delivery.attempts + (is_waiting and result.counts),
        "said": result.said,
        "url": storable(result.url),
        "matches": to_json(result.matches),
        "nearest": to_json(result.nearest),
    }


def parse_delivery(row: Row) -> Delivery:
    return Delivery(
        seq=row["seq"],
        id=row["id"],
        repository=RepositoryKey.of(row["repository"]),
        event=_event(row),
        name=row["name"],
        private=bool(row["private"]),
        state=row["state"],
        received_at=row["received_at"],
        attempts=row["attempts"],
        begun=row["begun"],
        next_at=row["next_at"],
        finished_at=row["finished_at"],
        run=row["run"],
        reason=row["reason"],
        said=row["said"],
        url=row["url"],
        matches=tuple((number, similarity) for number, similarity in json.loads(row["matches"])),
        nearest=tuple((number, similarity, why) for number, similarity, why in json.loads(row["nearest"])),
        request=row["request"],
        extra=tuple((name, value) for name, value in json.loads(row["extra"])),
    )


def _event(row: Row) -> Event:
    return Event(
        name=row["event"],
        action=row["action"],
        number=row["number"] or None,
        is_pull=bool(row["is_pull"]),
        comment_id=row["comment_id"] or None,
        moved_to=row["moved_to"] or None,
    )


def multi_row_values(rows: Sequence[Mapping[str, str | int]]) -> tuple[str, dict[str, str | int]]:
    """``(:id_0, …), (:id_1, …)`` for an insert of several rows, and the values by these names."""
    names = list(rows[0])
    groups = ", ".join("(" + ", ".join(f":{name}_{index}" for name in names) + ")" for index in range(len(rows)))
    return groups, {f"{name}_{index}": row[name] for index, row in enumerate(rows) for name in names}


MAX_SOLO_ATTEMPTS = 5
"""How often a delivery may begin alone without ending. One that began together with others may be innocent."""

NEVER_ENDED = f"it was begun alone {MAX_SOLO_ATTEMPTS} times and never ended"
