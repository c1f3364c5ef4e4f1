"""Finds threads by a query, in what they are about and in what was said there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from bot.domain.card import LEAST_PART, Card, CardHit, CardId, MessageHit
from bot.questions.order import ThreadEvidence, merged
from bot.questions.passages import with_phrases
from bot.questions.requests import Cards, Keep, ReadMessages
from bot.reading.analyzer import terms
from bot.reading.search_query import SearchQuery

CANDIDATES, MESSAGES = 50, 100
"""Least numbers of threads and of messages that are compared; more if more are wanted."""

CHECKED = 300
"""Most threads whose texts are read to see whether a phrase stands there."""


def find_threads(
    query: SearchQuery, cards: Cards, read: ReadMessages, *, limit: int, keep: Keep | None
) -> list[CardHit]:
    """The ``limit`` best threads for a query in the order of `bot.questions.order`, each with its best message.

    A hit holds half of the words by rarity, in its title, opening text and digest or in one message, and all phrases.
    ``keep`` filters threads by more than the query does.
    """
    keep = _wanted(query, keep)
    weights = {term: float(count) for term, count in Counter(terms(query.words)).items()}
    if not weights:
        return [CardHit(card, 0.0, 1.0, ()) for card in _newest(query, cards, limit, keep)]
    most = CHECKED if query.phrases else limit
    about = cards.search(weights, limit=max(CANDIDATES, 2 * most), keep=_opened(query, keep), floor=LEAST_PART)
    said = cards.search_messages(
        weights, limit=max(MESSAGES, 2 * most), keep=_written(query, cards, keep), floor=LEAST_PART
    )
    known = {one.card.id: one.card for one in about}
    ranked = merged({one.card.id: ThreadEvidence(one.score, one.part, one.terms) for one in about}, said)
    if query.phrases:
        ranked = with_phrases(ranked[:CHECKED], query, _titles(ranked[:CHECKED], cards), read)
    ranked = ranked[:limit]
    known |= cards.cards([key for key, _ in ranked if key not in known])
    return [CardHit(known[key], *evidence) for key, evidence in ranked if key in known]


def _newest(query: SearchQuery, cards: Cards, limit: int, keep: Keep | None) -> list[Card]:
    if query.words or not query.is_narrow:
        return []
    return cards.newest(limit, _opened(query, keep) or (lambda _: True))


def _titles(ranked: Sequence[tuple[CardId, ThreadEvidence]], cards: Cards) -> dict[CardId, str]:
    return {key: card.title for key, card in cards.cards([key for key, _ in ranked]).items()}


def _wanted(query: SearchQuery, keep: Keep | None) -> Keep | None:
    """Whether a thread is of the kind that the query says; None if all are."""
    if not query.is_of_threads:
        return keep
    return lambda card: query.keeps_thread(card) and (keep is None or keep(card))


def _opened(query: SearchQuery, keep: Keep | None) -> Keep | None:
    """Whether a thread is wanted, and its opening is by whom and of when the query says. Its role is not known."""
    if not query.is_of_messages:
        return keep
    return lambda card: query.keeps_message(card.author, None, card.created_at) and (keep is None or keep(card))


def _written(query: SearchQuery, cards: Cards, keep: Keep | None) -> Callable[[MessageHit], bool] | None:
    """Whether a message is wanted, and its thread; each thread is judged once."""
    if keep is None:
        return (lambda hit: query.keeps_message(hit.author, hit.role, hit.at)) if query.is_of_messages else None
    judged: dict[CardId, bool] = {}

    def is_wanted(hit: MessageHit) -> bool:
        if not query.keeps_message(hit.author, hit.role, hit.at):
            return False
        if hit.thread not in judged:
            card = cards.cards([hit.thread]).get(hit.thread)
            judged[hit.thread] = card is not None and keep(card)
        return judged[hit.thread]

    return is_wanted
