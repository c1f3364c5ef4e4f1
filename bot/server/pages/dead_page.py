"""Builds the page of dead deliveries, grouped by reason, with buttons for operators."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from urllib.parse import quote, unquote

from bot.comment.render import render_page
from bot.domain.thread_json import storable
from bot.server.model import Delivery, Instant
from bot.server.pages.access import Role
from bot.server.pages.parts import (
    DEAD_PATH,
    PAGE_SIZE,
    Values,
    count_of,
    dead_link,
    describe_event,
    frame,
    join_names,
    moment,
    repository_of,
)
from bot.server.storage.delivery_filter import DeliveryFilter, select_deliveries
from bot.server.storage.inbox import Inbox
from bot.server.storage.operations import AuditEntry, DeadGroup, Operation, audit_entries, dead_groups

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
    with inbox.database.transaction() as transaction:
        delivery_filter = DeliveryFilter("dead", before=view.before, reason=group.reason)
        deliveries = select_deliveries(transaction, delivery_filter, PAGE_SIZE + 1)
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
        "entries": [_entry(each, now) for each in group.deliveries],
        "rest": 0 if has_own_page else group.count - len(group.deliveries),
    }


def _entry(delivery: Delivery, now: Instant) -> Values:
    return {
        "seq": delivery.seq,
        "link": f"/deliveries/{delivery.seq}",
        "name": repository_of(delivery),
        "number": delivery.event.number,
        "happened": describe_event(delivery.event),
        "came": moment(delivery.received_at, now),
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
