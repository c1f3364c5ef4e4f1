"""Cards in memory: an implementation of `bot.questions.requests.Cards` in few lines and without an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.domain.card import Card, CardHit, CardId, CardLink, Ending, MessageHit, Ruling, ThreadMessage
from bot.domain.digest import Digest
from bot.domain.kinds import Kind
from bot.domain.thread import Thread
from bot.index.scoring import K1
from bot.questions.passages import messages_of
from bot.ranking.rarity import idf
from bot.reading.analyzer import body_terms, terms
from bot.reading.digest import digest

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def card(key: CardId, title: str = "Something is odd", **changes: Any) -> Card:
    """Return the card of a closed issue without changes for a long time."""
    values: dict[str, Any] = {
        "kind": Kind.ISSUE,
        "author": "monalisa",
        "state": "closed",
        "created_at": _LONG_AGO,
        **changes,
    }
    return Card(id=key, title=title, **({"updated_at": values["created_at"]} | values))


def card_of(digest: Digest) -> Card:
    """Return the card made from a digest."""
    ending = digest.outcome
    return Card(
        id=digest.id,
        kind=digest.kind,
        title=digest.title,
        author=digest.author,
        state=digest.state,
        created_at=digest.created_at,
        updated_at=digest.updated_at,
        closed_at=digest.closed_at,
        state_reason=digest.state_reason or "",
        labels=digest.labels,
        turn_count=digest.turn_count,
        summary=digest.summary,
        summary_by=digest.summary_by,
        keywords=digest.keywords,
        files=digest.files,
        decisions=tuple(
            Ruling(d.text, d.author, d.role, d.at, d.comment_id, d.superseded_by) for d in digest.decisions
        ),
        ending=Ending(ending.kind.value, ending.quote, ending.fix or "", ending.release or ""),
        references=tuple(r.number for r in digest.references if r.owner is None and r.kind is None),
        duplicate_of=digest.duplicate_of,
        merged_at=digest.merged_at,
        closes=tuple(
            r.number for r in digest.references if r.owner is None and r.kind is None and r.action == "closes"
        ),
    )


class InMemoryCards:
    """See `bot.questions.requests.Cards`. ``openings`` has the opening texts, ``threads`` the messages."""

    def __init__(
        self,
        cards: Iterable[Card],
        openings: Mapping[CardId, str] | None = None,
        threads: Iterable[Thread] = (),
    ) -> None:
        self._messages = {item.id: messages_of(item) for item in threads}
        self._cards = {item.id: item for item in cards}
        texts = openings or {}
        self._terms = {key: _counted(item, texts.get(key, "")) for key, item in self._cards.items()}
        self._frequency = Counter(term for counted in self._terms.values() for term in counted)

    @classmethod
    def of(cls, threads: Iterable[Thread], moment: datetime | None = None) -> InMemoryCards:
        """Return the cards of these threads, as they were at ``moment``."""
        past = [
            thread.as_of(moment) if moment else thread
            for thread in threads
            if moment is None or thread.created_at <= moment
        ]
        return cls([card_of(digest(thread)) for thread in past], {thread.id: thread.body for thread in past}, past)

    @property
    def size(self) -> int:
        return len(self._cards)

    def search(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[Card], bool] | None = None,
        floor: float = 0.0,
    ) -> list[CardHit]:
        rarity = {
            term: weight * idf(self._frequency[term], self.size) for term, weight in weights.items() if weight > 0
        }
        hits = []
        for key, counted in self._terms.items():
            gains = {
                term: weight * counted[term] / (K1 + counted[term]) for term, weight in rarity.items() if counted[term]
            }
            share = sum(rarity[term] for term in gains) / sum(rarity.values()) if gains else 0.0
            if gains and share >= floor and (keep is None or keep(self._cards[key])):
                shared = tuple(sorted(gains, key=lambda term: (-gains[term], term)))
                hits.append(CardHit(self._cards[key], sum(gains.values()), share, shared))
        return sorted(hits, key=lambda hit: (-hit.score, *order(hit.card.id)))[:limit]

    @property
    def messages(self) -> int:
        return sum(map(len, self._messages.values()))

    def read(self, keys: Iterable[CardId]) -> dict[CardId, Sequence[ThreadMessage]]:
        return {key: self._messages[key] for key in keys if key in self._messages}

    def search_messages(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[MessageHit], bool] | None = None,
        floor: float = 0.0,
    ) -> list[MessageHit]:
        counted = {
            (key, position): Counter(terms(f"{self._cards[key].title if position == 0 else ''}\n{message.text}"))
            for key, messages in self._messages.items()
            for position, message in enumerate(messages)
        }
        frequency = Counter(term for each in counted.values() for term in each)
        rarity = {term: weight * idf(frequency[term], len(counted)) for term, weight in weights.items()}
        hits = []
        for (key, position), counts_of_message in counted.items():
            gains = {
                term: rare * counts_of_message[term] / (K1 + counts_of_message[term])
                for term, rare in rarity.items()
                if counts_of_message[term]
            }
            share = sum(rarity[term] for term in gains) / sum(rarity.values()) if gains else 0.0
            message, shared = self._messages[key][position], tuple(sorted(gains, key=lambda term: (-gains[term], term)))
            hit = MessageHit(
                key, position, message.author, message.role, message.at, sum(gains.values()), share, shared
            )
            if gains and share >= floor and (keep is None or keep(hit)):
                hits.append(hit)
        return sorted(hits, key=lambda message: (-message.score, *order(message.thread), message.position))[:limit]

    def rarity(self, terms: Iterable[str]) -> dict[str, float]:
        return {term: idf(self._frequency[term], self.size) for term in terms}

    def threads_with(self, keep: Callable[[MessageHit], bool]) -> set[CardId]:
        hits = (
            MessageHit(key, position, message.author, message.role, message.at, 0.0, 0.0, ())
            for key, messages in self._messages.items()
            for position, message in enumerate(messages)
        )
        return {hit.thread for hit in hits if keep(hit)}

    def newest(self, limit: int, keep: Callable[[Card], bool]) -> list[Card]:
        newest = sorted(self._cards.values(), key=lambda card: (-card.updated_at.timestamp(), *order(card.id)))
        return [card for card in newest if keep(card)][:limit]

    def facts(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        return self.cards(ids)

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        return {key: self._cards[key] for key in ids if key in self._cards}

    def file_mentions(self, path: str) -> dict[CardId, tuple[str, ...]]:
        named = {key: tuple(f for f in card.files if _is_same(f, path)) for key, card in self._cards.items()}
        return {key: files for key, files in named.items() if files}

    def files(self) -> list[tuple[CardId, str]]:
        return [(key, path) for key, card in self._cards.items() for path in card.files]

    def links(self, ids: Iterable[CardId]) -> list[CardLink]:
        ids_wanted = set(ids)
        all_links = [link for card in self._cards.values() for link in _links(card)]
        return [link for link in all_links if link.source in ids_wanted or link.target in ids_wanted]

    def recently_decided(self, limit: int) -> list[Card]:
        newest = {
            key: max(each.at for each in card.decisions if each.at)
            for key, card in self._cards.items()
            if any(each.at for each in card.decisions)
        }
        keys = sorted(newest, key=lambda key: (-newest[key].timestamp(), *order(key)))
        return [self._cards[key] for key in keys[:limit]]


def order(key: CardId) -> tuple[bool, CardId]:
    return isinstance(key, str), key


def _counted(card: Card, opening: str) -> Counter[str]:
    notes = [*card.keywords, *card.files, card.summary, *(each.text for each in card.decisions)]
    counted = Counter(body_terms(opening))
    for term in terms(card.title):
        counted[term] += 2
    for term in terms(" ; ".join(notes)):
        counted[term] += 1
    return counted


def _links(card: Card) -> list[CardLink]:
    kinds: dict[CardId, str] = dict.fromkeys(card.references, "reference")
    if card.ending.fix.startswith("#"):
        kinds[int(card.ending.fix[1:])] = "fix"
    if card.duplicate_of is not None:
        kinds[card.duplicate_of] = "duplicate"
    return [CardLink(card.id, target, kind) for target, kind in kinds.items() if target != card.id]


def _is_same(left: str, right: str) -> bool:
    shorter, longer = sorted((_folders(left), _folders(right)), key=len)
    return bool(shorter) and longer[-len(shorter) :] == shorter


def _folders(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".", "..")]
