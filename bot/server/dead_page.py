"""Builds the page of dead deliveries, grouped by reason, with buttons for operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.comment.render import render_page
from bot.server.access import Role
from bot.server.audit import AuditEntry, audit_entries
from bot.server.dead_letters import DeadGroup, Operation, dead_groups
from bot.server.delivery_filter import DeliveryFilter, select_deliveries
from bot.server.inbox import Inbox
from bot.server.model import Delivery, Instant
from bot.server.status_page import (
    DEAD,
    PAGE,
    Values,
    counted,
    dead_link,
    frame,
    happened,
    listed,
    moment,
    repository_of,
)

GROUPS = 20
"""Most reasons shown: those with the most deliveries."""

NEWEST = 5
"""Deliveries shown of each reason; a page for one reason alone shows `PAGE`."""


@dataclass(frozen=True, slots=True)
class DeadView:
    """What to show: the deliveries with one reason, older than number ``before``; or all reasons for None.

    ``audited`` is the number of the audit's entry of what was just done here; 0 if there was nothing to do, None
    without.
    """

    reason: str | None = None
    before: int = 0
    audited: int | None = None


def dead_page(inbox: Inbox, now: Instant, role: Role, view: DeadView) -> str:
    """Return the page; only an operator gets its buttons. Raises WorldError without the database."""
    groups = dead_groups(inbox.database, GROUPS + 1, NEWEST, view.reason)
    older = ""
    if view.reason is not None and groups:
        groups, older = _paged(inbox, groups[0], view)
    values: Values = {
        "title": "Deliveries that were put aside",
        "lead": _lead(groups, inbox.counts(of=("dead",)).get("dead", 0), view),
        "notice": _notice(inbox, view.audited),
        "groups": [_group(group, now, is_whole=view.reason is not None) for group in groups[:GROUPS]],
        "more": len(groups) > GROUPS,
        "seen": now,
        "may_operate": role is Role.OPERATE,
        "all": DEAD if view.reason is not None else "",
        "older": older,
        "newest": dead_link(view.reason) if view.reason is not None and view.before else "",
    }
    return render_page("dead.html.j2", values | frame(now, has_forms=role is Role.OPERATE))


def _paged(inbox: Inbox, group: DeadGroup, view: DeadView) -> tuple[list[DeadGroup], str]:
    """The group with a page of its deliveries, and the address of the next page."""
    with inbox.database.transaction() as asking:
        wanted = DeliveryFilter("dead", before=view.before, reason=group.reason)
        found = select_deliveries(asking, wanted, PAGE + 1)
    older = dead_link(group.reason, found[PAGE - 1].seq) if len(found) > PAGE else ""
    return [replace(group, deliveries=tuple(found[:PAGE]))], older


def _lead(groups: list[DeadGroup], dead: int, view: DeadView) -> str:
    if not groups:
        return "None has this reason any more." if view.reason is not None else "There is none."
    rest = "They are not retried automatically: fix the cause, then replay or drop them."
    return rest if view.reason is not None else f"{counted(dead, 'delivery', 'deliveries')}. {rest}"


def _notice(inbox: Inbox, audited: int | None) -> str:
    if audited is None:
        return ""
    found = audit_entries(inbox.database, before=audited + 1, limit=1) if audited else []
    return _outcome(found[0]) if found and found[0].seq == audited else "There was nothing to do."


def _outcome(entry: AuditEntry) -> str:
    many = counted(entry.done, "delivery", "deliveries")
    verb = "will be tried again" if entry.action == "replay" else ("was" if entry.done == 1 else "were") + " dropped"
    left = entry.asked - entry.done
    return f"{many} {verb}." + (f" {left:,} had changed meanwhile." if left else "")


def _group(group: DeadGroup, now: Instant, *, is_whole: bool) -> Values:
    more = group.repositories - len(group.names)
    names = [*group.names, f"{more:,} more"] if more > 0 else [*group.names]
    return {
        "reason": group.reason,
        "shown": group.reason or "No reason is known",
        "link": dead_link(group.reason),
        "many": counted(group.count, "delivery", "deliveries"),
        "which": f"all {group.count:,}" if group.count > 1 else "it",
        "first": moment(group.first, now),
        "last": moment(group.last, now),
        "repositories": listed(names),
        "entries": [_entry(each, now) for each in group.deliveries],
        "rest": 0 if is_whole else group.count - len(group.deliveries),
    }


def _entry(delivery: Delivery, now: Instant) -> Values:
    return {
        "seq": delivery.seq,
        "link": f"/deliveries/{delivery.seq}",
        "name": repository_of(delivery),
        "number": delivery.event.number,
        "happened": happened(delivery.event),
        "came": moment(delivery.received_at, now),
    }


def operation_of(form: Mapping[str, str], who: str) -> Operation | None:
    """Return what a form of the page asks for; None for anything else.

    A group is what had ended when the page was shown: nobody drops a delivery that came after it.
    """
    action, number, seen = form.get("action"), form.get("number", ""), form.get("seen", "")
    if action not in ("replay", "drop"):
        return None
    if _is_number(number):
        chosen = DeliveryFilter("dead", seq=int(number))
    elif "reason" in form and _is_number(seen):
        reason = form["reason"].replace("\r\n", "\n")  # browsers send line ends like this
        chosen = DeliveryFilter("dead", reason=reason, ended=int(seen))
    else:
        return None
    return Operation("replay" if action == "replay" else "drop", who, chosen, form.get("why", ""))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 18 and int(text) > 0
