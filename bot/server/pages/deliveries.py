"""Builds the page of one delivery, and that of the dead ones, without any text of issues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from bot.comment.render import render_page
from bot.domain.thread_json import storable
from bot.server.model import Delivery, Instant, RunRow, guid_of
from bot.server.pages.access import Role
from bot.server.pages.parts import (
    DEAD_PATH,
    PAGE_SIZE,
    Values,
    badge,
    count_of,
    dead_link,
    describe_event,
    format_duration,
    frame,
    join_names,
    moment,
    repository_of,
)
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.inbox import Inbox
from bot.server.storage.operations import AuditEntry, DeadGroup, Operation, audit_entries, dead_groups


def delivery_page(details: tuple[Delivery, RunRow | None] | None, now: Instant, name: str = "") -> str:
    """Return the page of one delivery and its last run; None for an unknown or deleted one.

    ``name`` is the name of the repository if the delivery has none.
    """
    if details is None:
        return render_page("delivery.html.j2", {"entry": None} | frame(now))
    delivery, run = details
    values: Values = {
        "entry": delivery_entry(delivery, now, name),
        "group": dead_link(delivery.reason) if delivery.state == "dead" else "",
        "steps": _steps(delivery, run, now),
        "stages": _stages(run),
        "notes": run.notes if run else (),
        "facts": _facts(delivery, run),
    }
    return render_page("delivery.html.j2", values | frame(now))


def delivery_entry(delivery: Delivery, now: Instant, name: str = "") -> Values:
    event = delivery.event
    shown = {number for number, _ in delivery.matches}
    return {
        "link": f"/deliveries/{delivery.seq}",
        "seq": delivery.seq,
        "badge": badge(delivery),
        "name": repository_of(delivery, name),
        "number": event.number,
        "happened": describe_event(event),
        "came": moment(delivery.received_at, now),
        "next": moment(delivery.next_at, now) if delivery.state == "waiting" and delivery.next_at > now else None,
        "reason": delivery.reason,
        "goes_without_saying": bool(delivery.matches) and badge(delivery).kind == "spoke",
        "url": delivery.url if delivery.url.startswith(("https://", "http://")) else "",
        "matches": [
            {"number": number, "percent": f"{100 * similarity:.0f}", "width": round(100 * similarity, 1)}
            for number, similarity in delivery.matches
        ],
        "nearest": [
            {
                "number": number,
                "similarity": f"{similarity:.2f}",
                "why": why.replace("both name", "the same names"),
                "shown": number in shown,
            }
            for number, similarity, why in delivery.nearest
        ],
    }


def _steps(delivery: Delivery, run: RunRow | None, now: Instant) -> list[Values]:
    steps: list[Values] = [{"at": moment(delivery.received_at), "name": "Received and stored", "about": ""}]
    if delivery.attempts:
        tries = count_of(delivery.attempts, "try", "tries")
        steps.append({"at": None, "name": f"{tries} failed", "about": "each was followed by a longer pause"})
    if run and delivery.run == run.id:
        waited = format_duration((run.began - delivery.received_at) / 1000)
        about = f"{waited} after it arrived, by worker {run.worker}"
        steps.append({"at": moment(run.began), "name": "A run of its repository began", "about": about})
        if run.ended:
            took = f"it took {format_duration((run.ended - run.began) / 1000)}"
            steps.append({"at": moment(run.ended), "name": "The run ended", "about": took})
    if delivery.state == "waiting":
        later = delivery.next_at > now
        steps.append(
            {"at": moment(delivery.next_at) if later else None, "name": "Next try", "about": "" if later else "due"}
        )
    elif delivery.finished_at:
        steps.append({"at": moment(delivery.finished_at), "name": badge(delivery).name, "about": delivery.reason})
    return steps


def _stages(run: RunRow | None) -> list[Values]:
    """The duration of each stage of the run, with a bar of width 100 for the longest."""
    longest = max((seconds for _, seconds in run.stages), default=0) if run else 0
    return [
        {"name": name, "took": format_duration(seconds), "width": round(100 * seconds / longest, 1) if longest else 0}
        for name, seconds in (run.stages if run else ())
    ]


def _facts(delivery: Delivery, run: RunRow | None) -> list[tuple[str, str]]:
    repository, event = delivery.repository, delivery.event
    facts = [
        ("Delivery", guid_of(delivery)),
        ("Request", delivery.request),
        ("Event", f"{event.name}.{event.action}" if event.action else event.name),
        ("Installation and repository", f"{repository.installation} and {repository.number}"),
        ("Related comment", str(event.comment_id or "")),
        ("Moved to", event.moved_to or ""),
        *((f"Of the {key}" if key == "account" else key.capitalize(), value) for key, value in delivery.extra),
        ("Run", delivery.run),
    ]
    if run:
        pushes = count_of(len(run.pushes), "push", "pushes")
        facts.append(("Requests of the run", f"{run.reads:,} read, {run.writes:,} written, {pushes}"))
    return [(name, value) for name, value in facts if value]


MAX_GROUPS = 20
"""How many reasons are shown at most: those with the most deliveries."""

GROUP_DELIVERIES = 5
"""Deliveries shown for each reason; a page for one reason alone shows `PAGE_SIZE`."""


@dataclass(frozen=True, slots=True)
class DeadView:
    """What to show: the deliveries with one reason, older than number ``before``; all reasons for None.

    ``audited`` is the number of the audit entry of the action just taken here: 0 if there was nothing to do, None if
    there was no action.
    """

    reason: str | None = None
    before: int = 0
    audited: int | None = None


def dead_page(inbox: Inbox, now: Instant, role: Role, view: DeadView) -> str:
    """Return the page; only operators get buttons. Raises WorldError without the database."""
    groups = dead_groups(inbox.database, MAX_GROUPS + 1, GROUP_DELIVERIES, view.reason)
    older = ""
    if view.reason is not None and groups:
        groups, older = _select_page(inbox, groups[0], view)
    values: Values = {
        "title": "Deliveries that were put aside",
        "lead": _lead(groups, inbox.counts(of=("dead",)).get("dead", 0), view),
        "notice": _notice(inbox, view.audited),
        "groups": [_group(group, now, has_own_page=view.reason is not None) for group in groups[:MAX_GROUPS]],
        "more": len(groups) > MAX_GROUPS,
        "seen": now,
        "may_operate": role is Role.OPERATE,
        "all": DEAD_PATH if view.reason is not None else "",
        "older": older,
        "newest": dead_link(view.reason) if view.reason is not None and view.before else "",
    }
    return render_page("dead.html.j2", values | frame(now, has_forms=role is Role.OPERATE))


def _select_page(inbox: Inbox, group: DeadGroup, view: DeadView) -> tuple[list[DeadGroup], str]:
    """The group with one page of its deliveries, and the address of the next page."""
    selection = DeliveryFilter("dead", before=view.before, reason=group.reason)
    deliveries = inbox.deliveries(selection, PAGE_SIZE + 1)
    older = dead_link(group.reason, deliveries[PAGE_SIZE - 1].seq) if len(deliveries) > PAGE_SIZE else ""
    return [replace(group, deliveries=tuple(deliveries[:PAGE_SIZE]))], older


def _lead(groups: list[DeadGroup], dead: int, view: DeadView) -> str:
    if not groups:
        return "No delivery has this reason any more." if view.reason is not None else "There are none."
    rest = "They are not retried automatically: fix the cause, then replay or drop them."
    return rest if view.reason is not None else f"{count_of(dead, 'delivery', 'deliveries')}. {rest}"


def _notice(inbox: Inbox, audited: int | None) -> str:
    if audited is None:
        return ""
    entries = audit_entries(inbox.database, before=audited + 1, limit=1) if audited else []
    return _outcome(entries[0]) if entries and entries[0].seq == audited else "There was nothing to do."


def _outcome(entry: AuditEntry) -> str:
    deliveries = count_of(entry.done, "delivery", "deliveries")
    verb = "will be tried again" if entry.action == "replay" else ("was" if entry.done == 1 else "were") + " dropped"
    left = entry.asked - entry.done
    return f"{deliveries} {verb}." + (f" {left:,} had changed meanwhile." if left else "")


def _group(group: DeadGroup, now: Instant, *, has_own_page: bool) -> Values:
    more = group.repositories - len(group.names)
    names = [*group.names, f"{more:,} more"] if more > 0 else [*group.names]
    return {
        "reason": quote(group.reason),  # in ASCII, as the page shows no invisible characters
        "shown": group.reason or "No reason is known",
        "link": dead_link(group.reason),
        "many": count_of(group.count, "delivery", "deliveries"),
        "which": f"all {group.count:,}" if group.count > 1 else "it",
        "first": moment(group.first, now),
        "last": moment(group.last, now),
        "repositories": join_names(names),
        "entries": [delivery_entry(each, now) for each in group.deliveries],
        "rest": 0 if has_own_page else group.count - len(group.deliveries),
    }


def parse_operation(form: Mapping[str, str], who: str) -> Operation | None:
    """Return the operation that a form of the page asks for; None for anything else.

    A group holds what had ended when the page was shown, so that nobody drops a delivery that arrived later.
    """
    action, number, seen = form.get("action"), form.get("number", ""), form.get("seen", "")
    if action not in ("replay", "drop"):
        return None
    if _is_number(number):
        delivery_filter = DeliveryFilter("dead", seq=int(number))
    elif "reason" in form and _is_number(seen):
        delivery_filter = DeliveryFilter("dead", reason=storable(unquote(form["reason"])), ended=int(seen))
    else:
        return None
    return Operation("replay" if action == "replay" else "drop", who, delivery_filter, form.get("why", ""))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18 and int(text) > 0
