"""The rules of the ledger, whatever it is kept in: what a turn takes, what becomes of it, what is counted."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from bot.domain.thread_json import clean
from bot.github.events import Event
from bot.server.model import Arrival, Delivery, Instant, PendingWork, RepositoryKey, RepositoryRow, Result, RunReport

MOST_AT_ONCE = 50
"""Deliveries that one turn takes."""

MOST_BEGUN = 20
NEVER_ENDED = f"it was begun {MOST_BEGUN} times and never ended"

LAST_PUSHES = 6

BUCKETS = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)
"""Upper ends in seconds of the histogram of stages; one more holds all that took longer."""

REASONS = (
    "memory has something to tell",
    "nothing in memory is close enough",
    "memory holds no older issue",
    "nothing was due",
    "it says that already",
    "it was said before",
    "it was looked at together with a later delivery",
    "what happened was looked at",
    "somebody switched it off on this issue",
    "a person deleted the comment",
    "a person edited the comment",
    "it is closed already",
    "the conversation is locked",
    "its author is a bot or ignored",
    "its author asked to be left alone",
    "it carries an ignored label",
    "pull requests are not answered",
    "the mode is off",
    "as many comments were written as one day may have",
    "asked to search",
    "asked about an issue",
    "asked what was said before",
    "asked for the commands",
    "an issue was called wrong here",
    "asked to say nothing more here",
    "asked to speak here again",
    "asked for a new answer",
    "the issue was forgotten",
    "it showed an issue that is forgotten",
    "only an administrator of the repository may ask for that",
    "the account's questions of this hour are used up",
    "only its author or who may write to the repository may ask for that",
    "what was asked was not understood",
    "GitHub takes no comment here",
    "the token may not do this",
    "the App is at work",
    "the App is not installed there any more",
    "the App is suspended there",
    "the App may not see this repository any more",
    "the repository was deleted",
    "the repository went to another account",
    NEVER_ENDED,
)
"""What an answer's reason is counted under: the one that it begins with, else "other"."""

FOLLOW_UP = "catch-up"


def stored_event(event: Event) -> Event:
    """What the ledger keeps of an event: where to look, and nobody's name."""
    return Event(
        clean(event.name),
        clean(event.action),
        event.number,
        event.is_pull,
        event.comment_id,
        moved_to=clean(event.moved_to) or None,
    )


def pick_due(due: Sequence[Delivery]) -> list[Delivery]:
    """What the next turn takes of these, oldest first. One that was begun and never ended comes alone."""
    if due and due[0].begun:
        return [due[0]]
    return list(takewhile(lambda each: not each.begun, due[:MOST_AT_ONCE]))


def settled_delivery(delivery: Delivery, result: Result, now: Instant) -> Delivery:
    """The delivery after its turn."""
    waits = result.state == "waiting"
    return replace(
        delivery,
        state=result.state,
        reason=result.reason,
        next_at=result.next_at if waits else 0,
        finished_at=0 if waits else now,
        attempts=delivery.attempts + (1 if waits and result.counts else 0),
        begun=0,
        said=result.said,
        url=result.url,
        matches=result.matches,
        nearest=result.nearest,
    )


def row_after_run(row: RepositoryRow, told: RunReport, now: Instant) -> RepositoryRow:
    """What is known of the lane after a turn."""
    return replace(
        row,
        cursor=max(row.cursor, told.cursor),
        pushes=tuple(sorted((*row.pushes, *told.pushes)))[-LAST_PUSHES:],
        last_run=now,
        rate_left=told.rate_left if told.rate_left >= 0 else row.rate_left,
        backoff=told.backoff,
    )


def follow_up(work: PendingWork, row: RepositoryRow, now: Instant) -> Arrival:
    """The delivery of our own making by which a turn has its lane looked at again."""
    app = work.deliveries[0].id.partition(":")[0]
    name = f"{app}:again-{work.lane.key}-{work.id}"
    return Arrival(name, work.lane, Event(FOLLOW_UP), name=row.name, private=row.private, received_at=now)


def absorbed(work: PendingWork) -> list[str]:
    """The tickets of what the turn did along the way."""
    return [each.id for each in work.deliveries if each.id != work.ticket]


def new_item_id(lane: RepositoryKey, purpose: str) -> str:
    """The name of a ticket that was never used."""
    return f"{lane.key}:{purpose}:{uuid.uuid4().hex}"


def wake(lane: RepositoryKey, ticket: str, until: Instant, now: Instant) -> str:
    """The name of the ticket that comes after this one in a lane where something waits ``until`` then.

    A ticket of the lane's own has always a new one, so that the lane is never left without. Those of deliveries that
    come upon a lane that waits share one, or a busy repository would gather hundreds for the same moment.
    """
    shared = until > now and not ticket.startswith(f"{lane.key}:")
    return f"{lane.key}:at:{until}" if shared else new_item_id(lane, "next")


def pause(until: Instant, now: Instant) -> float:
    """Seconds from now until then, nought for what is past."""
    return max(0.0, (until - now) / 1000)


def tally_run(results: Sequence[Result], told: RunReport) -> dict[tuple[str, tuple[str, ...]], float]:
    """What a turn adds to the counters, by the names and labels under which they are shown."""
    failed = any(result.state == "waiting" for result in results)
    counted: dict[tuple[str, tuple[str, ...]], float] = {}

    def add(name: str, *labels: str, much: float = 1) -> None:
        counted[name, labels] = counted.get((name, labels), 0) + much

    add("precedent_turns_total", "again" if failed else "done")
    for result in results:
        if result.state != "waiting":
            add("precedent_answers_total", result.said or result.state, _short(result.reason))
    for stage, seconds in told.stages:
        add("precedent_stage_seconds_bucket", stage, _bucket(seconds))
        add("precedent_stage_seconds_sum", stage, much=seconds)
        add("precedent_stage_seconds_count", stage)
    if told.pushes:
        add("precedent_pushes_total", much=len(told.pushes))
    return counted


def _bucket(seconds: float) -> str:
    """The smallest bucket that holds it, which alone is counted: buckets are summed up where they are shown."""
    return next((str(end) for end in BUCKETS if seconds <= end), "+Inf")


def _short(reason: str) -> str:
    return next((known for known in REASONS if reason.startswith(known)), "other" if reason else "")
