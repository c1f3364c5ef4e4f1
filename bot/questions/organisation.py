"""Searches the threads of many repositories, and shows hits in the form of a search in one repository."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from bot.domain.card import Card, Ending
from bot.domain.kinds import Kind
from bot.domain.organisation import FoundThread, OrganisationThread
from bot.domain.thread import ThreadId
from bot.errors import UserError
from bot.index.scoring import MIN_QUERY_SHARE, least, query_share, query_shares
from bot.questions.fields import Item
from bot.questions.requests import WordSearch
from bot.questions.views import COMMIT_ID
from bot.reading.analyzer import terms
from bot.recall.candidates import Candidates, OrganisationUnavailable

CANDIDATE_LIMITS = (200, 2_000, 20_000)
"""How many threads the engine is asked for: more if filters leave too few."""

TITLES_NOTE = "Phrases are matched in titles only: the index of an organisation has no texts."


INCOMPLETE_NOTE = "Only the best {:,} threads were searched: try rarer words."


class OrganisationHit(NamedTuple):
    """A thread of the repository ``name`` ("owner/name"); the rest is as in `bot.domain.card.CardHit`.

    The id of ``card`` is the full reference, such as ``octo-org/sdk#12``; the references in it are full, too.
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


def search_organisation(request: WordSearch, index: Candidates, names: Mapping[int, str]) -> OrganisationHits:
    """Find the threads that hold half of the words by rarity, in these repositories (number → "owner/name").

    The index knows when a thread was opened and closed, and no other changes. Raises UserError for a filter that it
    does not support, OrganisationUnavailable if it cannot be read.
    """
    weights = _weights(request, index)
    hits: list[OrganisationHit] = []
    searched, is_complete = 0, False
    for minimum in CANDIDATE_LIMITS:
        limit = max(minimum, request.limit)
        try:
            candidates = index.search([*weights], [*names], before=request.parsed_query.before, limit=limit)
        except OrganisationUnavailable:  # so many may take too long
            if not searched:
                raise
            break
        searched, is_complete = len(candidates), len(candidates) < limit
        hits = [
            hit
            for hit in _to_hits(candidates, weights, names)
            if hit.part >= least(MIN_QUERY_SHARE) and _matches(request, hit.card)
        ]
        if len(hits) >= request.limit or is_complete:
            break
    is_incomplete = len(hits) < request.limit and not is_complete
    notes = (TITLES_NOTE,) * bool(request.parsed_query.phrases) + (INCOMPLETE_NOTE.format(searched),) * is_incomplete
    return OrganisationHits(tuple(hits[: request.limit]), notes)


def _matches(request: WordSearch, card: Card) -> bool:
    """Whether this thread passes all filters, and its title has the phrases."""
    query = request.parsed_query
    return (
        request.choice.matches(card)
        and query.matches_thread(card)
        and query.matches_message(card.author, None, card.created_at)
        and len(query.phrases_in(card.title)) == len({*query.phrases})
    )


def _weights(request: WordSearch, index: Candidates) -> dict[str, float]:
    """Term → its share of the query by rarity. A term in no thread counts as the rarest of the others."""
    query = request.parsed_query
    if unsupported := [
        name
        for name, is_given in (("labels", request.choice.labels or query.labels), ("roles", query.roles))
        if is_given
    ]:
        raise UserError(f"the index of an organisation has no {' and no '.join(unsupported)}: leave that filter out")
    kinds = [kind.value for kind in Kind if kind.traits.is_suggested]
    if not ({request.choice.kind, *query.kinds} - {"all"}) <= {*kinds}:
        raise UserError(f"the index of an organisation has only the kinds {' and '.join(kinds)}")
    counts = Counter(terms(query.words))
    if not counts:
        raise UserError("a search in many repositories needs words as well as filters")
    rarity = index.rarity(counts)
    rarest = max(rarity.values(), default=1.0)
    return query_shares({term: count * rarity.get(term, rarest) for term, count in counts.items()})


def _to_hits(
    threads: Iterable[FoundThread], weights: Mapping[str, float], names: Mapping[int, str]
) -> Iterator[OrganisationHit]:
    for hit in threads:
        thread, name = hit.thread, names[hit.thread.repository]
        matched = sorted(weights.keys() & {*thread.terms}, key=lambda term: (-weights[term], term))
        share = query_share(weights, matched)
        yield OrganisationHit(name, thread, _card(thread, name), hit.score, share, tuple(matched))


def _card(thread: OrganisationThread, name: str) -> Card:
    outcome = thread.outcome
    ending = Ending(
        outcome.kind, outcome.quote, _full_reference(outcome.fix or "", name), outcome.release or "",
        outcome.author or "", outcome.role or "", outcome.at, outcome.comment_id,
    )  # fmt: skip
    original = None if outcome.duplicate_of is None else _full_key(outcome.duplicate_of, name)
    return Card(
        id=_full_key(thread.id, name), kind=thread.kind, title=thread.title, author=thread.author,
        state="closed" if thread.closed_at else "open", created_at=thread.created_at,
        updated_at=thread.closed_at or thread.created_at, closed_at=thread.closed_at,
        state_reason=thread.state_reason, turn_count=0, files=thread.files, ending=ending,
        duplicate_of=original,
    )  # fmt: skip


def _full_key(key: ThreadId, name: str) -> str:
    return f"{name}#{key}" if isinstance(key, int) else f"{name} {key}"


def _full_reference(fix: str, name: str) -> str:
    """A reference (``#12``, a commit) as written in another repository."""
    if fix.startswith("#"):
        return f"{name}{fix}"
    return f"{name}@{fix}" if COMMIT_ID.fullmatch(fix) else fix


def organisation_items(hits: Sequence[OrganisationHit], words: str) -> list[Item]:
    """The hits as threads of an answer. What the index does not have is empty."""
    return [
        Item(
            hit.card, hit.thread.url, hit.score, words=words, terms=hit.terms, part=hit.part,
            repository=hit.name, id=hit.thread.id,
        )
        for hit in hits
    ]  # fmt: skip
