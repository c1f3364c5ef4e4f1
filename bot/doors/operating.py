"""The commands of who runs the server: `precedent serve`, `worker` and `jobs`."""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, get_args

from bot.doors.guarded import guarded
from bot.doors.output import Verdict
from bot.errors import UserError
from bot.server.nouns import Delivery, Lane, State
from bot.server.options import FLAGS, WORKING, Options, forget_secrets, read_options
from bot.server.ports import Ledger

SIGNS = {"ok": "+", "warning": "!", "wrong": "x", "away": "x"}
LIBRARIES = frozenset({"dbos", "sqlalchemy", "starlette", "uvicorn", "prometheus_client", "psycopg", "jwt"})
MOST = 1000
DROPPED = "dropped by hand"

Doors = argparse._SubParsersAction
EXPLAINED = {
    "data": ("DIR", "the folder for the queue and the clones (default: ./data)"),
    "database_url": ("URL", "PostgreSQL in place of a file there; with a password in it, better a variable"),
    "host": ("ADDRESS", "where to listen (default: 127.0.0.1)"),
    "port": ("PORT", "and at which port (default: 8080)"),
    "workers": ("N", "worker processes to start; 0: receive only (default: 1)"),
    "jobs": ("N", "repositories that one worker works on at once (default: 4)"),
}


def add_serve(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser(
        "serve",
        help="run as a GitHub App: receive webhooks, and handle them",
        description="Options are variables of the environment, PRECEDENT_APP_ID and so on; docs/self-hosting.md has "
        "all of them. These flags go before their variables.",
    )
    _add_flags(command, FLAGS)
    command.add_argument("--check", action="store_true", help="look whether it could run, say all that is missing, end")


def add_worker(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("worker", help="handle what a server elsewhere has received, from a shared database")
    _add_flags(command, ("data", "database_url", "jobs"))
    command.add_argument("--parent", type=int, default=0, metavar="PID", help="used by serve: options come by stdin")


def _add_flags(command: argparse.ArgumentParser, names: Sequence[str]) -> None:
    for name in names:
        metavar, explanation = EXPLAINED[name]
        command.add_argument(f"--{name.replace('_', '-')}", metavar=metavar, help=explanation)


def add_jobs(doors: Doors[argparse.ArgumentParser]) -> None:
    command = doors.add_parser("jobs", help="the deliveries of a server: list them, try dead ones again, drop some")
    command.add_argument("action", choices=("list", "retry", "drop"), metavar="ACTION", help="list, retry or drop")
    command.add_argument("numbers", nargs="*", type=_positive, metavar="NUMBER", help="of deliveries, as listed")
    command.add_argument("--all-dead", action="store_true", help="retry, drop: all dead ones in place of numbers")
    command.add_argument("--state", choices=get_args(State), help="list: those in this state")
    command.add_argument("--lane", type=_lane, metavar="ID-ID", help="list: of this repository, as listed")
    command.add_argument("--before", type=_positive, default=0, metavar="NUMBER", help="list: older than this one")
    command.add_argument("--limit", type=_positive, default=50, metavar="N", help=f"list: at most {MOST} (default 50)")
    command.add_argument("--why", default=DROPPED, metavar="TEXT", help="drop: the reason that is kept")
    _add_flags(command, ("data", "database_url"))
    command.add_argument("--json", action="store_true", help="print as JSON")


def _positive(text: str) -> int:
    if not re.fullmatch(r"[1-9][0-9]{0,14}", text):
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a number from 1")
    return int(text)


def _lane(text: str) -> Lane:
    try:
        return Lane.of(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not like 17-42") from error


def run_serve(given: argparse.Namespace) -> Verdict:
    """Receive until a signal; with ``--check`` only look."""
    options = read_options(os.environ, _flags(given))
    forget_secrets(os.environ)
    with _libraries():
        from bot.server import run
    if given.check:
        return _checked(run.check(options, listens=True))
    return Verdict("", run.serve(options, guarded))


def run_worker(given: argparse.Namespace) -> Verdict:
    """Work until a signal. Never returns: the process ends with whatever still runs in it."""
    environ: Mapping[str, str] = json.load(sys.stdin) if given.parent else os.environ
    options = read_options(environ, _flags(given), WORKING)
    forget_secrets(os.environ)
    with _libraries():
        from bot.server import run
        from bot.server.turn import turns
    run.work(options, guarded, turns, given.parent)


def run_jobs(given: argparse.Namespace) -> object:
    """List deliveries, or do something about some."""
    _sensible(given)
    options = read_options(os.environ, _flags(given), required=())
    with _ledger(options) as ledger:
        if given.action == "list":
            return _listed(ledger, given)
        numbers = given.numbers or [each.seq for each in _all_dead(ledger)]
        count = ledger.retry(numbers) if given.action == "retry" else ledger.drop(numbers, given.why[:200])
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


def _flags(given: argparse.Namespace) -> dict[str, Any]:
    return {name: value for name in FLAGS if (value := getattr(given, name, None)) is not None}


@contextmanager
def _libraries() -> Iterator[None]:
    """What only the server needs is not part of every installation."""
    try:
        yield
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in LIBRARIES:
            raise
        raise UserError(f"{error.name} is missing: install what requirements-server.lock names") from error


@contextmanager
def _ledger(options: Options) -> Iterator[Ledger]:
    """The ledger of a server, which may be running meanwhile."""
    if not options.database_url and not (options.data / "queue.sqlite").exists():
        raise UserError(f"there is no queue in {options.data}: give the server's --data or --database-url")
    with _libraries():
        from bot.server import run
    with run.opened(options, "jobs") as queue:
        yield queue.ledger


def _checked(findings: Sequence[Any]) -> Verdict:
    """Findings as lines, and the exit code: 2 for what the operator has to mend, 1 for what is away."""
    levels = {finding.level for finding in findings}
    lines = [f"{SIGNS[finding.level]} {finding.name:<12} {finding.line}\n" for finding in findings]
    return Verdict("".join(lines), 2 if "wrong" in levels else 1 if "away" in levels else 0)


def _all_dead(ledger: Ledger) -> list[Delivery]:
    found: list[Delivery] = []
    while page := ledger.deliveries(state="dead", before=found[-1].seq if found else 0, limit=MOST):
        found += page
    return found


def _listed(ledger: Ledger, given: argparse.Namespace) -> object:
    limit = min(given.limit, MOST)
    found = ledger.deliveries(state=given.state, lane=given.lane, before=given.before, limit=limit)
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
