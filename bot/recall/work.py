"""What there is to know of the work at hand, or of some files, without a question asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from bot.card import Card, CardId, Ruling
from bot.reading.words import terms
from bot.recall.cards import Cards
from bot.recall.checkout import Checkout
from bot.recall.hop import expand
from bot.recall.implicit import MAX_FILES, Implicit, implicit, is_telling
from bot.recall.smart import SHOWN, Ranked, recency, reference, smart, touches, written

EACH = 3
"""Threads in a section of `what`."""

NEAR = 10
"""Threads in a section of `related`."""

_DAYS = 30


class Ruled(NamedTuple):
    """The newest decision of a thread, and why it is shown."""

    card: Card
    ruling: Ruling
    why: str


@dataclass(frozen=True, slots=True)
class Work:
    """At most three in each section, no thread twice in one; what they were found by, and what could not be used."""

    related: tuple[Ranked, ...] = ()
    decisions: tuple[Ruled, ...] = ()
    tasks: tuple[Ranked, ...] = ()
    recent: tuple[Ruled, ...] = ()
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()

    @property
    def is_relevant(self) -> bool:
        """Whether anything is related to the work: what was decided last, about anything, need not be."""
        return bool(self.related or self.decisions or self.tasks)


@dataclass(frozen=True, slots=True)
class Related:
    """The threads that name some files, those that name most of them first, and what was decided in them."""

    threads: tuple[Ranked, ...] = ()
    decisions: tuple[Ruled, ...] = ()


def what(checkout: Checkout, cards: Cards, now: datetime) -> Work:
    """What is related to the branch, decided about its files, still open, and was decided last anywhere."""
    signs = implicit(checkout)
    found = smart("", checkout, cards, now, limit=SHOWN)
    decisions = _decided(_naming(signs.files, cards), now)[:EACH]
    shown = {one.card.id for one in decisions}
    newest = (card for card in cards.decided(EACH + len(shown)) if card.id not in shown and card.decisions)
    return Work(
        related=found.hits[:EACH],
        decisions=decisions,
        tasks=_tasks(signs, found.hits, cards),
        recent=tuple(_ruled(card, _age(_newest(card), now)) for card in newest)[:EACH],
        used=found.used,
        unused=found.unused,
    )


def related(paths: Iterable[str], cards: Cards, now: datetime) -> Related:
    """The threads that name these files, and their decisions, newest first; at most ten of each."""
    naming = _naming(tuple(dict.fromkeys(paths))[:MAX_FILES], cards, any_file=True)
    threads = [
        Ranked(card, len(files) * recency(card.updated_at, now), (touches(files),)) for card, files in naming.values()
    ]
    threads.sort(key=lambda one: (-one.score, -one.card.updated_at.timestamp(), *_order(one.card.id)))
    return Related(tuple(threads[:NEAR]), _decided(naming, now)[:NEAR])


def _naming(
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


def _decided(naming: dict[CardId, tuple[Card, tuple[str, ...]]], now: datetime) -> tuple[Ruled, ...]:
    """The decisions of these threads: of those that name most files first, then the newest."""
    with_one = [(card, files) for card, files in naming.values() if card.decisions]
    with_one.sort(key=lambda each: (-len(each[1]), -_moment(_newest(each[0])), *_order(each[0].id)))
    return tuple(_ruled(card, f"{touches(files)}; {_age(_newest(card), now)}") for card, files in with_one)


def _tasks(signs: Implicit, hits: tuple[Ranked, ...], cards: Cards) -> tuple[Ranked, ...]:
    """Open issues: found themselves, then those about a word of the branch that its threads bear out, then links."""
    found = {one.card.id: one for one in hits if _is_task(one.card)}
    for one in _about(signs, hits, cards):
        found.setdefault(one.card.id, one)
    near = [one.card.id for one in hits[:EACH]]
    for hop in expand(dict.fromkeys((*signs.tickets, *near)), cards):
        if _is_task(hop.card):
            way = "names" if hop.direction == "from" else "is named by"
            found.setdefault(hop.card.id, Ranked(hop.card, 0.0, (f"{way} {reference(hop.hit)}",)))
    return tuple(found.values())[:EACH]


def _about(signs: Implicit, hits: tuple[Ranked, ...], cards: Cards) -> list[Ranked]:
    """Open issues whose titles have a word that the branch's name has, and a hit's title too."""
    borne = {term for one in hits for term in terms(one.card.title)} & signs.telling.keys()
    if not borne:
        return []
    found = cards.search(dict.fromkeys(borne, 1.0), limit=SHOWN, keep=_is_task)
    titles = {one.card.id: borne.intersection(terms(one.card.title)) for one in found}
    return [
        Ranked(one.card, 0.0, (f"its title has {', '.join(written(signs.text, sorted(titles[one.card.id])))}",))
        for one in found
        if titles[one.card.id]
    ]


def _is_task(card: Card) -> bool:
    return card.kind == "issue" and card.state == "open"


def _newest(card: Card) -> Ruling:
    """Of its decisions the last one; of those of one moment the last that is noted."""
    return max(reversed(card.decisions), key=_moment)


def _ruled(card: Card, why: str) -> Ruled:
    return Ruled(card, _newest(card), why)


def _moment(ruling: Ruling) -> float:
    return ruling.at.timestamp() if ruling.at else 0.0


def _age(ruling: Ruling, now: datetime) -> str:
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
