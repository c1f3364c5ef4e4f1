"""Ranks threads by the words of a search and by the work in the checkout.

A thread's score is ``text × age + 0.2 × files``, × 1.3 for a thread of the branch. ``text`` is its search score as a
share of the best one, or 1 if the branch or its commits name it. On a clean trunk, files and names count less the older
their commit is. Ties: the thread that changed last, then by id. If decisions are sought, those that decide come first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from bot.domain.card import Card, CardHit, CardId, MessageHit, ThreadFacts, Worktree, id_order
from bot.domain.duplicates import duplicate_chain
from bot.domain.reason import Reason
from bot.questions.addresses import citation
from bot.questions.named_files import NamedFile, named_files
from bot.questions.requests import Cards, Keep, ReadMessages, WorkRequest
from bot.questions.thread_search import find_threads
from bot.questions.worktree_query import WordEvidence, WorktreeQuery
from bot.reading.analyzer import terms, token_terms, tokens

MAX_CANDIDATES = 50
SEARCH_LIMIT = 20
FILE_BONUS = 0.2
NAMED_FACTOR = 1.3
_RECENCY_FACTORS = ((timedelta(hours=1), 1.5), (timedelta(days=1), 1.3), (timedelta(days=7), 1.1))
_CHECKOUT_WEIGHT = 0.3
"""Weight of the checkout's query next to typed words."""

_NUMBER_SCORE = 2.0
"""Text score of a thread whose number is among the words, so that it comes first."""

_MAX_REASONS = 4
_MAX_WORDS = 4
_MAX_NAMED_FILES = 3
_MAX_LINE_CHARS = 60
_MIN_BRANCH_CHARS = 6


class RankedThread(NamedTuple):
    """A thread, its score (≥ 0) and the reasons for it, a few words each; they may contain strangers' text.

    ``message`` is the message that best matches the words, if there is one; ``decides`` is as in `CardHit`.
    """

    card: Card
    score: float
    why: tuple[str, ...]
    message: MessageHit | None = None
    decides: bool = False


@dataclass(slots=True)
class _Candidate:
    """A thread with its share of the best score, the terms and files in common, and the reasons that name it."""

    card: Card
    text_score: float = 0.0
    terms: tuple[str, ...] = ()
    files: tuple[NamedFile, ...] = ()
    named: tuple[str, ...] = ()
    is_named: bool = False
    has_evidence: bool = False
    message: MessageHit | None = None
    decides: bool = False


@dataclass(slots=True)
class _Pool:
    cards: Cards
    keep: Keep
    candidates: dict[CardId, _Candidate] = field(default_factory=dict)

    def get(self, card: Card) -> _Candidate | None:
        """The candidate of this thread, created if missing; None if the thread may not be shown."""
        if card.id not in self.candidates:
            if not self.keep(card):
                return None
            self.candidates[card.id] = _Candidate(card)
        return self.candidates[card.id]

    def prefetch(self, ids: Iterable[CardId]) -> list[_Candidate]:
        """The candidates of those threads that are known."""
        known = self.cards.cards(ids)
        return [candidate for card in known.values() if (candidate := self.get(card)) is not None]


def rank_threads(
    request: WorkRequest, signals: WorktreeQuery, cards: Cards, read: ReadMessages
) -> tuple[RankedThread, ...]:
    """All threads about some words or, without words, about the work in the checkout, best first.

    With words, a hit holds half of them by rarity. Without, it needs evidence: the branch or its commits name it, it is
    one of few that name a file being changed, or it holds much of the branch's name or, on a clean trunk, of a
    commit's subject. A duplicate is replaced by its original.
    """
    query, now = request.query, request.now
    pool = _Pool(cards, query.matches_thread)
    if terms(query.words) or query.numbers or (query.has_filters and request.words.strip()):
        _add_by_words(request, signals, pool, read)
    else:
        _add_by_checkout(signals, pool)
    _add_name_reasons(pool, signals, request.worktree.branch)
    _fold_duplicates(pool)
    text = f"{query.words} ; {signals.text}"
    ranked = [
        RankedThread(
            candidate.card, _score(candidate, now), _reasons(candidate, text, now), candidate.message, candidate.decides
        )
        for candidate in pool.candidates.values()
        if candidate.has_evidence
    ]
    return best_first(ranked)


def recency(updated: datetime, now: datetime) -> float:
    """1.5 for a change in the last hour, 1.3 in the last day, 1.1 in the last week, else 1."""
    return next((factor for age, factor in _RECENCY_FACTORS if now - updated <= age), 1.0)


def short_line(text: str) -> str:
    """A path or name on one line, cut to the length of a reason."""
    line = "".join(char if char.isprintable() else "?" for char in text)
    return line if len(line) <= _MAX_LINE_CHARS else f"…{line[1 - _MAX_LINE_CHARS :]}"


def thread_reference(key: CardId) -> str:
    """How a thread is named in a reason."""
    return short_line(citation(key))


def files_reason(files: Iterable[NamedFile]) -> str:
    """The reason that a thread names these files (at least one)."""
    paths = [file.path for file in files]
    rest = len(paths) - _MAX_NAMED_FILES
    return f"touches {', '.join(map(short_line, paths[:_MAX_NAMED_FILES]))}" + (f" and {rest} more" if rest > 0 else "")


def spellings(text: str, wanted_terms: Iterable[str]) -> list[str]:
    """How a text spells these terms: at most four, each once."""
    forms: dict[str, str] = {}
    for token in tokens(text):
        for term in token_terms(token):
            forms.setdefault(term, token.lower() if token.isalpha() else token)
    return list(dict.fromkeys(short_line(forms[term]) for term in wanted_terms if term in forms))[:_MAX_WORDS]


def _add_by_words(request: WorkRequest, signals: WorktreeQuery, pool: _Pool, read: ReadMessages) -> None:
    query = request.query
    named = {*signals.tickets, *signals.mentioned}
    files_by_thread = named_files(signals.files, pool.cards)
    hits = find_threads(query, pool.cards, read, limit=MAX_CANDIDATES)
    if (named or files_by_thread) and not query.is_question:  # an answer leaves out what is not about the question
        missing = (named | files_by_thread.keys()) - {hit.card.id for hit in hits}

        def is_missing(card: ThreadFacts) -> bool:
            return card.id in missing and pool.keep(card)

        hits += find_threads(query, pool.cards, read, limit=MAX_CANDIDATES, keep=is_missing)
    shares = _score_shares(hits)
    checkout_shares = _score_shares(_search(signals.weights, pool)) if signals.weights else {}
    total = {
        hit.card.id: shares[hit.card.id] + _CHECKOUT_WEIGHT * checkout_shares.get(hit.card.id, 0.0) for hit in hits
    }
    best = max(total.values(), default=0.0) or 1.0
    for hit in hits:
        candidate = pool.get(hit.card)
        if candidate is not None:
            candidate.text_score, candidate.terms, candidate.has_evidence = total[hit.card.id] / best, hit.terms, True
            candidate.files = files_by_thread.get(hit.card.id, ())
            candidate.message, candidate.decides = hit.message, hit.decides
    for numbered in pool.prefetch(query.numbers):
        numbered.text_score, numbered.has_evidence, numbered.named = (
            _NUMBER_SCORE,
            True,
            (f"you name {thread_reference(numbered.card.id)}",),
        )


def _add_by_checkout(signals: WorktreeQuery, pool: _Pool) -> None:
    if signals.weights:
        hits = _search(signals.weights, pool)
        shares = _score_shares(hits)
        for hit in hits:
            candidate = pool.get(hit.card)
            if candidate is not None:
                candidate.text_score, candidate.terms = shares[hit.card.id], hit.terms
    for evidence in signals.evidence:
        _add_by_evidence(evidence, pool)
    files_by_thread = named_files(signals.files, pool.cards)
    for candidate in pool.prefetch(files_by_thread):
        candidate.files = files_by_thread[candidate.card.id]
        candidate.has_evidence |= any(file.is_distinctive for file in candidate.files)
    for number, weight in {**signals.mentioned, **dict.fromkeys(signals.tickets, 1.0)}.items():
        for candidate in pool.prefetch([number]):
            candidate.text_score, candidate.has_evidence = max(candidate.text_score, weight), True


def _add_by_evidence(evidence: WordEvidence, pool: _Pool) -> None:
    for hit in pool.cards.search(evidence.weights, limit=MAX_CANDIDATES, keep=pool.keep, floor=evidence.share):
        candidate = pool.get(hit.card)
        if candidate is not None and len(hit.terms) >= evidence.least:
            candidate.has_evidence = True
            candidate.terms = tuple(dict.fromkeys((*hit.terms, *candidate.terms)))


def _search(weights: Mapping[str, float], pool: _Pool) -> list[CardHit]:
    return pool.cards.search(weights, limit=MAX_CANDIDATES, keep=pool.keep)


def _score_shares(hits: list[CardHit]) -> dict[CardId, float]:
    best = max((hit.score for hit in hits), default=0.0)
    return {hit.card.id: hit.score / best if best > 0 else 0.0 for hit in hits}


def _add_name_reasons(pool: _Pool, signals: WorktreeQuery, branch: str) -> None:
    for key, candidate in pool.candidates.items():
        if key in signals.tickets:
            candidate.is_named, candidate.named = True, (f"the branch names {thread_reference(key)}",)
        elif _contains_branch_name(candidate.card, branch):
            candidate.is_named, candidate.named = True, ("names the branch",)
        elif key in signals.mentioned:
            candidate.named = (f"a commit names {thread_reference(key)}",)


def _contains_branch_name(card: Card, branch: str) -> bool:
    """Whether the thread's text contains the branch's name. Short names are ignored: many threads contain them."""
    if len(branch) < _MIN_BRANCH_CHARS or branch.isalpha():
        return False
    texts = (
        card.title,
        card.summary,
        card.ending.quote,
        *card.keywords,
        *(decision.text for decision in card.decisions),
    )
    return any(branch.casefold() in text.casefold() for text in texts)


def _fold_duplicates(pool: _Pool) -> None:
    """Merge duplicates into the thread at the end of their chain, if it may be shown."""
    for key in [
        key
        for key, duplicate in pool.candidates.items()
        if duplicate.card.duplicate_of is not None and duplicate.has_evidence
    ]:
        target = _canonical(pool.candidates[key].card, pool)
        if target is None:
            continue
        duplicate = pool.candidates.pop(key)
        named = tuple(
            f"{reason}, a duplicate" if "#" in reason else f"its duplicate {reason}" for reason in duplicate.named
        )
        target.text_score = max(target.text_score, duplicate.text_score)
        target.terms = tuple(dict.fromkeys((*target.terms, *duplicate.terms)))
        target.files = (*target.files, *(file for file in duplicate.files if file not in target.files))
        target.named = tuple(dict.fromkeys((*target.named, *named)))
        target.is_named |= duplicate.is_named
        target.decides |= duplicate.decides
        target.message = target.message or duplicate.message
        target.has_evidence = True


def _canonical(card: Card, pool: _Pool) -> _Candidate | None:
    known = {card.id: card}

    def original_of(key: CardId) -> CardId | None:
        target = known[key].duplicate_of
        if target is not None and target not in known:
            known.update(pool.cards.cards([target]))
        return target if target in known else None

    chain = duplicate_chain(card.id, original_of)
    original = known[chain[-1]]
    is_circle = original.duplicate_of in chain
    return pool.get(original) if len(chain) > 1 and not is_circle else None


def _score(candidate: _Candidate, now: datetime) -> float:
    score = candidate.text_score * recency(candidate.card.updated_at, now) + FILE_BONUS * sum(
        file.weight for file in candidate.files
    )
    return score * NAMED_FACTOR if candidate.is_named else score


def best_first(threads: Iterable[RankedThread]) -> tuple[RankedThread, ...]:
    """The threads in the order that the top of this module describes."""

    def order(one: RankedThread) -> tuple[object, ...]:
        return not one.decides, -one.score, -one.card.updated_at.timestamp(), *id_order(one.card.id)

    return tuple(sorted(threads, key=order))


def _reasons(candidate: _Candidate, text: str, now: datetime) -> tuple[str, ...]:
    reasons = [*candidate.named[:2]]
    if candidate.files:
        reasons.append(files_reason(candidate.files))
    if words := spellings(text, candidate.terms):
        reasons.append(Reason.WORDS + ", ".join(words))
    if recency(candidate.card.updated_at, now) > 1:
        reasons.append(_age_reason(now - candidate.card.updated_at))
    return tuple(reasons[:_MAX_REASONS])


def _age_reason(age: timedelta) -> str:
    if age <= timedelta(hours=1):
        return "changed in the last hour"
    return "changed in the last day" if age <= timedelta(days=1) else "changed in the last week"


def unused_signals(checkout: Worktree, signals: WorktreeQuery) -> tuple[str, ...]:
    """Which signals of a checkout its query does not use, and why."""
    says_nothing = checkout.branch and not signals.distinctive and not signals.tickets
    more = ("branch: its name has no distinctive word",) if says_nothing else ()
    return (*checkout.unused, *more)
