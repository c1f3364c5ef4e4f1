"""Converts rows of the inbox's tables to values and back, and counts what a run did."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from bot.domain.thread_json import storable
from bot.github.events import Event
from bot.server.model import Arrival, Delivery, Instant, RepositoryKey, Result, RunReport, RunRow
from bot.server.scope import EXCLUDED
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


def parse_run(row: Row) -> RunRow:
    return RunRow(
        id=row["id"],
        repository=RepositoryKey.of(row["repository"]),
        worker=row["worker"],
        began=row["began"],
        ended=row["ended"],
        stages=tuple((stage, seconds) for stage, seconds in json.loads(row["stages"])),
        pushes=tuple(json.loads(row["pushes"])),
        reads=row["reads"],
        writes=row["writes"],
        notes=tuple(json.loads(row["notes"])),
    )


def multi_row_values(rows: Sequence[Mapping[str, str | int]]) -> tuple[str, dict[str, str | int]]:
    """``(:id_0, …), (:id_1, …)`` for an insert of several rows, and the values by these names."""
    names = list(rows[0])
    groups = ", ".join("(" + ", ".join(f":{name}_{index}" for name in names) + ")" for index in range(len(rows)))
    return groups, {f"{name}_{index}": row[name] for index, row in enumerate(rows) for name in names}


MAX_SOLO_ATTEMPTS = 5
"""How often a delivery may begin alone without ending. One that began together with others may be innocent."""

NEVER_ENDED = f"it was begun alone {MAX_SOLO_ATTEMPTS} times and never ended"

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper bounds in seconds of the histogram of stages; one more bucket holds all longer ones."""

REASONS = (
    "memory has something to show",
    "nothing in memory is close enough",
    "memory holds no older issue",
    "nothing was due",
    "the comment already says that",
    "the comment was already posted",
    "it was handled together with a later delivery",
    "the event was processed",
    "somebody switched it off on this issue",
    "a person deleted the comment",
    "a person edited the comment",
    "it is already closed",
    "the conversation is locked",
    "its author is a bot or ignored",
    "its author asked to be left alone",
    "it carries an ignored label",
    "pull requests are not answered",
    "the mode is off",
    "the daily limit of comments is reached",
    "asked to search",
    "asked about an issue",
    "asked what was decided",
    "asked for the commands",
    "the request names no issue",
    "an issue was marked as unrelated",
    "an issue was marked as the same",
    "an issue was marked as different",
    "an issue was named as the original",
    "switched off on this issue",
    "switched on again on this issue",
    "asked for a new answer",
    "the issue was forgotten",
    "it showed an issue that was forgotten",
    "only an administrator of the repository may ask for that",
    "the account has used up its questions for this hour",
    "only its author or people with write access may ask for that",
    "the request was not understood",
    "GitHub accepts no comment here",
    "the token may not do this",
    "the App is active",
    "the App is no longer installed there",
    "the App is suspended there",
    "the App can no longer see this repository",
    "the repository was deleted",
    "the repository went to another account",
    EXCLUDED,
    NEVER_ENDED,
    "its run hung twice",
)
"""An answer's reason is counted under the entry it starts with, or else under "other"."""


def run_counters(results: Sequence[Result], report: RunReport) -> dict[tuple[str, tuple[str, ...]], float]:
    """The amounts that a run adds to the counters, by name and labels."""
    is_retried = any(result.state == "waiting" for result in results)
    counters: dict[tuple[str, tuple[str, ...]], float] = {}

    def add(name: str, *labels: str, amount: float = 1) -> None:
        counters[name, labels] = counters.get((name, labels), 0) + amount

    add("precedent_runs_total", "again" if is_retried else "done")
    for result in results:
        if result.state != "waiting":
            add("precedent_answers_total", result.said or result.state, _reason_label(result.reason))
    for stage, seconds in report.stages:
        add("precedent_stage_seconds_bucket", stage, _bucket(seconds))
        add("precedent_stage_seconds_sum", stage, amount=seconds)
        add("precedent_stage_seconds_count", stage)
    if report.pushes:
        add("precedent_pushes_total", amount=len(report.pushes))
    return counters


def _bucket(seconds: float) -> str:
    """The smallest bucket that holds it. Only that one is counted; buckets are summed when they are shown."""
    return next((str(end) for end in BUCKETS if seconds <= end), "+Inf")


def _reason_label(reason: str) -> str:
    return next((label for label in REASONS if reason.startswith(label)), "other" if reason else "")
