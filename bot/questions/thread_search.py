"""Finds threads by a query: by what they are about, and by what was said there."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence

from bot.domain.card import Card, CardHit, CardId, MessageHit
from bot.index.scoring import MIN_QUERY_SHARE, least
from bot.questions.evidence import ThreadEvidence, rank_by_evidence
from bot.questions.passages import filter_by_phrases
from bot.questions.requests import CardSearch, Keep, ReadMessages
from bot.reading.analyzer import ALL_STOP_WORDS, terms
from bot.reading.search_query import SearchQuery, fold

MIN_CANDIDATES, MIN_MESSAGES = 50, 100
"""Minimum numbers of threads and of messages that are compared; a larger ``limit`` raises them."""

MAX_PHRASE_CHECKS = 300
"""Maximum number of threads whose texts are searched for a phrase."""


def find_threads(
    query: SearchQuery, cards: CardSearch, read: ReadMessages, *, limit: int, keep: Keep | None = None
) -> list[CardHit]:
    """The ``limit`` best threads for a query in the order of `bot.questions.evidence`, each with its best message.

    A hit holds all phrases and half of the words by rarity, in its title, opening text and digest or in one message.
    ``keep`` filters threads in addition to the query. If decisions are sought, the threads that decide come first
    (`bot.questions.deciding`).
    """
    if query.is_question and query.numbers:
        return []  # the threads that it names are the answer
    keep = _thread_filter(query, keep)
    weights = {term: float(count) for term, count in Counter(terms(query.words)).items()}
    if not weights:
        has_text = query.words and not query.numbers and fold(query.words) not in ALL_STOP_WORDS
        listed = (_literal if has_text else _newest)(query, cards, limit, keep)
        return [CardHit(card, 0.0, 1.0, ()) for card in listed]
    enough = MAX_PHRASE_CHECKS if query.phrases else limit
    hits = cards.search(weights, limit=max(MIN_CANDIDATES, 2 * enough), keep=keep, floor=MIN_QUERY_SHARE)
    messages = cards.search_messages(
        weights,
        limit=max(MIN_MESSAGES, 2 * enough),
        keep=_message_filter(query, cards, keep),
        floor=0.0 if query.has_message_filters else MIN_QUERY_SHARE,
    )
    if query.has_message_filters:
        hits, messages = _said(query, hits, messages)
    ranked = rank_by_evidence({one.card.id: ThreadEvidence(one.score, one.part, one.terms) for one in hits}, messages)
    known = {one.card.id: one.card for one in hits}
    known |= cards.cards([key for key, _ in ranked if key not in known])
    if query.phrases:
        titles = {key: card.title for key, card in known.items()}
        ranked = filter_by_phrases(ranked[:MAX_PHRASE_CHECKS], query, titles, read)
    found = [CardHit(known[key], *evidence) for key, evidence in ranked if key in known]
    if query.decides or query.is_question:
        from bot.questions.deciding import answers_first

        found = answers_first(found, query, cards, read)
    return found[:limit]


def _said(
    query: SearchQuery, hits: Sequence[CardHit], messages: Sequence[MessageHit]
) -> tuple[list[CardHit], list[MessageHit]]:
    """The threads and messages that the author and time in the query fit: a thread with enough of the words if one of
    these messages has some of them, a message with enough of them by itself."""
    opened = {hit.card.id for hit in hits if query.matches_message(hit.card.author, None, hit.card.created_at)}
    spoken = opened | {hit.thread for hit in messages}
    threads = [hit for hit in hits if hit.card.id in spoken]
    found = {hit.card.id for hit in threads}
    return threads, [hit for hit in messages if hit.thread in found or hit.part >= least(MIN_QUERY_SHARE)]


def _newest(query: SearchQuery, cards: CardSearch, limit: int, keep: Keep | None) -> list[Card]:
    if query.words or not query.has_filters:
        return []
    if not query.has_message_filters or not cards.messages:
        return cards.newest(limit, _opening_filter(query, keep) or (lambda _: True))
    wanted = cards.threads_with(lambda hit: query.matches_message(hit.author, hit.role, hit.at))
    return cards.newest(limit, lambda card: card.id in wanted and (keep is None or keep(card)))


def _literal(query: SearchQuery, cards: CardSearch, limit: int, keep: Keep | None) -> list[Card]:
    """The threads that have the words exactly as typed, first those with them in the title, the newest first. For words
    that are no terms of the index: too short, too common, or signs (``R``, ``to be or not to be``, ``2^31-1``)."""
    words = fold(query.words)
    before, after = (r"\b" if edge.isalnum() else "" for edge in (words[:1], words[-1:]))
    needle = re.compile(before + re.escape(words) + after)
    keep = _opening_filter(query, keep)

    def has_words(card: Card) -> bool:
        texts = (card.title, card.summary, card.ending.quote, *(decision.text for decision in card.decisions))
        return bool(needle.search(fold("\n".join(texts)))) and (keep is None or keep(card))

    found = cards.newest(cards.size, has_words)
    return sorted(found, key=lambda card: not needle.search(fold(card.title)))[:limit]


def _thread_filter(query: SearchQuery, keep: Keep | None) -> Keep | None:
    """A filter for the threads that the query and ``keep`` accept; None if all pass."""
    if not query.has_thread_filters:
        return keep
    return lambda card: query.matches_thread(card) and (keep is None or keep(card))


def _opening_filter(query: SearchQuery, keep: Keep | None) -> Keep | None:
    """A filter for threads whose opening also matches the author and time in the query. Its role is unknown here."""
    if not query.has_message_filters:
        return keep
    return lambda card: query.matches_message(card.author, None, card.created_at) and (keep is None or keep(card))


def _message_filter(query: SearchQuery, cards: CardSearch, keep: Keep | None) -> Callable[[MessageHit], bool] | None:
    """A filter for messages that match the query, in threads that ``keep`` accepts; each thread is checked once."""
    if keep is None:
        return (lambda hit: query.matches_message(hit.author, hit.role, hit.at)) if query.has_message_filters else None
    judged: dict[CardId, bool] = {}

    def is_wanted(hit: MessageHit) -> bool:
        if not query.matches_message(hit.author, hit.role, hit.at):
            return False
        if hit.thread not in judged:
            facts = cards.facts([hit.thread]).get(hit.thread)
            judged[hit.thread] = facts is not None and keep(facts)
        return judged[hit.thread]

    return is_wanted
