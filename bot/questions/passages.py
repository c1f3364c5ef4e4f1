"""What was said about the words of a search: the passages to show, and the phrases that must stand there."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bot.domain.card import CardId, MessageHit, Passage, SaidMessage
from bot.domain.kinds import Kind
from bot.questions.order import ThreadEvidence
from bot.reading.passage import passage
from bot.reading.search_query import SearchQuery

if TYPE_CHECKING:
    from bot.domain.thread import Thread
    from bot.questions.requests import ReadMessages


def said_in(thread: Thread) -> tuple[SaidMessage, ...]:
    """The messages of a thread, the opening text first."""
    return (
        SaidMessage(thread.author, thread.role, thread.created_at, thread.body),
        *(SaidMessage(one.author, one.role, one.created_at, one.text, one.id) for one in thread.comments),
    )


def passages_of(
    hits: Iterable[tuple[CardId, Kind, MessageHit | None]], query: SearchQuery, read: ReadMessages
) -> dict[CardId, Passage]:
    """What the best message of each hit says about the words; nothing for hits by their titles alone."""
    best = {key: (kind, message) for key, kind, message in hits if message}
    said = read([hit.thread for _, hit in best.values()]) if best else {}
    found = {key: (kind, passage_of(hit, query, said.get(hit.thread, ()))) for key, (kind, hit) in best.items()}
    return {key: one._replace(kind=kind) for key, (kind, one) in found.items() if one}


def passage_of(hit: MessageHit, query: SearchQuery, said: Sequence[SaidMessage]) -> Passage | None:
    """The passage of a message; without its text if that is not at hand, None if only the title holds the words."""
    one = found_in(hit, said)
    if one is None:
        return Passage(hit.thread, hit.author, hit.role, hit.at)
    text = passage(one.text, frozenset(hit.terms), query.phrases)
    return Passage(hit.thread, one.author, one.role, one.at, text, one.comment_id) if text else None


def found_in(hit: MessageHit, said: Sequence[SaidMessage]) -> SaidMessage | None:
    """The message of a hit among those of its thread; None if it is not there any more."""
    at_place = said[hit.position : hit.position + 1]  # elsewhere if messages before it were left out
    return next((one for one in (*at_place, *said) if (one.author, one.at) == (hit.author, hit.at)), None)


def with_phrases(
    ranked: Sequence[tuple[CardId, ThreadEvidence]],
    query: SearchQuery,
    titles: Mapping[CardId, str],
    read: ReadMessages,
) -> list[tuple[CardId, ThreadEvidence]]:
    """Those in which all phrases stand, each with the message that holds most of them.

    They stand in the title or in messages that the query wants.
    """
    said = read([key for key, _ in ranked])
    found = []
    for key, evidence in ranked:
        held = [
            query.held(one.text) if query.keeps_message(one.author, one.role, one.at) else frozenset[str]()
            for one in said.get(key, ())
        ]
        if len(query.held(titles.get(key, "")).union(*held)) == len(set(query.phrases)):
            found.append((key, evidence._replace(message=_holding(key, evidence, said.get(key, ()), held))))
    return found


def _holding(
    key: CardId, evidence: ThreadEvidence, said: Sequence[SaidMessage], held: Sequence[frozenset[str]]
) -> MessageHit | None:
    """The message with most phrases, that of the evidence among equals; None if only the title has them."""
    known = evidence.message
    place = max(
        range(len(held)),
        key=lambda at: (len(held[at]), known is not None and known.position == at, -at),
        default=-1,
    )
    if place < 0 or not held[place] or (known and known.position == place):
        return known if place >= 0 and held[place] else None
    one = said[place]
    return MessageHit(key, place, one.author, one.role, one.at, evidence.score, evidence.part, evidence.terms)
