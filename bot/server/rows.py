"""Rows of the database as nouns, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from bot.archive import clean
from bot.github.events import Event
from bot.server import bookkeeping
from bot.server.nouns import Arrival, Delivery, Instant, Lane, LaneRow, TurnRow

Row = Mapping[str, Any]


def written(value: object) -> str:
    """A list of ours as text."""
    return json.dumps(value, separators=(",", ":"))


def of_arrival(arrival: Arrival, next_at: Instant = 0) -> dict[str, str | int]:
    """The row of a delivery that nobody has begun; numbers that it has not are 0."""
    event = bookkeeping.kept(arrival.event)
    return {
        "id": arrival.id,
        "lane": arrival.lane.key,
        "event": event.name,
        "action": event.action,
        "number": event.number or 0,
        "is_pull": int(event.is_pull),
        "comment_id": event.comment_id or 0,
        "moved_to": event.moved_to or "",
        "name": clean(arrival.name),
        "private": int(arrival.private),
        "received_at": arrival.received_at,
        "next_at": next_at,
        "request": arrival.request,
        "extra": written([(name, clean(value)) for name, value in arrival.extra]),
    }


def of_settled(delivery: Delivery) -> dict[str, str | int]:
    """What a turn writes of a delivery."""
    return {
        "seq": delivery.seq,
        "turn": delivery.turn,
        "state": delivery.state,
        "reason": clean(delivery.reason),
        "next_at": delivery.next_at,
        "finished_at": delivery.finished_at,
        "attempts": delivery.attempts,
        "said": delivery.said,
        "url": clean(delivery.url),
        "matches": written(delivery.matches),
        "nearest": written(delivery.nearest),
    }


def delivery(row: Row) -> Delivery:
    """A row of ``deliveries``."""
    return Delivery(
        seq=row["seq"],
        id=row["id"],
        lane=Lane.of(row["lane"]),
        event=_event(row),
        name=row["name"],
        private=bool(row["private"]),
        state=row["state"],
        received_at=row["received_at"],
        attempts=row["attempts"],
        begun=row["begun"],
        next_at=row["next_at"],
        finished_at=row["finished_at"],
        turn=row["turn"],
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


def turn(row: Row) -> TurnRow:
    """A row of ``turns``."""
    return TurnRow(
        id=row["id"],
        ticket=row["ticket"],
        lane=Lane.of(row["lane"]),
        worker=row["worker"],
        began=row["began"],
        ended=row["ended"],
        stages=tuple((stage, seconds) for stage, seconds in json.loads(row["stages"])),
        pushes=tuple(json.loads(row["pushes"])),
        reads=row["reads"],
        writes=row["writes"],
        notes=tuple(json.loads(row["notes"])),
    )


def repository(row: Row) -> LaneRow:
    """A row of ``repositories``."""
    return LaneRow(
        lane=Lane.of(row["lane"]),
        name=row["name"],
        private=bool(row["private"]),
        cursor=row["cursor"],
        pushes=tuple(json.loads(row["pushes"])),
        last_turn=row["last_turn"],
        rate_left=row["rate_left"],
        backoff=row["backoff"],
    )


def numbered(values: Sequence[Mapping[str, str | int]]) -> tuple[str, dict[str, str | int]]:
    """``(:id_0, …), (:id_1, …)`` for an insert of several rows of one shape, and its values by these names."""
    names = list(values[0])
    groups = ", ".join("(" + ", ".join(f":{name}_{place}" for name in names) + ")" for place in range(len(values)))
    return groups, {f"{name}_{place}": row[name] for place, row in enumerate(values) for name in names}
