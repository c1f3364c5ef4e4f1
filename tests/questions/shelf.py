"""Cards in memory: what `bot.questions.requests.Cards` promises, in few lines and without an index."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bot.domain.card import Card, CardHit, CardId, CardLink, Ending, MessageHit, Ruling, ThreadMessage
from bot.domain.digest import Digest
from bot.domain.kinds import Kind
from bot.domain.thread import Thread
from bot.index.impacts import K1, idf
from bot.questions.passages import messages_of
from bot.reading.analyzer import body_terms, terms
from bot.reading.digest import digest

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


def card(key: CardId, title: str = "Something is odd", **rest: Any) -> Card:
    """A closed issue that nobody touched for long."""
    values: dict[str, Any] = {
        "kind": Kind.ISSUE,
        "author": "monalisa",
        "state": "closed",
        "created_at": _LONG_AGO,
        **rest,
    }
    return Card(id=key, title=title, **({"updated_at": values["created_at"]} | values))


def card_of(one: Digest) -> Card:
    """The card that a digest makes."""
    ending = one.outcome
    return Card(
        id=one.id,
        kind=one.kind,
        title=one.title,
        author=one.author,
        state=one.state,
        created_at=one.created_at,
        updated_at=one.updated_at,
        closed_at=one.closed_at,
        state_reason=one.state_reason or "",
        labels=one.labels,
        turn_count=one.turn_count,
        summary=one.summary,
        keywords=one.keywords,
        files=one.files,
        decisions=tuple(Ruling(d.text, d.author, d.role, d.at, d.comment_id, d.superseded_by) for d in one.decisions),
        ending=Ending(ending.kind.value, ending.quote, ending.fix or "", ending.release or ""),
        references=tuple(r.number for r in one.references if r.owner is None and r.kind is None),
        duplicate_of=one.duplicate_of,
        merged_at=one.merged_at,
        closes=tuple(r.number for r in one.references if r.owner is None and r.kind is None and r.action == "closes"),
    )


class Shelf:
    """See `bot.questions.requests.Cards`. ``openings`` are the opening texts, ``threads`` have the messages."""

    def __init__(
        self,
        cards: Iterable[Card],
        openings: Mapping[CardId, str] | None = None,
        threads: Iterable[Thread] = (),
    ) -> None:
        self._said = {one.id: messages_of(one) for one in threads}
        self._cards = {one.id: one for one in cards}
        texts = openings or {}
        self._terms = {key: _counted(one, texts.get(key, "")) for key, one in self._cards.items()}
        self._frequency = Counter(term for counted in self._terms.values() for term in counted)

    @classmethod
    def of(cls, threads: Iterable[Thread], moment: datetime | None = None) -> Shelf:
        """The cards of these threads, as they stood at ``moment``."""
        past = [t.as_of(moment) if moment else t for t in threads if moment is None or t.created_at <= moment]
        return cls([card_of(digest(one)) for one in past], {one.id: one.body for one in past}, past)

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
        found = []
        for key, counted in self._terms.items():
            gains = {
                term: rare * counted[term] / (K1 + counted[term]) for term, rare in rarity.items() if counted[term]
            }
            part = sum(rarity[term] for term in gains) / sum(rarity.values()) if gains else 0.0
            if gains and part >= floor and (keep is None or keep(self._cards[key])):
                shared = tuple(sorted(gains, key=lambda term: (-gains[term], term)))
                found.append(CardHit(self._cards[key], sum(gains.values()), part, shared))
        return sorted(found, key=lambda one: (-one.score, *order(one.card.id)))[:limit]

    @property
    def messages(self) -> int:
        return sum(map(len, self._said.values()))

    def read(self, keys: Iterable[CardId]) -> dict[CardId, Sequence[ThreadMessage]]:
        return {key: self._said[key] for key in keys if key in self._said}

    def search_messages(
        self,
        weights: Mapping[str, float],
        *,
        limit: int,
        keep: Callable[[MessageHit], bool] | None = None,
        floor: float = 0.0,
    ) -> list[MessageHit]:
        counted = {
            (key, place): Counter(terms(f"{self._cards[key].title if place == 0 else ''}\n{one.text}"))
            for key, said in self._said.items()
            for place, one in enumerate(said)
        }
        frequency = Counter(term for each in counted.values() for term in each)
        rarity = {term: weight * idf(frequency[term], len(counted)) for term, weight in weights.items()}
        found = []
        for (key, place), held in counted.items():
            gains = {term: rare * held[term] / (K1 + held[term]) for term, rare in rarity.items() if held[term]}
            part = sum(rarity[term] for term in gains) / sum(rarity.values()) if gains else 0.0
            one, shared = self._said[key][place], tuple(sorted(gains, key=lambda term: (-gains[term], term)))
            hit = MessageHit(key, place, one.author, one.role, one.at, sum(gains.values()), part, shared)
            if gains and part >= floor and (keep is None or keep(hit)):
                found.append(hit)
        return sorted(found, key=lambda one: (-one.score, *order(one.thread), one.position))[:limit]

    def newest(self, limit: int, keep: Callable[[Card], bool]) -> list[Card]:
        newest = sorted(self._cards.values(), key=lambda one: (-one.updated_at.timestamp(), *order(one.id)))
        return [one for one in newest if keep(one)][:limit]

    def cards(self, ids: Iterable[CardId]) -> dict[CardId, Card]:
        return {key: self._cards[key] for key in ids if key in self._cards}

    def file_mentions(self, path: str) -> dict[CardId, tuple[str, ...]]:
        named = {key: tuple(f for f in one.files if _is_same(f, path)) for key, one in self._cards.items()}
        return {key: files for key, files in named.items() if files}

    def links(self, ids: Iterable[CardId]) -> list[CardLink]:
        wanted = set(ids)
        made = [link for one in self._cards.values() for link in _links(one)]
        return [link for link in made if link.source in wanted or link.target in wanted]

    def recently_decided(self, limit: int) -> list[Card]:
        newest = {
            key: max(each.at for each in one.decisions if each.at)
            for key, one in self._cards.items()
            if any(each.at for each in one.decisions)
        }
        keys = sorted(newest, key=lambda key: (-newest[key].timestamp(), *order(key)))
        return [self._cards[key] for key in keys[:limit]]


def order(key: CardId) -> tuple[bool, CardId]:
    return isinstance(key, str), key


def _counted(one: Card, opening: str) -> Counter[str]:
    notes = [*one.keywords, *one.files, one.summary, *(each.text for each in one.decisions)]
    counted = Counter(body_terms(opening))
    for term in terms(one.title):
        counted[term] += 2
    for term in terms(" ; ".join(notes)):
        counted[term] += 1
    return counted


def _links(one: Card) -> list[CardLink]:
    found: dict[CardId, str] = dict.fromkeys(one.references, "reference")
    if one.ending.fix.startswith("#"):
        found[int(one.ending.fix[1:])] = "fix"
    if one.duplicate_of is not None:
        found[one.duplicate_of] = "duplicate"
    return [CardLink(one.id, target, kind) for target, kind in found.items() if target != one.id]


def _is_same(left: str, right: str) -> bool:
    shorter, longer = sorted((_folders(left), _folders(right)), key=len)
    return bool(shorter) and longer[-len(shorter) :] == shorter


def _folders(path: str) -> list[str]:
    return [part for part in path.replace("\\", "/").casefold().split("/") if part not in ("", ".", "..")]
