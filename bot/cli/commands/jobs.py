"""precedent jobs: the deliveries that a server keeps."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, get_args

from bot.cli.commands.serve import Subparsers, add_server_flags, server_flags, server_libraries
from bot.errors import UserError
from bot.server.model import Delivery, RepositoryKey, State
from bot.server.options import ServerOptions, read_options

if TYPE_CHECKING:
    from bot.server.inbox import Inbox

MOST = 1000
DROPPED = "dropped by hand"


def add_jobs(commands: Subparsers[argparse.ArgumentParser]) -> None:
    command = commands.add_parser("jobs", help="the deliveries of a server: list them, try dead ones again, drop some")
    command.add_argument("action", choices=("list", "retry", "drop"), metavar="ACTION", help="list, retry or drop")
    command.add_argument("numbers", nargs="*", type=_positive, metavar="NUMBER", help="of deliveries, as listed")
    command.add_argument("--all-dead", action="store_true", help="retry, drop: all dead ones in place of numbers")
    command.add_argument("--state", choices=get_args(State), help="list: those in this state")
    command.add_argument("--lane", type=_lane, metavar="ID-ID", help="list: of this repository, as listed")
    command.add_argument("--before", type=_positive, default=0, metavar="NUMBER", help="list: older than this one")
    command.add_argument("--limit", type=_positive, default=50, metavar="N", help=f"list: at most {MOST} (default 50)")
    command.add_argument("--why", default=DROPPED, metavar="TEXT", help="drop: the reason that is kept")
    add_server_flags(command, ("data", "database_url"))
    command.add_argument("--json", action="store_true", help="print as JSON")


def _positive(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1")
    return int(text)


def _lane(text: str) -> RepositoryKey:
    try:
        return RepositoryKey.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not like 17-42") from error


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
    found = inbox.deliveries(state=given.state, lane=given.lane, before=given.before, limit=limit)
    if given.json:
        return [_as_data(each) for each in found]
    return "".join("\t".join(_cells(each)) + "\n" for each in found)


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
