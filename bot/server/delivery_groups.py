"""Deliveries that one event stands for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from bot.github.events import FOLLOW_UP, ORGANISATION, Event
from bot.server.model import Delivery

COMMENT = "issue_comment"


@dataclass(frozen=True, slots=True)
class DeliveryGroup:
    """Deliveries that one event stands for, oldest first."""

    event: Event
    deliveries: tuple[Delivery, ...]

    @property
    def number(self) -> int:
        """The issue, 0 if it is about none."""
        return self.event.number or 0


def coalesced(deliveries: Sequence[Delivery]) -> list[DeliveryGroup]:
    """Groups deliveries that one event stands for, in the order of their first one; follow-ups come last, as all others
    look around too.

    New comments on an issue are one event, everything else that happened to it is another: an opened issue is answered
    at any age, a comment only for what it points at. If the issue is gone, that is the only event. The comments that a
    run has to check as other repositories changed are one event, at most `MOST_AT_ONCE`: memory is pushed once for all.
    """
    groups: dict[tuple[int, str], list[Delivery]] = {}
    gone = {each.event.number for each in deliveries if each.event.forgets}
    for each in deliveries:
        groups.setdefault(_key(each.event, is_gone=each.event.number in gone), []).append(each)
    found = [DeliveryGroup(_one([each.event for each in group]), tuple(group)) for group in groups.values()]
    return sorted(found, key=lambda group: group.event.name == FOLLOW_UP)


def _key(event: Event, *, is_gone: bool) -> tuple[int, str]:
    if not event.number or event.name == ORGANISATION:
        return 0, event.name
    is_comment = event.name == COMMENT and event.may_be_answered and not is_gone
    return event.number, COMMENT if is_comment else "issues"


def _one(events: Sequence[Event]) -> Event:
    if events[0].name == ORGANISATION:
        return Event(ORGANISATION, numbers=tuple(dict.fromkeys(each.number for each in events if each.number)))
    chosen = next((each for each in events if each.forgets), None)
    chosen = chosen or next((each for each in reversed(events) if each.may_be_answered), events[-1])
    if chosen.name != COMMENT:
        return chosen
    comments = dict.fromkeys(each.comment_id for each in events if each.comment_id and each.may_be_answered)
    return replace(chosen, earlier=tuple(key for key in comments if key != chosen.comment_id))
