"""What was said about the words of a search: the passages to show, and the phrases they must contain."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from bot.domain.card import CardId, MessageHit, Passage, ThreadMessage
from bot.domain.kinds import Kind
from bot.questions.evidence import ThreadEvidence
from bot.reading.search_query import SearchQuery

if TYPE_CHECKING:
    from bot.domain.thread import Thread
    from bot.questions.requests import ReadMessages


def messages_of(thread: Thread) -> tuple[ThreadMessage, ...]:
    """The messages of a thread, the opening text first."""
    return tuple(ThreadMessage(each.author, each.role, each.created_at, each.text, each.id) for each in thread.messages)


def passages_of(
    hits: Iterable[tuple[CardId, Kind, MessageHit | None]], query: SearchQuery, read: ReadMessages
) -> dict[CardId, Passage]:
    """What the best message of each hit says about the words. Hits by title alone are left out."""
    best = {key: (kind, message) for key, kind, message in hits if message}
    messages = read([hit.thread for _, hit in best.values()]) if best else {}
    passages = {key: (kind, passage_of(hit, query, messages.get(hit.thread, ()))) for key, (kind, hit) in best.items()}
    return {key: passage_found._replace(kind=kind) for key, (kind, passage_found) in passages.items() if passage_found}


def passage_of(hit: MessageHit, query: SearchQuery, messages: Sequence[ThreadMessage]) -> Passage | None:
    """The passage of a message; without text if the message cannot be read, None if only the title holds the words."""
    message = find_message(hit, messages)
    if message is None:
        return Passage(hit.thread, hit.author, hit.role, hit.at)
    from bot.reading.passage import passage  # a search into a pipe shows none, and starts faster without it

    text = passage(message.text, frozenset(hit.terms), query.phrases)
    return Passage(hit.thread, message.author, message.role, message.at, text, message.comment_id) if text else None


def find_message(hit: MessageHit, messages: Sequence[ThreadMessage]) -> ThreadMessage | None:
    """The message of a hit among those of its thread; None if it is gone."""
    at_position = messages[hit.position : hit.position + 1]  # it moves if earlier messages were left out
    return next(
        (message for message in (*at_position, *messages) if (message.author, message.at) == (hit.author, hit.at)), None
    )


def filter_by_phrases(
    ranked: Sequence[tuple[CardId, ThreadEvidence]],
    query: SearchQuery,
    titles: Mapping[CardId, str],
    read: ReadMessages,
) -> list[tuple[CardId, ThreadEvidence]]:
    """The threads that contain all phrases, each with the message that contains most of them.

    Only the title and the messages that match the query count.
    """
    messages = read([key for key, _ in ranked])
    kept = []
    for key, evidence in ranked:
        phrases = [
            query.phrases_in(message.text)
            if query.matches_message(message.author, message.role, message.at)
            else frozenset[str]()
            for message in messages.get(key, ())
        ]
        if len(query.phrases_in(titles.get(key, "")).union(*phrases)) == len(set(query.phrases)):
            kept.append(
                (key, evidence._replace(message=_message_with_phrases(key, evidence, messages.get(key, ()), phrases)))
            )
    return kept


def _message_with_phrases(
    key: CardId, evidence: ThreadEvidence, messages: Sequence[ThreadMessage], phrases: Sequence[frozenset[str]]
) -> MessageHit | None:
    """The message with most phrases; a tie goes to that of the evidence. None if only the title has them."""
    best = evidence.message
    position = max(
        range(len(phrases)),
        key=lambda index: (len(phrases[index]), best is not None and best.position == index, -index),
        default=-1,
    )
    if position < 0 or not phrases[position] or (best and best.position == position):
        return best if position >= 0 and phrases[position] else None
    message = messages[position]
    return MessageHit(
        key, position, message.author, message.role, message.at, evidence.score, evidence.part, evidence.terms
    )
