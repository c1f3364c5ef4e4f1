"""When a repository is looked at again after a run, and what is left of its history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from bot.domain.changes import HistoryProgress
from bot.github.errors import CORE, HISTORY, RateLimited
from bot.pipeline.backfill import HistoryRead
from bot.pipeline.outlook import Outlook
from bot.server.model import HOUR, MINUTE, HistoryPart, Priority, RepositoryKey, RepositoryRow, Result, RunReport
from bot.server.work.policy import MAX_BACKOFF, PROMISE_DELAY, RunEnd, plan_next

NOW = 1_795_350_000_000


def moment(instant: int) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC)


READ_TO = moment(NOW - MINUTE)
READING = HistoryProgress(moment(NOW - HOUR), READ_TO, frozenset({1, 2, 3}))
DONE = Outlook(READ_TO, 10, None, None, (), is_cut_off=False)
END = RunEnd(DONE, RepositoryRow(RepositoryKey(7, 70)), [Result(1, "done", "")], [], is_idle=False, has_read_on=False)
HISTORY_LIMIT = RateLimited("the limit", "", until=moment(NOW + HOUR), resource=HISTORY)


def report(outlook: Mapping[str, object], end: Mapping[str, object]) -> RunReport:
    return plan_next(replace(END, outlook=replace(DONE, **outlook), **end), NOW)


@pytest.mark.parametrize(
    ("outlook", "end", "pause", "backoff"),
    [
        ({}, {}, None, 0),
        ({"owed": (None,)}, {"results": [Result(1, "waiting", "", NOW + 9)]}, None, 0),
        ({"owed": (None,)}, {}, PROMISE_DELAY, PROMISE_DELAY),
        ({"owed": (moment(NOW - MINUTE),)}, {}, PROMISE_DELAY - MINUTE, PROMISE_DELAY),
        ({"owed": (moment(NOW - HOUR),)}, {}, PROMISE_DELAY, PROMISE_DELAY),
        (
            {"owed": (None,)},
            {"is_idle": True, "row": replace(END.row, backoff=PROMISE_DELAY)},
            *(2 * PROMISE_DELAY,) * 2,
        ),
        ({"owed": (None,)}, {"is_idle": True, "row": replace(END.row, backoff=MAX_BACKOFF)}, MAX_BACKOFF, MAX_BACKOFF),
        ({"owed": (None,)}, {"row": replace(END.row, backoff=MAX_BACKOFF)}, PROMISE_DELAY, PROMISE_DELAY),
        ({"reading": READING}, {"has_read_on": True}, 0, 0),
        ({"reading": READING}, {}, PROMISE_DELAY, PROMISE_DELAY),
        ({"reading": READING, "is_cut_off": True}, {"has_read_on": True}, None, 0),
        ({"reading": READING, "owed": (None,)}, {"met": [HISTORY_LIMIT]}, PROMISE_DELAY, PROMISE_DELAY),
        ({"read": HistoryRead({1})}, {}, 0, 0),
        ({"read": HistoryRead({1})}, {"row": replace(END.row, cursor=NOW)}, None, 0),
    ],
    ids=[
        *("nothing is left", "a delivery waits anyway", "a promise is kept by nobody", "another run may be at it"),
        *("a run died at it", "nothing came of it again", "the pause is bounded", "a change restarts the pauses"),
        *("a rebuild goes on", "a rebuild that stands still", "GitHub failed", "a limit does not delay a promise"),
        *("a first reading goes on", "a first reading that stands still"),
    ],
)
def test_when_the_next_run_is_due(
    outlook: Mapping[str, object], end: Mapping[str, object], pause: int | None, backoff: int
) -> None:
    planned = report(outlook, end)
    assert planned.requeue_after == (0 if pause is None else NOW + pause)
    assert planned.backoff == backoff
    assert planned.urgency == Priority.CATCH_UP


def test_a_history_continues_when_its_limit_ends_and_is_the_least_urgent() -> None:
    planned = report({"reading": READING}, {"met": [HISTORY_LIMIT]})
    assert (planned.requeue_after, planned.urgency) == (NOW + HOUR, Priority.HISTORY)
    other = RateLimited("another limit", "", until=moment(NOW + HOUR), resource=CORE)
    assert report({"reading": READING}, {"met": [other], "has_read_on": True}).requeue_after == NOW


@pytest.mark.parametrize(
    ("outlook", "states", "is_unread", "history"),
    [
        ({}, ["done"], False, None),
        ({}, ["dead", "dropped"], None, None),
        ({"reading": READING}, ["done"], None, None),
        ({"read": HistoryRead({1, 2}, total=9)}, ["done"], True, HistoryPart(10, 9, 7)),
        ({"read": HistoryRead({1, 2})}, ["dead"], True, HistoryPart(10, -1, -1)),
        ({"read": HistoryRead({1, 2}, total=9), "reading": READING}, ["done"], None, HistoryPart(3, 9, 7)),
        ({"read": HistoryRead({1, 2}, total=1), "reading": READING}, ["done"], None, HistoryPart(3, 1, 0)),
        ({"read": HistoryRead({1, 2}, total=2, complete=True)}, ["done"], False, None),
    ],
)
def test_what_is_left_of_a_history(
    outlook: Mapping[str, object], states: list[str], is_unread: bool | None, history: HistoryPart | None
) -> None:
    results = [Result(number, state, "") for number, state in enumerate(states)]  # type: ignore[arg-type]
    planned = report(outlook, {"results": results})
    assert (planned.is_unread, planned.history) == (is_unread, history)
    assert (planned.cursor, planned.threads) == (NOW - MINUTE, 10)
