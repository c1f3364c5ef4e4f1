"""Coalesces deliveries: one event stands for several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.github.events import CATCH_UP_EVENT, ORGANISATION_EVENT, Event
from bot.server.model import Delivery

COMMENT_EVENT = "issue_comment"


@dataclass(frozen=True, slots=True)
class DeliveryGroup:
    """Deliveries that one event stands for, oldest first."""

    event: Event
    deliveries: tuple[Delivery, ...]

    @property
    def number(self) -> int:
        """The issue; 0 if the event is about none."""
        return self.event.number or 0


def coalesce(deliveries: Sequence[Delivery]) -> list[DeliveryGroup]:
    """Group deliveries that one event stands for, in the order of their first one. Follow-ups come last, since all
    others fetch changes too.

    New comments on an issue are one event, everything else that happened to it is another: an opened issue is answered
    at any age, a comment only for what it points at. If the issue is gone, that is the only event. Comments to check
    because other repositories changed are one event, at most `inbox.MAX_RUN_DELIVERIES` of them: memory is pushed
    once for all.
    """
    groups: dict[tuple[int, str], list[Delivery]] = {}
    gone = {each.event.number for each in deliveries if each.event.forgets}
    for each in deliveries:
        groups.setdefault(_key(each.event, is_gone=each.event.number in gone), []).append(each)
    merged = [DeliveryGroup(_merge([each.event for each in group]), tuple(group)) for group in groups.values()]
    return sorted(merged, key=lambda group: group.event.name == CATCH_UP_EVENT)


def _key(event: Event, *, is_gone: bool) -> tuple[int, str]:
    if not event.number or event.name == ORGANISATION_EVENT:
        return 0, event.name
    is_comment = event.name == COMMENT_EVENT and event.may_be_answered and not is_gone
    return event.number, COMMENT_EVENT if is_comment else "issues"


def _merge(events: Sequence[Event]) -> Event:
    if events[0].name == ORGANISATION_EVENT:
        return Event(ORGANISATION_EVENT, numbers=tuple(dict.fromkeys(each.number for each in events if each.number)))
    event = next((each for each in events if each.forgets), None)
    event = event or next((each for each in reversed(events) if each.may_be_answered), events[-1])
    if event.name != COMMENT_EVENT:
        return event
    comments = dict.fromkeys(each.comment_id for each in events if each.comment_id and each.may_be_answered)
    return replace(event, earlier=tuple(key for key in comments if key != event.comment_id))
