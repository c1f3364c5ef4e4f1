"""precedent deliveries: what a server has received, and what became of it."""

from __future__ import annotations

import argparse
import os
import pwd
import socket
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING

from bot.cli.commands.serve import server_flags, server_inbox
from bot.cli.output import table
from bot.comment.clean_text import one_line
from bot.errors import UserError
from bot.server.model import Delivery, RepositoryKey, RunRow, moment_text
from bot.server.options import read_options

if TYPE_CHECKING:
    from bot.server.audit import AuditEntry
    from bot.server.delivery_filter import DeliveryFilter
    from bot.server.inbox import Inbox

MOST = 1000
COLUMNS = "number\tstate\treceived\tlane\tabout\tevent\treason"
AUDIT_COLUMNS = "number\ttime\twho\taction\tdone\tasked\twhich\twhy"

FILTERS = ("state", "reason", "repo", "since", "until")
PAGING = ("before", "limit")
TAKES: Mapping[str, tuple[str, ...]] = {
    "list": (*FILTERS, *PAGING),
    "show": ("numbers",),
    "replay": ("numbers", "all_dead", *FILTERS, "why"),
    "drop": ("numbers", "all_dead", *FILTERS, "why"),
    "audit": ("since", "until", *PAGING),
}
"""Action → the arguments that mean something to it."""


def run_deliveries(given: argparse.Namespace) -> object:
    _sensible(given)
    options = read_options(os.environ, server_flags(given), required=())
    actions: Mapping[str, Callable[[Inbox, argparse.Namespace], object]] = {
        "list": _listed,
        "show": _shown,
        "audit": _audit,
        "replay": _operated,
        "drop": _operated,
    }
    with server_inbox(options, "deliveries") as inbox:
        if given.action in ("replay", "drop"):
            from bot.server.log import write_logs

            write_logs(options.log, options.hidden)  # one line, who did it, on stderr
        return actions[given.action](inbox, given)


def _sensible(given: argparse.Namespace) -> None:
    action, takes = given.action, TAKES[given.action]
    for name in ("numbers", "all_dead", *FILTERS, *PAGING, "why"):
        if getattr(given, name) and name not in takes:
            shown = "numbers" if name == "numbers" else f"--{name.replace('_', '-')}"
            raise UserError(f"{action} takes no {shown}: see --help")
    if action == "show" and len(given.numbers) != 1:
        raise UserError("show takes the number of one delivery")
    if action in ("replay", "drop") and bool(given.numbers) == given.all_dead:
        raise UserError(f"{action} takes the numbers of deliveries, or --all-dead")
    if given.numbers and any(getattr(given, name) for name in FILTERS):
        raise UserError("give either numbers or filters: filters go with --all-dead")
    if given.all_dead and given.state not in (None, "dead"):
        raise UserError(f"--all-dead means dead ones: leave out --state {given.state}")


def _filter(given: argparse.Namespace) -> DeliveryFilter:
    from bot.server.delivery_filter import DeliveryFilter

    repository = _repository(given.repo) if given.repo else None
    return DeliveryFilter(
        state="dead" if given.all_dead else given.state,
        repository=repository,
        before=given.before or 0,
        says=given.reason or "",
        name=given.repo if given.repo and not repository else "",
        since=_instant(given.since),
        until=_instant(given.until),
    )


def _repository(text: str) -> RepositoryKey | None:
    """The key of a repository; None for its name."""
    try:
        return RepositoryKey.of(text)
    except ValueError as error:
        if "/" in text:
            return None
        raise UserError(f"--repo: {text[:40]!r} is neither OWNER/NAME nor a key such as 17-42") from error


def _listed(inbox: Inbox, given: argparse.Namespace) -> object:
    from bot.server.delivery_filter import select_deliveries

    with inbox.database.transaction() as asking:
        found = select_deliveries(asking, _filter(given), _limit(given))
    if given.json:
        return [_as_data(each) for each in found]
    return table(COLUMNS, ("\t".join(_cells(each)) for each in found), header=given.header)


def _shown(inbox: Inbox, given: argparse.Namespace) -> object:
    (number,) = given.numbers
    found = inbox.delivery(number)
    if found is None:
        raise UserError(f"there is no delivery {number}: it was never stored, or was removed because of its age")
    delivery, run = found
    data = _as_data(delivery) | {"run": _run(run) if run else None}
    if given.json:
        return data
    return "".join(f"{name:<12} {one_line(str(value))}\n" for name, value in _lines(data) if value not in ("", None))


def _lines(data: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Each fact as a name and a value; a list has a line for each of its values."""
    for field, value in data.items():
        name = field.replace("_", " ")
        if isinstance(value, dict):
            yield from ((f"{name} {inner}", each) for inner, each in _lines(value))
        elif isinstance(value, list):
            yield from ((name, " ".join(map(str, each)) if isinstance(each, tuple) else each) for each in value)
        else:
            yield name, value


def _operated(inbox: Inbox, given: argparse.Namespace) -> object:
    from bot.server.dead_letters import Operation, replay_or_drop

    chosen = given.numbers or _filter(given)
    record = replay_or_drop(inbox, Operation(given.action, _who(), chosen, given.why or ""))
    if given.json:
        return {"asked": record.asked, "done": record.done}
    done = "to be tried again" if given.action == "replay" else "dropped"
    why = "not dead" if given.action == "replay" else "neither waiting nor dead"
    left = record.asked - record.done
    return f"{record.done} {done}" + (f", {left} not: {why}, or not there" if left else "") + "\n"


def _who() -> str:
    """The account of the operating system and the host. Variables such as USER can say anything."""
    try:
        user = pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"


def _audit(inbox: Inbox, given: argparse.Namespace) -> object:
    from bot.server.audit import audit_entries

    bounds = {"since": _instant(given.since), "until": _instant(given.until), "before": given.before or 0}
    found = audit_entries(inbox.database, **bounds, limit=_limit(given))
    if given.json:
        return [_audit_data(each) for each in found]
    lines = ("\t".join(str(value) for value in _audit_data(each).values()) for each in found)
    return table(AUDIT_COLUMNS, lines, header=given.header)


def _audit_data(each: AuditEntry) -> dict[str, object]:
    return {
        "number": each.seq,
        "time": moment_text(each.at),
        "who": one_line(each.who),
        "action": each.action,
        "done": each.done,
        "asked": each.asked,
        "which": one_line(each.chosen),
        "why": one_line(each.why),
    }


def _cells(each: Delivery) -> tuple[str, ...]:
    place = each.name or each.repository.text
    about = f"{place}#{each.event.number}" if each.event.number else place
    event = f"{each.event.name}.{each.event.action}" if each.event.action else each.event.name
    texts = map(one_line, (about, event, each.reason))
    return (str(each.seq), each.state, moment_text(each.received_at), each.repository.text, *texts)


def _as_data(each: Delivery) -> dict[str, object]:
    return {
        "number": each.seq,
        "id": each.id,
        "state": each.state,
        "repository": each.name,
        "key": each.repository.text,
        "event": each.event.name,
        "action": each.event.action,
        "issue": each.event.number,
        "received_at": moment_text(each.received_at),
        "attempts": each.attempts,
        "next_at": moment_text(each.next_at),
        "finished_at": moment_text(each.finished_at),
        "reason": each.reason,
        "said": each.said,
        "url": each.url,
        "request": each.request,
    }


def _run(run: RunRow) -> dict[str, object]:
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


def _limit(given: argparse.Namespace) -> int:
    return min(given.limit or 50, MOST)


def _instant(at: datetime | None) -> int:
    """Milliseconds since 1970; 0 for no bound."""
    return max(1, round(at.timestamp() * 1000)) if at else 0
