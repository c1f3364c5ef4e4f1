"""Finds threads of the organisation's other repositories that are like this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import fsum, log, log1p

from bot.domain.answer import Context, Match, OrganisationMatch
from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.organisation import OrganisationThread
from bot.domain.post import OrganisationKey
from bot.domain.thread import Outcome, Thread, ThreadId
from bot.ranking.features import RankingQuery, SharedText, query_for
from bot.ranking.order import MIN_SHARED_TERMS, Candidate, RankedCandidates, rank_candidates, similarity_key
from bot.ranking.rarity import idf
from bot.ranking.weights import RankingModels, shipped_elsewhere
from bot.reading.analyzer import body_terms, terms
from bot.recall.candidates import Candidates
from bot.recall.reasons import SharedSignals, opening, reasons, shared_signals, stored_signals
from bot.recall.similar import ABSENT_TERM, MAX_CANDIDATES, MAX_READ, is_next_in_series, telling_words
from bot.settings.schema import Settings

TITLE_REPEATS = 3
"""How many times a document contains the terms of its title."""

MAX_TERMS = 30
"""Most distinct terms that are searched for. With title terms counted three times, 50 find no more."""

TITLE_WEIGHT = 3
"""How much more a title term counts than another one."""

MAX_TERMS_LOOKED_UP = 300
"""Most distinct terms of the opening text whose rarity is looked up, the most frequent first."""

K1 = 5.0
"""K1 of `bot.index.bm25f`, whose other constants are in `_hit`."""

MIN_RARITY = 0.45
"""Minimum rarity of the rarest shared terms if nothing else is shared, relative to that of the rarest term. Among 60
pairs read by hand it best separated related pairs from others."""

MAX_SHOWN_TERMS = 8
"""Most shared terms that a hit lists, those that add most to its score first."""

CHARS_PER_TERM = 8
"""Characters of text per term, to estimate the length of a text."""


@dataclass(frozen=True, slots=True)
class ElsewhereCandidates:
    """The candidates, best first, with their threads by the id of their entry."""

    ranked: RankedCandidates
    threads: Mapping[ThreadId, OrganisationThread]


@dataclass(frozen=True, slots=True)
class RankedElsewhere:
    """A candidate whose confidence was judged, and why it was found; ``why`` is empty without a reason that a reader
    could check."""

    candidate: Candidate
    thread: OrganisationThread
    why: tuple[str, ...]

    def match(self, before: datetime | None) -> OrganisationMatch:
        """As a match to show, in its state at ``before`` (None: today)."""
        thread = self.thread
        closed_at = _closed_at(thread, before)
        match = Match(
            id=thread.id,
            title=thread.title,
            similarity=round(self.candidate.similarity, 4),
            state="closed" if closed_at else "open",
            created_at=thread.created_at,
            state_reason=(thread.state_reason or None) if closed_at else None,
            closed_at=closed_at,
            outcome=thread.outcome if closed_at else Outcome(),
            why=self.why,
            kind=thread.kind,
        )
        return OrganisationMatch(thread.key, thread.name, match)


def find_elsewhere(
    thread: Thread,
    candidates: Candidates,
    scope: Collection[int],
    before: datetime | None,
    settings: Settings,
    kept: Collection[OrganisationKey] = (),
) -> list[OrganisationMatch]:
    """The threads of the repositories in ``scope`` that are like this one, the surest first.

    Only older threads count, in their state at ``before`` (None: today's), and only for a reason that a reader could
    check. Those in ``kept`` are shown already, so they may be below today's similarity threshold. All of it comes from
    the engine alone: read the threads from GitHub before showing them. Raises OrganisationUnavailable.
    """
    floor = settings.similar.threshold
    found = judge_elsewhere(thread, rank_elsewhere(thread, candidates, scope, before, shipped_elsewhere()))
    good = (
        ranked for ranked in found if ranked.why and (ranked.candidate.similarity >= floor or ranked.thread.key in kept)
    )
    return [ranked.match(before) for ranked in good]


def elsewhere_to_show(
    candidates: Candidates,
    thread: Thread,
    context: Context,
    scope: Collection[int],
    kept: Collection[OrganisationKey],
    settings: Settings,
) -> list[OrganisationMatch]:
    """What to show from other repositories next to ``context``, in order of preference.

    First those in ``kept``, then closed ones with a known ending, then the surest. Each new one is more similar than
    any closed thread in the repository's own memory, and the thread does not refer to it yet. Raises
    OrganisationUnavailable.
    """
    found = find_elsewhere(thread, candidates, scope, None, settings, kept)
    mentioned = {name.casefold() for name in context.elsewhere}
    own = max((match.similarity for match in context.seen_before), default=0.0)
    new = [other for other in found if f"{other.repository}#{other.match.id}".casefold() not in mentioned]
    better = [other for other in new if other.match.similarity > own or other.key in kept]
    return sorted(better, key=lambda other: (other.key not in kept, *_explained_first(other)))


def _explained_first(other: OrganisationMatch) -> tuple[bool, bool, float]:
    match = other.match
    return match.state != "closed", not match.outcome.kind.traits.is_explained, -match.similarity


def rank_elsewhere(
    thread: Thread, candidates: Candidates, scope: Collection[int], before: datetime | None, ranking: RankingModels
) -> ElsewhereCandidates:
    """The engine's best candidates in our own order, which does not depend on the engine's scores.

    Nothing is similar to a thread without a word in its title: all it shares with others is an empty issue template.
    """
    term_weights = _weights(thread) if scope and terms(thread.title) else {}
    rarity = candidates.rarity([ABSENT_TERM, *term_weights]) if term_weights else {}
    query = query_for(thread, rarity, rarity.get(ABSENT_TERM, 0.0))
    searched = sorted(term_weights, key=lambda term: (-term_weights[term] * rarity.get(term, 0.0), term))[:MAX_TERMS]
    searched += (TITLE_WEIGHT - 1) * [term for term in searched if term in query.title]
    found = candidates.search(searched, scope, before=thread.created_at, limit=MAX_CANDIDATES) if searched else []
    threads: dict[ThreadId, OrganisationThread] = {_entry_id(one.thread.key): one.thread for one in found}
    max_score = fsum(_boost(term, query) * rarity.get(term, 0.0) for term in term_weights)
    hits = [_hit(one, term_weights, query, max_score, before) for one in threads.values()]
    hits = [hit for hit in hits if hit.terms and not is_next_in_series(thread, hit.entry)]
    hits.sort(key=lambda hit: (-hit.score, str(hit.entry.id)))
    return ElsewhereCandidates(rank_candidates(hits, _originals(hits, threads, before), query, ranking), threads)


def judge_elsewhere(thread: Thread, found: ElsewhereCandidates) -> list[RankedElsewhere]:
    """The most similar candidates with their confidence, the surest first.

    Those that share only a form, a link, a banner, or common words are left out.
    """
    query, ours = found.ranked.query, opening(thread.title, thread.body)
    alike = sorted(found.ranked.candidates, key=lambda c: -c.likeness)
    near = [c for c in alike if len(c.hit.terms) >= MIN_SHARED_TERMS][: 2 * MAX_READ]
    judged = []
    for candidate in near:
        theirs = found.threads[candidate.found_as]
        shared = shared_signals(ours, stored_signals(theirs.errors, theirs.files, theirs.names))
        shared = shared.only(lambda words: _is_rare(words, query))
        if shared != SharedSignals() or query.is_rare(_rare_terms(candidate.hit, query), MIN_RARITY):
            is_error, is_file = bool(shared.errors), bool(shared.files)
            errors = sum(len(line.split()) for line in shared.errors)
            text = SharedText(frozenset(theirs.terms), errors, is_error, is_error and is_file)
            why = reasons(ours.text, shared, telling_words(candidate.hit, candidate.hit.terms, query))
            shown = found.threads[candidate.entry.id]
            judged.append(RankedElsewhere(found.ranked.judge(candidate, text), shown, why))
    return sorted(judged, key=lambda c: similarity_key(c.candidate))


def _weights(thread: Thread) -> dict[str, float]:
    """The thread's terms with their weights: title terms come first and weigh three times as much."""
    counts = Counter(body_terms(thread.body))
    weights = {term: TITLE_WEIGHT * (1 + log1p(counts[term])) for term in terms(thread.title)}
    for term, count in counts.most_common(MAX_TERMS_LOOKED_UP):
        weights.setdefault(term, 1 + log(count))
    return weights


def _rare_terms(hit: IndexHit, query: RankingQuery) -> float:
    """The mean rarity of the three rarest of the strongest shared terms."""
    return sum(sorted((query.rarity.get(term, 0.0) for term in hit.terms), reverse=True)[:3]) / 3


def _boost(term: str, query: RankingQuery) -> float:
    return TITLE_WEIGHT if term in query.title else 1.0


def _hit(
    thread: OrganisationThread,
    term_weights: Mapping[str, float],
    query: RankingQuery,
    max_score: float,
    before: datetime | None,
) -> IndexHit:
    """The thread as a hit, with the score that `bot.index.bm25f` would give it."""
    title = Counter(terms(thread.title))
    counts, words = Counter(filter(term_weights.__contains__, thread.terms)), len(thread.terms)
    title_scale = 8.0 / (0.5 + 0.5 * title.total() / 6.0)
    body_scale = 1.0 / (0.1 + 0.9 * max(0, words - TITLE_REPEATS * title.total()) / 100.0)
    parts = {}
    for term in term_weights:
        if count := counts[term]:
            here = title[term]
            frequency = title_scale * here + body_scale * max(0, count - TITLE_REPEATS * here)
            parts[term] = _boost(term, query) * query.rarity.get(term, 0.0) * frequency / (K1 + frequency)
    score = fsum(parts.values())
    strongest = sorted(parts, key=lambda term: (-parts[term], term))[:MAX_SHOWN_TERMS]
    return IndexHit(_entry(thread, before, words), score, tuple(strongest), score / max_score if max_score else 0.0)


def _entry(thread: OrganisationThread, before: datetime | None, words: int) -> IndexEntry:
    closed_at = _closed_at(thread, before)
    return IndexEntry(
        id=_entry_id(thread.key),
        kind=thread.kind,
        title=thread.title,
        author=thread.author,
        state="closed" if closed_at else "open",
        created_at=thread.created_at,
        updated_at=thread.created_at,
        length=CHARS_PER_TERM * words,
        state_changes=(closed_at,) if closed_at else (),
    )


def _originals(
    hits: Iterable[IndexHit], threads: Mapping[ThreadId, OrganisationThread], before: datetime | None
) -> dict[ThreadId, IndexEntry]:
    """For each hit that is a duplicate of another hit, the entry of that hit."""
    entries = {hit.entry.id: hit.entry for hit in hits}
    originals = {}
    for key in entries:
        thread = threads[key]
        original = thread.outcome.duplicate_of
        target = _entry_id(OrganisationKey(thread.repository, original)) if original is not None else ""
        if target in entries and target != key and _closed_at(thread, before):
            originals[key] = entries[target]
    return originals


def _is_rare(words: Iterable[str], query: RankingQuery) -> bool:
    """Whether few threads hold the rarest of these terms; the engine cannot count the threads that hold all of them."""
    few = idf(query.few, query.threads)
    return max((query.rarity.get(word, 0.0) for word in words), default=0.0) >= few


def _closed_at(thread: OrganisationThread, before: datetime | None) -> datetime | None:
    closed_at = thread.closed_at
    return closed_at if closed_at and (before is None or closed_at <= before) else None


def _entry_id(key: OrganisationKey) -> str:
    """An id that is unique in the organisation."""
    return f"{key.repository}#{key.thread}"
