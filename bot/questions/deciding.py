"""Puts the threads that answer a question first: those that decide its topic, then those about it.

A thread decides the topic if one of its decisions, together with the title, names most of it, or if its title says what
was done ("Drop Redis" for "why did we drop Redis?"). It is about the topic if its title names most of it; if no thread
decides, its best message counts too. Shares of the topic are weighted by the rarity of words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bot.domain.card import Card, CardHit, CardId, ThreadMessage
from bot.domain.duplicates import duplicate_chain
from bot.index.scoring import least, query_share, query_shares
from bot.questions.requests import CardSearch, ReadMessages
from bot.reading.analyzer import terms
from bot.reading.search_query import SearchQuery

MIN_TOPIC_SHARE = 0.6
"""Minimum part of the topic that a decision with its title, or a title with a message, must name."""

MAX_ANSWERS = 25
"""Most threads that are read to answer a question."""

MIN_SHARE_OF_BEST = 0.75
"""A thread that names less of the topic than this part of what the best one names only shares a word with it."""


def answers_first(hits: Sequence[CardHit], query: SearchQuery, cards: CardSearch, read: ReadMessages) -> list[CardHit]:
    """The hits in their order, those that decide the topic first if decisions are sought.

    For a question, threads that only ask it themselves are left out, and so are those not about the topic. A duplicate
    of another hit gives way to it.
    """
    if query.is_question:
        hits = _without_askers(hits[:MAX_ANSWERS], query, read)
    if not query.decides:
        return _near_best(_without_duplicates(hits), {hit.card.id: hit.part for hit in hits})
    shares, verb = topic_shares(query, cards), frozenset(terms(query.verb))
    decided = {hit.card.id: _decided_share(hit.card, shares, verb) for hit in hits}
    hits = [hit._replace(decides=decided[hit.card.id] >= least(MIN_TOPIC_SHARE)) for hit in hits]
    hits = _without_duplicates(hits)
    deciding = sorted((hit for hit in hits if hit.decides), key=lambda hit: not _has_done(hit.card, verb))
    others = [hit for hit in hits if not hit.decides]
    if not query.is_question:
        return [*deciding, *others]
    named = {
        hit.card.id: max(decided[hit.card.id], _about_share(hit, shares, with_message=not deciding)) for hit in hits
    }
    return _near_best([*deciding, *(hit for hit in others if named[hit.card.id] >= least(MIN_TOPIC_SHARE))], named)


def topic_shares(query: SearchQuery, cards: CardSearch) -> Mapping[str, float]:
    """The share of each word in the topic of a query."""
    return query_shares(cards.rarity(dict.fromkeys(terms(query.words))))


def topic_share(text: str, shares: Mapping[str, float]) -> float:
    """How much of the topic a text names."""
    return query_share(shares, set(terms(text)))


def _decided_share(card: Card, shares: Mapping[str, float], verb: frozenset[str]) -> float:
    """How much of the topic a decision names together with the title, or the title alone if it has the verb."""
    rulings = [f"{card.title}\n{ruling.text}" for ruling in card.decisions]
    rulings += [card.title] if verb and verb <= {*terms(card.title)} and _is_done(card) else []
    return max((topic_share(text, shares) for text in rulings), default=0.0)


def _is_done(card: Card) -> bool:
    """Whether what the title says was done: merged, or closed as completed."""
    return card.merged_at is not None or (card.state == "closed" and card.state_reason in ("", "completed"))


def _has_done(card: Card, verb: frozenset[str]) -> bool:
    return verb <= {*terms("\n".join([card.title, *(ruling.text for ruling in card.decisions)]))}


def _without_duplicates(hits: Sequence[CardHit]) -> list[CardHit]:
    """The hits, with the original, if it is one, in place of the first of its duplicates; unless only the duplicate
    decides."""
    by_id = {hit.card.id: hit for hit in hits}

    def original_of(key: CardId) -> CardId | None:
        target = by_id[key].card.duplicate_of
        return target if target in by_id else None

    found: dict[CardId, CardHit] = {}
    for hit in hits:
        original = by_id[duplicate_chain(hit.card.id, original_of)[-1]]
        original = hit if hit.decides and not original.decides else original
        found.setdefault(original.card.id, original)
    return list(found.values())


def _about_share(hit: CardHit, shares: Mapping[str, float], *, with_message: bool) -> float:
    message = hit.message.terms if hit.message and with_message else ()
    return query_share(shares, {*terms(hit.card.title), *message})


def _near_best(hits: Sequence[CardHit], named: Mapping[CardId, float]) -> list[CardHit]:
    best = max((named[hit.card.id] for hit in hits), default=0.0)
    return [hit for hit in hits if named[hit.card.id] >= least(MIN_SHARE_OF_BEST * best)]


def _without_askers(hits: Sequence[CardHit], query: SearchQuery, read: ReadMessages) -> list[CardHit]:
    messages = read([hit.card.id for hit in hits])
    return [hit for hit in hits if not _only_asks(hit.card, messages.get(hit.card.id, ()), query)]


def _only_asks(card: Card, messages: Sequence[ThreadMessage], query: SearchQuery) -> bool:
    """Whether a thread asks about earlier decisions, and nobody else whose words may be shown has answered."""
    others = (message for message in messages[1:] if message.author != card.author and message.text)
    if card.decisions or not all(message.author.endswith("[bot]") for message in others):
        return False
    from bot.reading.questions import recall_question  # slow to load
    from bot.reading.signals import strip_boilerplate

    texts = (card.title, *(strip_boilerplate(message.text) for message in messages[:1]))
    return any(recall_question(text, query.questions) for text in texts)
