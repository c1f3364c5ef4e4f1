"""Searches the threads of many repositories, and shows them as the hits of a search in one are shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bot.domain.card import LEAST_PART, Card, Ending
from bot.domain.kinds import Kind
from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.thread import ThreadId
from bot.errors import UserError
from bot.questions.requests import OrganisationRequest
from bot.questions.views import COMMIT, Item, Row, Shape, full_row, holds
from bot.reading.analyzer import terms
from bot.recall.candidates import Candidates, OrganisationUnavailable

ASKED = (200, 2_000, 20_000)
"""How many threads the engine is asked for: more where filters leave too few of them."""

IN_TITLES = "Phrases are looked for in titles only: the index of an organisation has no texts."


CUT = "Only the best {:,} threads were looked through: try rarer words."


class OrganisationHit(NamedTuple):
    """A thread of the repository ``name`` ("owner/name"); the rest is as in `bot.domain.card.CardHit`.

    The id of ``card`` is how the thread is cited, such as ``octo-org/sdk#12``; its references are in full, too.
    """

    name: str
    thread: OrganisationThread
    card: Card
    score: float
    part: float
    terms: tuple[str, ...]


class OrganisationHits(NamedTuple):
    """The threads that a search found, best first, and notes on it."""

    found: tuple[OrganisationHit, ...]
    notes: tuple[str, ...] = ()


def search_organisation(asked: OrganisationRequest, index: Candidates, names: Mapping[int, str]) -> OrganisationHits:
    """Find the threads that hold half of the words by rarity, in these repositories (number → "owner/name").

    Raises UserError for a filter that the index cannot answer, OrganisationUnavailable where it cannot be asked.
    """
    weights = _weights(asked, index)
    found: list[OrganisationHit] = []
    looked, is_all = 0, False
    for most in ASKED:
        asked_for = max(most, asked.limit)
        try:
            candidates = index.search([*weights], [*names], before=asked.meant.before, limit=asked_for)
        except OrganisationUnavailable:  # so many may take too long
            if not looked:
                raise
            break
        looked, is_all = len(candidates), len(candidates) < asked_for
        found = [hit for hit in _judged(candidates, weights, names) if hit.part >= LEAST_PART and asked.keeps(hit.card)]
        if len(found) >= asked.limit or is_all:
            break
    is_cut = len(found) < asked.limit and not is_all
    notes = (IN_TITLES,) * bool(asked.meant.phrases) + (CUT.format(looked),) * is_cut
    return OrganisationHits(tuple(found[: asked.limit]), notes)


def _weights(asked: OrganisationRequest, index: Candidates) -> dict[str, float]:
    """Term → its share of the query by rarity; one that nobody uses counts as the rarest that somebody does."""
    query = asked.meant
    if lacking := [
        name for name, given in (("labels", asked.choice.labels or query.labels), ("roles", query.roles)) if given
    ]:
        raise UserError(f"the index of an organisation has no {' and no '.join(lacking)}: leave that filter out")
    known = [kind.value for kind in Kind if kind.traits.is_suggested]
    if not ({asked.choice.kind, *query.kinds} - {"all"}) <= {*known}:
        raise UserError(f"the index of an organisation has only the kinds {' and '.join(known)}")
    counts = Counter(terms(query.words))
    if not counts:
        raise UserError("a search in many repositories needs words to look for, besides filters")
    rarity = index.rarity(counts)
    rarest = max(rarity.values(), default=1.0)
    found = {term: count * rarity.get(term, rarest) for term, count in counts.items()}
    whole = sum(found.values())
    return {term: weight / whole for term, weight in found.items()}


def _judged(
    found: Iterable[FoundThread], weights: Mapping[str, float], names: Mapping[int, str]
) -> Iterator[OrganisationHit]:
    for one in found:
        thread, name = one.thread, names[one.thread.repository]
        held = sorted(weights.keys() & {*thread.terms}, key=lambda term: (-weights[term], term))
        part = min(1.0, sum(weights[term] for term in held))
        yield OrganisationHit(name, thread, _card(thread, name), one.score, part, tuple(held))


def _card(thread: OrganisationThread, name: str) -> Card:
    ended = thread.outcome
    ending = Ending(
        ended.kind, ended.quote, _in_full(ended.fix or "", name), ended.release or "", ended.author or "",
        ended.role or "", ended.at, ended.comment_id,
    )  # fmt: skip
    original = None if ended.duplicate_of is None else _cited(ended.duplicate_of, name)
    return Card(
        id=_cited(thread.id, name), kind=thread.kind, title=thread.title, author=thread.author,
        state="closed" if thread.closed_at else "open", created_at=thread.created_at,
        updated_at=thread.closed_at or thread.created_at, closed_at=thread.closed_at,
        state_reason=thread.state_reason, turn_count=0, files=thread.files, ending=ending,
        duplicate_of=original,
    )  # fmt: skip


def _cited(key: ThreadId, name: str) -> str:
    return f"{name}#{key}" if isinstance(key, int) else f"{name} {key}"


def _in_full(fix: str, name: str) -> str:
    """A reference (``#12``, a commit) as it is written in another repository."""
    if fix.startswith("#"):
        return f"{name}{fix}"
    return f"{name}@{fix}" if COMMIT.fullmatch(fix) else fix


def organisation_row(hit: OrganisationHit, words: str, shape: Shape = full_row, **fields: Any) -> Row:
    """The hit as a row of a search, with its repository. Values that the index does not have are empty."""
    row = shape(hit.card, "", repository=hit.name, **fields, why=holds(hit.terms, words), passages=[])
    return row | {"id": hit.thread.id, "url": hit.thread.url}


def organisation_items(found: Sequence[OrganisationHit], words: str) -> list[Item]:
    """The hits as entries of a list."""
    return [Item(hit.card, hit.thread.url, hit.score, words=words) for hit in found]
