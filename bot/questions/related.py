"""Finds the threads that name some files, the open pull requests about them, and threads one link away from a hit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import NamedTuple

from bot.domain.ages import days_ago
from bot.domain.card import Card, CardId, Ruling, id_order
from bot.domain.kinds import Kind
from bot.questions.named_files import NamedFile, files_in_folders, named_files
from bot.questions.requests import Cards
from bot.questions.smart_search import RankedThread, best_first, files_reason, recency
from bot.questions.worktree_query import MAX_FILES

MAX_PER_HIT = 5
MAX_NEIGHBOURS = 20
_LINK_KINDS = ("fix", "duplicate", "reference")
"""Kinds of links, strongest first."""


class Neighbour(NamedTuple):
    """A thread next to a hit. ``kind`` as in `bot.domain.card.CardLink`; ``direction`` is ``to`` if ``hit`` points at
    the thread, ``from`` if the thread points at it."""

    card: Card
    kind: str
    hit: CardId
    direction: str


def expand(ids: Iterable[CardId], cards: Cards) -> tuple[Neighbour, ...]:
    """The neighbours of these hits, at most 5 of each and 20 in all, each once and none a hit itself.

    In the order of the hits; for each hit the strongest links first, then the newest threads.
    """
    hits = list(dict.fromkeys(ids))
    positions = {hit: position for position, hit in enumerate(hits)}
    near: dict[CardId, list[tuple[CardId, str, str]]] = {hit: [] for hit in hits}
    for link in cards.links(hits):
        if link.source in positions and link.target not in positions:
            near[link.source].append((link.target, link.kind, "to"))
        elif link.target in positions and link.source not in positions:
            near[link.target].append((link.source, link.kind, "from"))
    cards_near = cards.cards(dict.fromkeys(key for each in near.values() for key, _, _ in each))
    found: dict[CardId, Neighbour] = {}
    for hit in hits:
        neighbours = [
            Neighbour(cards_near[key], kind, hit, direction)
            for key, kind, direction in near[hit]
            if key in cards_near and key not in found
        ]
        best: dict[CardId, Neighbour] = {}
        for neighbour in sorted(neighbours, key=_strongest_first):
            best.setdefault(neighbour.card.id, neighbour)
        found |= dict(list(best.items())[:MAX_PER_HIT])
    return tuple(found.values())[:MAX_NEIGHBOURS]


def _strongest_first(neighbour: Neighbour) -> tuple[int, float, bool, CardId, str]:
    kind = _LINK_KINDS.index(neighbour.kind) if neighbour.kind in _LINK_KINDS else len(_LINK_KINDS)
    return kind, -neighbour.card.updated_at.timestamp(), *id_order(neighbour.card.id), neighbour.direction


class FileThread(NamedTuple):
    """A thread and the files in question that it names (at least one)."""

    card: Card
    files: tuple[NamedFile, ...]


_RELATIVE_DAYS = 30


def rank_by_files(mentions: Iterable[FileThread], now: datetime) -> tuple[RankedThread, ...]:
    """The threads that name most of the files first; recent changes count as in a search."""
    return best_first(
        RankedThread(card, len(files) * recency(card.updated_at, now), (files_reason(files),))
        for card, files in mentions
    )


def open_pulls(mentions: Mapping[CardId, FileThread], shown: Iterable[Card], cards: Cards) -> tuple[RankedThread, ...]:
    """The open pull requests that say they close one of the ``shown`` issues, then those that name most of the files,
    then the newest."""
    issues = {card.id for card in shown if card.kind == Kind.ISSUE and card.state == "open"}
    sources = [link.source for link in cards.links(issues) if link.target in issues] if issues else []
    candidates = {key: card for key, (card, _) in mentions.items()} | cards.cards(dict.fromkeys(sources))
    found: list[tuple[tuple[bool, int, float, tuple[bool, CardId]], RankedThread]] = []
    for key, card in candidates.items():
        closed = [number for number in card.closes if number in issues]
        files = mentions[key][1] if key in mentions else ()
        why = [f"says that it closes {', '.join(f'#{number}' for number in closed)}"] if closed else []
        why += [files_reason(files)] if files else []
        if card.kind == Kind.PULL and card.state == "open" and why:
            sort_key = (not closed, -len(files), -card.updated_at.timestamp(), id_order(key))
            found.append((sort_key, RankedThread(card, 0.0, tuple(why))))
    return tuple(one for _, one in sorted(found, key=lambda each: each[0]))


def threads_naming(files: Mapping[str, float], cards: Cards) -> dict[CardId, FileThread]:
    """The threads that name some of these files, given with how much each counts, in 0..1."""
    return _with_cards(named_files(files, cards), cards)


def threads_naming_paths(paths: Iterable[str], cards: Cards) -> dict[CardId, FileThread]:
    """The threads that name these files, or files in these folders; a path may be either (`WorkRequest`)."""
    known = list(dict.fromkeys(paths))[:MAX_FILES]
    files = named_files(dict.fromkeys((path for path in known if not path.endswith("/")), 1.0), cards)
    return _with_cards(_merged(files, files_in_folders(known, cards)), cards)


def _with_cards(found: Mapping[CardId, tuple[NamedFile, ...]], cards: Cards) -> dict[CardId, FileThread]:
    return {key: FileThread(card, found[key]) for key, card in cards.cards(found).items()}


def _merged(
    *findings: Mapping[CardId, tuple[NamedFile, ...]],
) -> dict[CardId, tuple[NamedFile, ...]]:
    """All of these findings together, each file of a thread once."""
    found: dict[CardId, dict[str, NamedFile]] = {}
    for finding in findings:
        for key, files in finding.items():
            for file in files:
                found.setdefault(key, {}).setdefault(file.path.casefold(), file)
    return {key: tuple(files.values()) for key, files in found.items()}


def with_files(
    threads: Mapping[CardId, FileThread], is_wanted: Callable[[NamedFile], bool]
) -> dict[CardId, FileThread]:
    """The threads that name wanted files, each with only these."""
    wanted = {key: tuple(filter(is_wanted, files)) for key, (_, files) in threads.items()}
    return {key: FileThread(threads[key].card, files) for key, files in wanted.items() if files}


def decisions_of(threads: Iterable[FileThread], now: datetime) -> tuple[RankedThread, ...]:
    """The newest decision of each of these threads.

    First those of threads that name most of the files, where a file counts less the more threads name it; then those
    in force; then those that speak of a file, in the sentence or the title; then those of threads that write its
    folder too; then the newest.
    """
    decided = sorted((thread for thread in threads if thread.card.decisions), key=_most_specific_first)
    return tuple(
        with_newest(card, f"{files_reason(files)}; {decided_when(newest_decision(card), now)}")
        for card, files in decided
    )


def _most_specific_first(thread: FileThread) -> tuple[float, bool, bool, bool, float, tuple[bool, CardId]]:
    ruling = newest_decision(thread.card)
    sentence = f"{thread.card.title}\n{ruling.text}".casefold()
    return (
        -sum(file.weight * file.telling for file in thread.files),
        bool(ruling.superseded_by),
        not any(file.name.casefold() in sentence for file in thread.files),
        not any(file.is_exact for file in thread.files),
        -_moment(ruling),
        id_order(thread.card.id),
    )


def newest_decision(card: Card) -> Ruling:
    """The newest of its decisions, if possible one in force; a tie goes to the one listed last."""
    return max(reversed(card.decisions), key=lambda ruling: (not ruling.superseded_by, _moment(ruling)))


def with_newest(card: Card, why: str) -> RankedThread:
    """The thread with only its newest decision."""
    return RankedThread(card._replace(decisions=(newest_decision(card),)), 0.0, (why,))


def _moment(ruling: Ruling) -> float:
    return ruling.at.timestamp() if ruling.at else 0.0


def decided_when(ruling: Ruling, now: datetime) -> str:
    if ruling.at is None:
        return "decided at an unknown time"
    days = (now - ruling.at).days
    if days <= 0:
        return "decided in the last day"
    if days < _RELATIVE_DAYS:
        return f"decided {days_ago(days)}"
    return f"decided on {ruling.at.date().isoformat()}"
