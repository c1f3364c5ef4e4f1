"""precedent deliveries: the deliveries that a server received, and what became of them."""

from __future__ import annotations

import os
import pwd
import re
import socket
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal, get_args

from bot.cli.arguments import delivery_name, non_empty, one_of, past_moment, positive
from bot.cli.commands.serve import server_flags, server_inbox
from bot.cli.options import ServerArguments, argument, flag, header_option, json_option, option
from bot.cli.output import table
from bot.comment.clean_text import one_line
from bot.errors import UserError
from bot.server.model import STATES, Delivery, RepositoryKey, RunRow, State, guid_of, moment_text
from bot.server.options import read_options

if TYPE_CHECKING:
    from bot.server.storage.deliveries import DeliveryFilter
    from bot.server.storage.inbox import Inbox
    from bot.server.storage.operations import AuditEntry

MAX_LIMIT = 1000
COLUMNS = "number\tstate\treceived\tkey\tabout\tevent\treason"
AUDIT_COLUMNS = "number\ttime\twho\taction\tdone\tasked\twhich\twhy"

FILTERS = ("state", "reason", "repo", "since", "until")
PAGING = ("before", "limit")
ALLOWED_ARGUMENTS: Mapping[str, tuple[str, ...]] = {
    "list": (*FILTERS, *PAGING),
    "show": ("numbers",),
    "replay": ("numbers", "all_dead", *FILTERS, "why"),
    "drop": ("numbers", "all_dead", *FILTERS, "why"),
    "audit": ("since", "until", *PAGING),
}
"""Action → the arguments that it accepts."""


Action = Literal["list", "show", "replay", "drop", "audit"]
ACTIONS = get_args(Action)


class DeliveriesArguments(ServerArguments):
    """Actions: list them; show one in full; replay dead ones; drop dead or waiting ones; audit: list who replayed or
    dropped some."""

    action: Action = argument("ACTION", f"{', '.join(ACTIONS[:-1])} or {ACTIONS[-1]}", **one_of(*ACTIONS))
    numbers: list[int | str] = argument(
        "NUMBER",
        "which to show, replay or drop; show also takes GitHub's GUID",
        nargs="*",
        default=[],
        type=delivery_name,
    )
    all_dead: bool = flag("replay, drop: all dead deliveries that match the filters")
    state: State | None = option("filter: only deliveries in this state", **one_of(*STATES))
    reason: str | None = option("filter: only those whose reason contains this", type=non_empty, metavar="TEXT")
    repo: str | None = option(
        "filter: only those of this OWNER/NAME or OWNER/NAME#ISSUE, or key as listed",
        type=non_empty,
        metavar="REPOSITORY",
    )
    since: datetime | None = option(
        "filter: only those received since 2026-05-03, or 7d, 4w, 6m, 1y ago; audit: done since",
        type=past_moment,
        metavar="WHEN",
    )
    until: datetime | None = option(
        "filter: only those received before then; audit: done before", type=past_moment, metavar="WHEN"
    )
    before: int | None = option("list, audit: only what is older than this one", type=positive, metavar="NUMBER")
    limit: int | None = option("list, audit: at most 1000 (default 50)", type=positive, metavar="N")
    why: str | None = option("replay, drop: the reason, which is stored", metavar="TEXT")
    json: bool = json_option("the answer")
    header: bool = header_option()


def run_deliveries(args: DeliveriesArguments) -> object:
    _check_arguments(args)
    options = read_options(os.environ, server_flags(args), required=())
    actions: Mapping[str, Callable[[Inbox, DeliveriesArguments], object]] = {
        "list": _list_deliveries,
        "show": _show_delivery,
        "audit": _list_audit,
        "replay": _operate,
        "drop": _operate,
    }
    with server_inbox(options, "deliveries") as inbox:
        if args.action in ("replay", "drop"):
            from bot.server.log import write_logs

            write_logs(options.log, options.hidden)  # one line, who did it, on stderr
        return actions[args.action](inbox, args)


def _check_arguments(args: DeliveriesArguments) -> None:
    action, takes = args.action, ALLOWED_ARGUMENTS[args.action]
    for name in ("numbers", "all_dead", *FILTERS, *PAGING, "why"):
        if getattr(args, name) and name not in takes:
            shown = "numbers" if name == "numbers" else f"--{name.replace('_', '-')}"
            raise UserError(f"{action} takes no {shown}: see --help")
    if action == "show" and len(args.numbers) != 1:
        raise UserError("show takes the number or the GUID of one delivery")
    if action != "show" and any(isinstance(each, str) for each in args.numbers):
        raise UserError(f"{action} takes numbers: `precedent deliveries list` shows them")
    if action in ("replay", "drop") and bool(args.numbers) == args.all_dead:
        raise UserError(f"{action} takes the numbers of deliveries, or --all-dead")
    if args.numbers and any(getattr(args, name) for name in FILTERS):
        raise UserError("give either numbers or filters: filters go with --all-dead")
    if args.all_dead and args.state not in (None, "dead"):
        raise UserError(f"--all-dead means dead ones: leave out --state {args.state}")


def _filter(args: DeliveriesArguments) -> DeliveryFilter:
    from bot.server.storage.deliveries import DeliveryFilter

    repository, name, number = _parse_place(args.repo or "")
    return DeliveryFilter(
        state="dead" if args.all_dead else args.state,
        repository=repository,
        before=args.before or 0,
        says=args.reason or "",
        name=name,
        number=number,
        since=_milliseconds(args.since),
        until=_milliseconds(args.until),
    )


def _parse_place(text: str) -> tuple[RepositoryKey | None, str, int]:
    """The key or the name of a repository, and the number of an issue; 0 if none is named."""
    match = re.fullmatch(r"(?:((?:0|[1-9][0-9]*)-(?:0|[1-9][0-9]*))|([^/#]+/[^/#]+))(?:#([1-9][0-9]{0,14}))?", text)
    if text and not match:
        raise UserError(f"--repo: {text[:100]!r} is neither OWNER/NAME, OWNER/NAME#ISSUE nor a key such as 17-42")
    key, name, number = match.groups() if match else (None, None, None)
    return RepositoryKey.of(key) if key else None, name or "", int(number or 0)


def _list_deliveries(inbox: Inbox, args: DeliveriesArguments) -> object:
    deliveries = inbox.deliveries(_filter(args), _limit(args))
    if args.json:
        return [_as_data(delivery) for delivery in deliveries]
    return table(COLUMNS, map(_cells, deliveries), header=args.header)


def _show_delivery(inbox: Inbox, args: DeliveriesArguments) -> object:
    (name,) = args.numbers
    stored = inbox.delivery(inbox.find(str(name)))
    if stored is None:
        raise UserError(
            f"there is no delivery {name}: it was refused or dropped when it arrived, or removed because of its age;"
            " our answer is under Recent deliveries on the App's page, and in the receiver's log"
        )
    delivery, run = stored
    data = _as_data(delivery) | {"run": _run_data(run) if run else None}
    if args.json:
        return data
    return "".join(f"{name:<12} {one_line(str(value))}\n" for name, value in _lines(data) if value not in ("", None))


def _lines(data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Names and values; a list yields one line per element."""
    for field, value in data.items():
        name = field.replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{name} {inner}", each) for inner, each in _lines(value))
        elif isinstance(value, list):
            yield from ((name, " ".join(map(str, each)) if isinstance(each, tuple) else each) for each in value)
        else:
            yield name, value


def _operate(inbox: Inbox, args: DeliveriesArguments) -> object:
    from bot.server.storage.operations import Operation, replay_or_drop

    selection = [number for number in args.numbers if isinstance(number, int)] or _filter(args)
    action: Literal["replay", "drop"] = "replay" if args.action == "replay" else "drop"
    record = replay_or_drop(inbox, Operation(action, _operator(), selection, args.why or ""))
    if args.json:
        return {"asked": record.asked, "done": record.done}
    done = "will be tried again" if args.action == "replay" else "dropped"
    why = "not dead" if args.action == "replay" else "neither waiting nor dead"
    left = record.asked - record.done
    return f"{record.done} {done}" + (f", {left} not: {why}, or not found" if left else "") + "\n"


def _operator() -> str:
    """The operating system account and host; variables such as USER can be forged."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _list_audit(inbox: Inbox, args: DeliveriesArguments) -> object:
    from bot.server.storage.operations import audit_entries

    bounds = {"since": _milliseconds(args.since), "until": _milliseconds(args.until), "before": args.before or 0}
    entries = audit_entries(inbox.database, **bounds, limit=_limit(args))
    if args.json:
        return [_audit_data(entry) for entry in entries]
    return table(AUDIT_COLUMNS, (_audit_data(entry).values() for entry in entries), header=args.header)


def _audit_data(entry: AuditEntry) -> dict[str, object]:
    return {
        "number": entry.seq,
        "time": moment_text(entry.at),
        "who": one_line(entry.who),
        "action": entry.action,
        "done": entry.done,
        "asked": entry.asked,
        "which": one_line(entry.chosen),
        "why": one_line(entry.why),
    }


def _cells(delivery: Delivery) -> tuple[str, ...]:
    name = delivery.name or delivery.repository.text
    about = f"{name}#{delivery.event.number}" if delivery.event.number else name
    event = f"{delivery.event.name}.{delivery.event.action}" if delivery.event.action else delivery.event.name
    at = moment_text(delivery.received_at)
    return (str(delivery.seq), delivery.state, at, delivery.repository.text, about, event, delivery.reason)


def _as_data(delivery: Delivery) -> dict[str, object]:
    return {
        "number": delivery.seq,
        "id": guid_of(delivery),
        "state": delivery.state,
        "repository": delivery.name,
        "key": delivery.repository.text,
        "event": delivery.event.name,
        "action": delivery.event.action,
        "issue": delivery.event.number,
        "received_at": moment_text(delivery.received_at),
        "attempts": delivery.attempts,
        "next_at": moment_text(delivery.next_at),
        "finished_at": moment_text(delivery.finished_at),
        "reason": delivery.reason,
        "said": delivery.said,
        "url": delivery.url,
        "request": delivery.request,
    }


def _run_data(run: RunRow) -> dict[str, object]:
    return {
        "id": run.id,
        "worker": run.worker,
        "began_at": moment_text(run.began),
        "ended_at": moment_text(run.ended),
        "reads": run.reads,
        "writes": run.writes,
        "pushes": len(run.pushes),
        "stages": list(run.stages),
        "notes": list(run.notes),
    }


def _limit(args: DeliveriesArguments) -> int:
    return min(args.limit or 50, MAX_LIMIT)


def _milliseconds(at: datetime | None) -> int:
    """Milliseconds since 1970; 0 for no bound."""
    return max(1, round(at.timestamp() * 1000)) if at else 0
