"""Search that knows the work at hand: ranks threads by the words and by what the checkout says.

A thread's rank is ``(text × age + 0.2 × files) × 1.3 where it is the branch's``: ``text`` is its score as a share of
the best one's, 1 where the branch or its commits name it outright. Equal ranks: the one that changed last, then by id.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from bot.domain.card import Card, CardHit, CardId, MessageHit, Passage, Worktree
from bot.questions.passages import passages_of
from bot.questions.requests import Cards, Keep, ReadMessages, SmartSearch, nothing_read
from bot.questions.thread_search import find_threads
from bot.questions.worktree_query import WorktreeQuery, is_telling, worktree_query
from bot.reading.analyzer import terms, token_terms, tokens

CANDIDATES = 50
SHOWN = 20
PER_FILE = 0.2
NAMED = 1.3
_AGES = ((timedelta(hours=1), 1.5), (timedelta(days=1), 1.3), (timedelta(days=7), 1.1))
_BESIDE = 0.3
"""Weight of the checkout's query next to typed words."""

_ASKED_FOR = 2.0
"""The share of a thread that the words name by its number, which puts it first."""

_LEAST_OF_BRANCH = 0.4
_LEAST_TERMS = 2
"""How much of a branch's name a thread has to hold, by rarity and in words, where nothing else speaks for it. On
made-up branches of three projects 0.4 finds more than 0.5 and speaks no more often where there is no issue, which one
word would."""

_MAX_REASONS = 4
_MAX_WORDS = 4
_MAX_TEXT = 60
_MAX_CHAIN = 10
_LEAST_NAME = 6


class RankedThread(NamedTuple):
    """A thread, its rank's number (≥ 0) and the reasons for it in a few words each; they hold strangers' text.

    ``message`` is the best message about the words, if there is one.
    """

    card: Card
    score: float
    why: tuple[str, ...]
    message: MessageHit | None = None


@dataclass(frozen=True, slots=True)
class SmartSearchAnswer:
    """The relevant threads, best first, and what was said there about the words; the signals they were ranked by, and
    those that could not be used."""

    hits: tuple[RankedThread, ...] = ()
    used: tuple[str, ...] = ()
    unused: tuple[str, ...] = ()
    passages: Mapping[CardId, Passage] = field(default_factory=dict)


@dataclass(slots=True)
class _Candidate:
    """A thread with its share of the best score, the terms and files it has in common, and the reasons that name it."""

    card: Card
    base: float = 0.0
    terms: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    named: tuple[str, ...] = ()
    is_named: bool = False
    has_evidence: bool = False
    message: MessageHit | None = None


@dataclass(slots=True)
class _Pool:
    cards: Cards
    keep: Keep
    found: dict[CardId, _Candidate] = field(default_factory=dict)

    def at(self, card: Card) -> _Candidate | None:
        """The candidate of this thread, created if missing; None if the thread may not be shown."""
        if card.id not in self.found:
            if not self.keep(card):
                return None
            self.found[card.id] = _Candidate(card)
        return self.found[card.id]

    def prefetch(self, ids: Iterable[CardId]) -> list[_Candidate]:
        """The candidates of these threads, as far as they are known."""
        known = self.cards.cards(ids)
        return [one for card in known.values() if (one := self.at(card)) is not None]


def smart(request: SmartSearch, cards: Cards, read: ReadMessages = nothing_read) -> SmartSearchAnswer:
    """Find the threads about some words, or without words those about the work in the checkout.

    With words a hit holds half of them by rarity. Without, it has evidence: the branch or its commits name it, it names
    a file that is worked on (and few others do), or it holds two words of the branch's name, and two fifths of it.
    A duplicate is replaced by the thread that it duplicates.
    """
    checkout, now = request.worktree, request.now
    query = request.meant
    signs = worktree_query(checkout)
    pool = _Pool(cards, lambda card: query.keeps_thread(card) and (request.keep is None or request.keep(card)))
    if terms(query.words) or query.is_narrow or query.numbers:
        _by_words(request, signs, pool, read)
    else:
        _by_checkout(signs, pool)
    _name(pool, signs, checkout.branch)
    _fold(pool)
    text = f"{query.words} ; {signs.text}"
    ranked = [
        RankedThread(one.card, _score(one, now), _why(one, text, now), one.message)
        for one in pool.found.values()
        if one.has_evidence
    ]
    hits = tuple(sorted(ranked, key=_best_first)[: max(0, request.limit)])
    said = passages_of(((one.card.id, one.card.kind, one.message) for one in hits), query, read)
    return SmartSearchAnswer(hits, signs.used, _unused(checkout, signs), said)


def recency(updated: datetime, now: datetime) -> float:
    """1.5 for what changed in the last hour, 1.3 in the last day, 1.1 in the last week, else 1."""
    return next((factor for age, factor in _AGES if now - updated <= age), 1.0)


def plain(text: str) -> str:
    """A path or a name on one line, and not too long for a reason."""
    line = "".join(char if char.isprintable() else "?" for char in text)
    return line if len(line) <= _MAX_TEXT else f"…{line[1 - _MAX_TEXT :]}"


def reference(key: CardId) -> str:
    """How a thread is named in a reason."""
    return f"#{key}" if isinstance(key, int) else plain(key)


def touches(files: Iterable[str]) -> str:
    """The reason that a thread names these files, of which there is one at least."""
    first, *more = files
    return f"touches {plain(first)}" + (f" and {len(more)} more" if more else "")


def written(text: str, found: Iterable[str]) -> list[str]:
    """How these terms are written in a text, at most four, each once."""
    forms: dict[str, str] = {}
    for token in tokens(text):
        for term in token_terms(token):
            forms.setdefault(term, token.lower() if token.isalpha() else token)
    return list(dict.fromkeys(plain(forms[term]) for term in found if term in forms))[:_MAX_WORDS]


def _by_words(request: SmartSearch, signs: WorktreeQuery, pool: _Pool, read: ReadMessages) -> None:
    query = request.meant
    named = {*signs.tickets, *signs.mentioned}
    theirs = _files(signs.files, pool.cards)
    found = find_threads(query, pool.cards, read, limit=CANDIDATES, keep=request.keep)
    if named or theirs:
        wanted = (named | theirs.keys()) - {one.card.id for one in found}

        def is_wanted(card: Card) -> bool:
            return card.id in wanted and pool.keep(card)

        found += find_threads(query, pool.cards, read, limit=CANDIDATES, keep=is_wanted)
    shares = _shares(found)
    implied = _shares(_search(signs.weights, pool)) if signs.weights else {}
    total = {one.card.id: shares[one.card.id] + _BESIDE * implied.get(one.card.id, 0.0) for one in found}
    best = max(total.values(), default=0.0) or 1.0
    for one in found:
        candidate = pool.at(one.card)
        if candidate is not None:
            candidate.base, candidate.terms, candidate.has_evidence = total[one.card.id] / best, one.terms, True
            candidate.files = tuple(path for path, _ in theirs.get(one.card.id, ()))
            candidate.message = one.message
    for asked in pool.prefetch(query.numbers):
        asked.base, asked.has_evidence, asked.named = _ASKED_FOR, True, (f"you name {reference(asked.card.id)}",)


def _by_checkout(signs: WorktreeQuery, pool: _Pool) -> None:
    if signs.weights:
        found = _search(signs.weights, pool)
        shares = _shares(found)
        for one in found:
            candidate = pool.at(one.card)
            if candidate is not None:
                candidate.base, candidate.terms = shares[one.card.id], one.terms
    if len(signs.telling) >= _LEAST_TERMS:
        for one in pool.cards.search(signs.telling, limit=CANDIDATES, keep=pool.keep, floor=_LEAST_OF_BRANCH):
            candidate = pool.at(one.card)
            if candidate is not None and len(one.terms) >= _LEAST_TERMS:
                candidate.has_evidence = True
                candidate.terms = tuple(dict.fromkeys((*one.terms, *candidate.terms)))
    theirs = _files(signs.files, pool.cards)
    for candidate in pool.prefetch(theirs):
        files = theirs[candidate.card.id]
        candidate.files = tuple(path for path, _ in files)
        candidate.has_evidence |= any(tells for _, tells in files)
    for candidate in pool.prefetch((*signs.tickets, *signs.mentioned)):
        candidate.base, candidate.has_evidence = 1.0, True


def _search(weights: Mapping[str, float], pool: _Pool) -> list[CardHit]:
    return pool.cards.search(weights, limit=CANDIDATES, keep=pool.keep)


def _shares(found: list[CardHit]) -> dict[CardId, float]:
    best = max((one.score for one in found), default=0.0)
    return {one.card.id: one.score / best if best > 0 else 0.0 for one in found}


def _files(paths: Iterable[str], cards: Cards) -> dict[CardId, list[tuple[str, bool]]]:
    found: dict[CardId, list[tuple[str, bool]]] = {}
    size = cards.size
    for path in paths:
        naming = cards.naming(path)
        for key, written in naming.items():
            tells = any(is_telling(path, one, len(naming), size) for one in written)
            found.setdefault(key, []).append((path, tells))
    return found


def _name(pool: _Pool, signs: WorktreeQuery, branch: str) -> None:
    for key, one in pool.found.items():
        if key in signs.tickets:
            one.is_named, one.named = True, (f"the branch names {reference(key)}",)
        elif _holds(one.card, branch):
            one.is_named, one.named = True, ("names the branch",)
        elif key in signs.mentioned:
            one.named = (f"a commit names {reference(key)}",)


def _holds(card: Card, branch: str) -> bool:
    """Whether the thread's text has the branch's name; a short word would be in many."""
    if len(branch) < _LEAST_NAME or branch.isalpha():
        return False
    texts = (card.title, card.summary, card.ending.quote, *card.keywords, *(each.text for each in card.decisions))
    return any(branch.casefold() in text.casefold() for text in texts)


def _fold(pool: _Pool) -> None:
    """Put duplicates in the place of the thread at the end of their chain, where that one may be shown."""
    for key in [key for key, one in pool.found.items() if one.card.duplicate_of is not None and one.has_evidence]:
        target = _canonical(pool.found[key].card, pool)
        if target is None:
            continue
        one = pool.found.pop(key)
        named = tuple(f"{reason}, a duplicate" if "#" in reason else f"its duplicate {reason}" for reason in one.named)
        target.base = max(target.base, one.base)
        target.terms = tuple(dict.fromkeys((*target.terms, *one.terms)))
        target.files = tuple(dict.fromkeys((*target.files, *one.files)))
        target.named = tuple(dict.fromkeys((*target.named, *named)))
        target.is_named |= one.is_named
        target.message = target.message or one.message
        target.has_evidence = True


def _canonical(card: Card, pool: _Pool) -> _Candidate | None:
    walked = [card.id]
    while card.duplicate_of is not None and card.duplicate_of not in walked and len(walked) <= _MAX_CHAIN:
        known = pool.cards.cards([card.duplicate_of])
        if card.duplicate_of not in known:
            break
        card = known[card.duplicate_of]
        walked.append(card.id)
    return pool.at(card) if len(walked) > 1 and card.duplicate_of not in walked else None


def _score(one: _Candidate, now: datetime) -> float:
    score = one.base * recency(one.card.updated_at, now) + PER_FILE * len(one.files)
    return score * NAMED if one.is_named else score


def _best_first(one: RankedThread) -> tuple[float, float, bool, CardId]:
    return -one.score, -one.card.updated_at.timestamp(), isinstance(one.card.id, str), one.card.id


def _why(one: _Candidate, text: str, now: datetime) -> tuple[str, ...]:
    told = [*one.named[:2]]
    if one.files:
        told.append(touches(one.files))
    if words := written(text, one.terms):
        told.append(f"both speak of {', '.join(words)}")
    if recency(one.card.updated_at, now) > 1:
        told.append(_changed(now - one.card.updated_at))
    return tuple(told[:_MAX_REASONS])


def _changed(age: timedelta) -> str:
    if age <= timedelta(hours=1):
        return "changed in the last hour"
    return "changed in the last day" if age <= timedelta(days=1) else "changed in the last week"


def _unused(checkout: Worktree, signs: WorktreeQuery) -> tuple[str, ...]:
    says_nothing = checkout.branch and not signs.telling and not signs.tickets
    more = ("branch: its name has no telling word",) if says_nothing else ()
    return (*checkout.unused, *more)
