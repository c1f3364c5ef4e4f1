"""Hits of a search in many repositories: their order, and how one repository's threads are named elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from bot.domain.card import CardHit, CardId
from bot.domain.change_state import number_of
from bot.index.scoring import rank_key
from bot.questions.addresses import superseding_url
from bot.questions.fields import Item
from bot.questions.requests import WordSearch
from bot.questions.views import COMMIT_ID

Hit = TypeVar("Hit")


def best_of_all(hits: Iterable[Hit], request: WordSearch, hit_of: Callable[[Hit], CardHit]) -> list[Hit]:
    """The best hits of several repositories: the threads named in the search, those that decide, then by score.

    The scores compare if the same rarity of terms was used for all of them.
    """
    named = request.query.numbers

    def order(each: Hit) -> tuple[bool, bool, float, float]:
        hit = hit_of(each)
        return hit.card.id not in named, not hit.decides, rank_key(hit.score), -hit.card.updated_at.timestamp()

    return sorted(hits, key=order)[: request.limit]


def seen_from_outside(item: Item, name: str, home: str) -> Item:
    """The thread of the repository ``name`` with full references, such as ``octo-org/sdk#12``, in all that is shown."""
    card = item.card
    decisions = tuple(
        ruling._replace(
            superseded_by=_full_reference(superseding_url(card, ruling, home), name),
            done_in=_full_reference(ruling.done_in, name),
        )
        for ruling in card.decisions
    )
    shown = card._replace(
        id=_full_key(card.id, name),
        ending=card.ending._replace(fix=_full_reference(card.ending.fix, name)),
        duplicate_of=None if card.duplicate_of is None else _full_key(card.duplicate_of, name),
        decisions=decisions,
    )
    return item._replace(card=shown, id=card.id, repository=name)


def _full_key(key: CardId, name: str) -> str:
    return f"{name}#{key}" if isinstance(key, int) else f"{name} {key}"


def _full_reference(reference: str, name: str) -> str:
    """A reference (``#12``, a commit) as written in another repository."""
    if number_of(reference):
        return f"{name}{reference}"
    return f"{name}@{reference}" if COMMIT_ID.fullmatch(reference) else reference
