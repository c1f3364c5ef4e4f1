"""The threads that name some files, the open pull requests about them, and the threads one link away from a hit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from bot.domain.card import Card, CardId, Ruling
from bot.domain.kinds import Kind
from bot.questions.requests import Cards, FilesRequest
from bot.questions.smart_search import RankedThread, recency, touches
from bot.questions.worktree_query import MAX_FILES, is_telling

PER_HIT = 5
IN_ALL = 20
_KINDS = ("fix", "duplicate", "reference")
"""Kinds of links, strongest first."""


class Hop(NamedTuple):
    """A thread next to a hit. ``kind`` as in `bot.domain.card.CardLink`; ``direction`` is ``to`` if ``hit`` points at
    the thread, ``from`` if the thread points at it."""

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


NEAR = 10
"""Threads in a section of `related`."""

_DAYS = 30


@dataclass(frozen=True, slots=True)
class RelatedAnswer:
    """The threads that name some files, those that name most of them first, and what was decided in them: threads, each
    with its newest decision alone. ``pulls`` are the open pull requests about them, as in `open_pulls`."""

    threads: tuple[RankedThread, ...] = ()
    decisions: tuple[RankedThread, ...] = ()
    pulls: tuple[RankedThread, ...] = ()


def find_related(request: FilesRequest, cards: Cards) -> RelatedAnswer:
    """Find the threads that name these files, and their decisions, newest first; at most ten of each."""
    now = request.now
    naming = threads_naming(tuple(dict.fromkeys(request.files))[:MAX_FILES], cards, any_file=True)
    threads = [
        RankedThread(card, len(files) * recency(card.updated_at, now), (touches(files),))
        for card, files in naming.values()
    ]
    threads.sort(key=lambda one: (-one.score, -one.card.updated_at.timestamp(), *_order(one.card.id)))
    shown = threads[:NEAR]
    pulls = open_pulls(naming, [one.card for one in shown], cards)
    return RelatedAnswer(tuple(shown), decisions_of(naming, now)[:NEAR], pulls[:NEAR])


def open_pulls(
    naming: dict[CardId, tuple[Card, tuple[str, ...]]], shown: Iterable[Card], cards: Cards
) -> tuple[RankedThread, ...]:
    """The open pull requests that say that they close one of the ``shown`` issues, then those that name the files, most
    of them first, then the newest."""
    issues = {card.id for card in shown if card.kind == Kind.ISSUE and card.state == "open"}
    pointing = [link.source for link in cards.links(issues) if link.target in issues] if issues else []
    candidates = {key: card for key, (card, _) in naming.items()} | cards.cards(dict.fromkeys(pointing))
    found: list[tuple[tuple[bool, int, float, tuple[bool, CardId]], RankedThread]] = []
    for key, card in candidates.items():
        closed = [number for number in card.closes if number in issues]
        files = naming[key][1] if key in naming else ()
        why = [f"says that it closes {', '.join(f'#{number}' for number in closed)}"] if closed else []
        why += [touches(files)] if files else []
        if card.kind == Kind.PULL and card.state == "open" and why:
            place = (not closed, -len(files), -card.updated_at.timestamp(), _order(key))
            found.append((place, RankedThread(card, 0.0, tuple(why))))
    return tuple(one for _, one in sorted(found, key=lambda each: each[0]))


def threads_naming(
    paths: Iterable[str], cards: Cards, *, any_file: bool = False
) -> dict[CardId, tuple[Card, tuple[str, ...]]]:
    """The threads that name these files, each with which; without ``any_file`` those that many name are left out."""
    found: dict[CardId, list[str]] = {}
    size = cards.size
    for path in paths:
        naming = cards.naming(path)
        for key, forms in naming.items():
            if any_file or any(is_telling(path, one, len(naming), size) for one in forms):
                found.setdefault(key, []).append(path)
    return {key: (card, tuple(found[key])) for key, card in cards.cards(found).items()}


def decisions_of(naming: dict[CardId, tuple[Card, tuple[str, ...]]], now: datetime) -> tuple[RankedThread, ...]:
    """The decisions of these threads: of those that name most files first, then the newest."""
    with_one = [(card, files) for card, files in naming.values() if card.decisions]
    with_one.sort(key=lambda each: (-len(each[1]), -_moment(newest_decision(each[0])), *_order(each[0].id)))
    return tuple(
        with_newest(card, f"{touches(files)}; {decided_when(newest_decision(card), now)}") for card, files in with_one
    )


def newest_decision(card: Card) -> Ruling:
    """Of its decisions the last one, if possible one that stands; of those of one moment the last that is noted."""
    return max(reversed(card.decisions), key=lambda ruling: (not ruling.superseded_by, _moment(ruling)))


def with_newest(card: Card, why: str) -> RankedThread:
    """The thread with its newest decision alone."""
    return RankedThread(card._replace(decisions=(newest_decision(card),)), 0.0, (why,))


def _moment(ruling: Ruling) -> float:
    return ruling.at.timestamp() if ruling.at else 0.0


def decided_when(ruling: Ruling, now: datetime) -> str:
    if ruling.at is None:
        return "decided at an unknown time"
    days = (now - ruling.at).days
    if days <= 0:
        return "decided in the last day"
    if days < _DAYS:
        return f"decided {days} day{'s' * (days > 1)} ago"
    return f"decided on {ruling.at.date().isoformat()}"


def _order(key: CardId) -> tuple[bool, CardId]:
    return isinstance(key, str), key
