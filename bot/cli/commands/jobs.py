"""precedent jobs: the deliveries that a server keeps."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from bot.cli.commands.serve import server_flags, server_libraries
from bot.cli.output import table
from bot.errors import UserError
from bot.server.model import Delivery, RepositoryKey
from bot.server.options import ServerOptions, read_options

if TYPE_CHECKING:
    from bot.server.inbox import Inbox

MOST = 1000
COLUMNS = "number\tstate\treceived\tlane\tabout\tevent\treason"


def run_jobs(given: argparse.Namespace) -> object:
    """List deliveries, or do something about some."""
    _sensible(given)
    options = read_options(os.environ, server_flags(given), required=())
    with _inbox(options) as inbox:
        if given.action == "list":
            return _listed(inbox, given)
        numbers = given.numbers or [each.seq for each in _all_dead(inbox)]
        count = inbox.retry(numbers) if given.action == "retry" else inbox.drop(numbers, given.why[:200])
    done = "to be tried again" if given.action == "retry" else "dropped"
    left = len(numbers) - count
    if given.json:
        return {"asked": len(numbers), "done": count}
    why = "not dead" if given.action == "retry" else "neither waiting nor dead"
    return f"{count} {done}" + (f", {left} not: {why}, or not there" if left else "") + "\n"


def _sensible(given: argparse.Namespace) -> None:
    if given.action == "list" and (given.numbers or given.all_dead):
        raise UserError("list takes no numbers: use --state, --lane, --before and --limit")
    if given.action != "list" and bool(given.numbers) == given.all_dead:
        raise UserError(f"{given.action} takes the numbers of deliveries, or --all-dead")


@contextmanager
def _inbox(options: ServerOptions) -> Iterator[Inbox]:
    """The inbox of a server, which may be running meanwhile."""
    if not options.database_url and not (options.data / "queue.sqlite").exists():
        raise UserError(f"there is no queue in {options.data}: give the server's --data or --database-url")
    with server_libraries():
        from bot.server import processes
    with processes.opened(options, "jobs") as inbox:
        yield inbox


def _all_dead(inbox: Inbox) -> list[Delivery]:
    found: list[Delivery] = []
    while page := inbox.deliveries(state="dead", before=found[-1].seq if found else 0, limit=MOST):
        found += page
    return found


def _listed(inbox: Inbox, given: argparse.Namespace) -> object:
    limit = min(given.limit, MOST)
    lane = _lane(given.lane) if given.lane else None
    found = inbox.deliveries(state=given.state, lane=lane, before=given.before, limit=limit)
    if given.json:
        return [_as_data(each) for each in found]
    return table(COLUMNS, ("\t".join(_cells(each)) for each in found), header=given.header)


def _lane(text: str) -> RepositoryKey:
    try:
        return RepositoryKey.of(text)
    except ValueError as error:
        raise UserError(f"--lane: {text[:40]!r} is not like 17-42") from error


def _cells(each: Delivery) -> tuple[str, ...]:
    place = each.name or each.lane.key
    about = f"{place}#{each.event.number}" if each.event.number else place
    event = f"{each.event.name}.{each.event.action}" if each.event.action else each.event.name
    return (str(each.seq), each.state, _time(each.received_at), each.lane.key, about, event, each.reason)


def _as_data(each: Delivery) -> dict[str, object]:
    return {
        "number": each.seq,
        "id": each.id,
        "state": each.state,
        "repository": each.name,
        "lane": each.lane.key,
        "event": each.event.name,
        "action": each.event.action,
        "issue": each.event.number,
        "received_at": _time(each.received_at),
        "attempts": each.attempts,
        "next_at": _time(each.next_at),
        "finished_at": _time(each.finished_at),
        "reason": each.reason,
        "said": each.said,
        "url": each.url,
        "request": each.request,
    }


def _time(instant: int) -> str:
    return datetime.fromtimestamp(instant / 1000, UTC).isoformat(timespec="seconds") if instant else ""
