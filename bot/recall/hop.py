"""What hits link to, and what links to them: one step further."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bot.card import Card, CardId
from bot.recall.cards import Cards

PER_HIT = 5
IN_ALL = 20
_KINDS = ("fix", "duplicate", "reference")
"""Of links, what tells most first."""


class Hop(NamedTuple):
    """A thread next to a hit. ``kind`` as in `bot.card.Link`; ``direction`` is ``to`` where the hit ``hit`` points at
    the thread, ``from`` where the thread points at the hit."""

    card: Card
    kind: str
    hit: CardId
    direction: str


def expand(ids: Iterable[CardId], cards: Cards) -> tuple[Hop, ...]:
    """The neighbours of these hits, at most 5 of each and 20 in all, each once and none a hit itself.

    In the order of the hits; of each the strongest links first, equal ones with the newest threads first.
    """
    hits = list(dict.fromkeys(ids))
    places = {hit: place for place, hit in enumerate(hits)}
    near: dict[CardId, list[tuple[CardId, str, str]]] = {hit: [] for hit in hits}
    for link in cards.links(hits):
        if link.source in places and link.target not in places:
            near[link.source].append((link.target, link.kind, "to"))
        elif link.target in places and link.source not in places:
            near[link.target].append((link.source, link.kind, "from"))
    known = cards.cards(dict.fromkeys(key for each in near.values() for key, _, _ in each))
    found: dict[CardId, Hop] = {}
    for hit in hits:
        hops = [Hop(known[key], kind, hit, way) for key, kind, way in near[hit] if key in known and key not in found]
        best: dict[CardId, Hop] = {}
        for hop in sorted(hops, key=_strongest_first):
            best.setdefault(hop.card.id, hop)
        found |= dict(list(best.items())[:PER_HIT])
    return tuple(found.values())[:IN_ALL]


def _strongest_first(hop: Hop) -> tuple[int, float, bool, CardId, str]:
    kind = _KINDS.index(hop.kind) if hop.kind in _KINDS else len(_KINDS)
    return kind, -hop.card.updated_at.timestamp(), isinstance(hop.card.id, str), hop.card.id, hop.direction
