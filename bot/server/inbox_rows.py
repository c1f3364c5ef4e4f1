"""Rows of the inbox's tables as values, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bot.domain.thread_json import clean
from bot.github.events import Event
from bot.server.database import Row, written
from bot.server.model import Arrival, Delivery, Instant, RepositoryKey, Result, RunRow


def of_arrival(arrival: Arrival, next_at: Instant = 0) -> dict[str, str | int]:
    """The row of a delivery that nobody has begun; numbers that it has not are 0. No name of a person is kept."""
    event = arrival.event
    return {
        "id": arrival.id,
        "lane": arrival.lane.key,
        "event": clean(event.name),
        "action": clean(event.action),
        "number": event.number or 0,
        "is_pull": int(event.is_pull),
        "comment_id": event.comment_id or 0,
        "moved_to": clean(event.moved_to),
        "name": clean(arrival.name),
        "private": int(arrival.private),
        "received_at": arrival.received_at,
        "next_at": next_at,
        "request": arrival.request,
        "extra": written([(name, clean(value)) for name, value in arrival.extra]),
    }


def of_result(delivery: Delivery, result: Result, now: Instant) -> dict[str, str | int]:
    """What a run writes of a delivery that it had."""
    waits = result.state == "waiting"
    return {
        "seq": delivery.seq,
        "turn": delivery.turn,
        "state": result.state,
        "reason": clean(result.reason),
        "next_at": result.next_at if waits else 0,
        "finished_at": 0 if waits else now,
        "attempts": delivery.attempts + (waits and result.counts),
        "said": result.said,
        "url": clean(result.url),
        "matches": written(result.matches),
        "nearest": written(result.nearest),
    }


def delivery_row(row: Row) -> Delivery:
    """A row of ``deliveries``."""
    return Delivery(
        seq=row["seq"],
        id=row["id"],
        lane=RepositoryKey.of(row["lane"]),
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


def run_row(row: Row) -> RunRow:
    """A row of ``turns``."""
    return RunRow(
        id=row["id"],
        ticket=row["ticket"],
        lane=RepositoryKey.of(row["lane"]),
        worker=row["worker"],
        began=row["began"],
        ended=row["ended"],
        stages=tuple((stage, seconds) for stage, seconds in json.loads(row["stages"])),
        pushes=tuple(json.loads(row["pushes"])),
        reads=row["reads"],
        writes=row["writes"],
        notes=tuple(json.loads(row["notes"])),
    )


def numbered(values: Sequence[Mapping[str, str | int]]) -> tuple[str, dict[str, str | int]]:
    """``(:id_0, …), (:id_1, …)`` for an insert of several rows of one shape, and its values by these names."""
    names = list(values[0])
    groups = ", ".join("(" + ", ".join(f":{name}_{place}" for name in names) + ")" for place in range(len(values)))
    return groups, {f"{name}_{place}": row[name] for place, row in enumerate(values) for name in names}
