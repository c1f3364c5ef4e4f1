"""Finds threads of the organisation's other repositories that are like this one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from math import fsum, log, log1p

from bot.domain.answer import Context, Match, OrganisationKey, OrganisationMatch
from bot.domain.digest import Hit, IndexEntry
from bot.domain.organisation import OrganisationThread
from bot.domain.thread import Outcome, Thread, ThreadId
from bot.ranking.features import RankingQuery, SharedText, question, rare_terms
from bot.ranking.order import LEAST_TERMS, Candidate, RankedCandidates, rank_candidates, surest_first
from bot.ranking.weights import RankingWeights, shipped_elsewhere
from bot.reading.analyzer import body_terms, terms
from bot.recall.candidates import Candidates
from bot.recall.reasons import SharedSignals, opening, reasons, shared_signals, stored_signals
from bot.recall.similar import CANDIDATES, LEAST_RARITY, NOWHERE, READ, is_next_in_series, telling_words
from bot.settings.schema import Settings

TITLE_REPEATS = 3
"""How many times a document holds the terms of its title."""

MAX_TERMS = 30
"""Most distinct terms that are searched for. With those of the title three times, 50 find no more."""

TITLE_WEIGHT = 3
"""How much more a term of the title says than another one."""

MAX_TERMS_LOOKED_UP = 300
"""Most distinct terms of the opening text whose rarity is looked up, the most frequent first."""

SATURATION = 5.0
"""K1 of `bot.index.bm25f`, whose other constants are in `_hit`."""

MAX_SHOWN_TERMS = 8
"""Most shared terms that a hit names, those that add most to its score first."""

USUAL_TERM = 8
"""Characters of a text for each of its terms, which tells about how long the text is."""


@dataclass(frozen=True, slots=True)
class ElsewhereCandidates:
    """The candidates, best first, with their threads by the id of their entry."""

    ranked: RankedCandidates
    threads: Mapping[ThreadId, OrganisationThread]


@dataclass(frozen=True, slots=True)
class RankedElsewhere:
    """A candidate whose confidence was judged, and why it was found; empty without a reason that a reader could
    check."""

    candidate: Candidate
    thread: OrganisationThread
    why: tuple[str, ...]

    def match(self, before: datetime | None) -> OrganisationMatch:
        """As a match to show, in its state at ``before`` (None: today)."""
        one = self.thread
        closed_at = _closed_at(one, before)
        match = Match(
            id=one.id,
            title=one.title,
            similarity=round(self.candidate.similarity, 4),
            state="closed" if closed_at else "open",
            created_at=one.created_at,
            state_reason=(one.state_reason or None) if closed_at else None,
            closed_at=closed_at,
            outcome=one.outcome if closed_at else Outcome(),
            why=self.why,
            kind=one.kind,
        )
        return OrganisationMatch(one.key, one.name, match)


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
    check. Those in ``kept`` are shown already, so they may be less similar than is asked for today. The engine's word
    is all that stands behind them: read them from GitHub before they are shown. Raises OrganisationUnavailable.
    """
    floor = settings.troubleshooting.similarity_threshold
    found = judge_elsewhere(thread, rank_elsewhere(thread, candidates, scope, before, shipped_elsewhere()))
    good = (one for one in found if one.why and (one.candidate.similarity >= floor or one.thread.key in kept))
    return [one.match(before) for one in good]


def elsewhere_to_show(
    candidates: Candidates,
    thread: Thread,
    context: Context,
    scope: Collection[int],
    kept: Collection[OrganisationKey],
    settings: Settings,
) -> list[OrganisationMatch]:
    """What to show of other repositories next to ``context``, in the order in which to take it.

    First those in ``kept``, then closed ones that tell how they ended, then the surest. Each new one is surer
    than what the repository's own memory has seen before, and the thread does not point at it. Raises
    OrganisationUnavailable.
    """
    found = find_elsewhere(thread, candidates, scope, None, settings, kept)
    named = {name.casefold() for name in context.elsewhere}
    own = max((match.similarity for match in context.seen_before), default=0.0)
    new = [one for one in found if f"{one.repository}#{one.match.id}".casefold() not in named]
    better = [one for one in new if one.match.similarity > own or one.key in kept]
    return sorted(better, key=lambda one: (one.key not in kept, *_telling_first(one)))


def _telling_first(one: OrganisationMatch) -> tuple[bool, bool, float]:
    match = one.match
    return match.state != "closed", not match.outcome.kind.traits.is_explained, -match.similarity


def rank_elsewhere(
    thread: Thread, candidates: Candidates, scope: Collection[int], before: datetime | None, model: RankingWeights
) -> ElsewhereCandidates:
    """The best candidates of the engine in our own order, which does not depend on the engine's scores.

    Nothing is like a thread without a word in its title: all that it shares with others is an empty issue template.
    """
    wanted = _weights(thread) if scope and terms(thread.title) else {}
    rarity = candidates.rarity([NOWHERE, *wanted]) if wanted else {}
    asked = question(thread, rarity, rarity.get(NOWHERE, 0.0))
    searched = sorted(wanted, key=lambda term: (-wanted[term] * rarity.get(term, 0.0), term))[:MAX_TERMS]
    searched += (TITLE_WEIGHT - 1) * [term for term in searched if term in asked.title]
    found = candidates.search(searched, scope, before=thread.created_at, limit=CANDIDATES) if searched else []
    threads: dict[ThreadId, OrganisationThread] = {_name(one.thread.key): one.thread for one in found}
    most = fsum(_boost(term, asked) * rarity.get(term, 0.0) for term in wanted)
    hits = [_hit(one, wanted, asked, most, before) for one in threads.values()]
    hits = [hit for hit in hits if hit.terms and not is_next_in_series(thread, hit.entry)]
    hits.sort(key=lambda hit: (-hit.score, str(hit.entry.id)))
    return ElsewhereCandidates(rank_candidates(hits, _originals(hits, threads, before), asked, model), threads)


def judge_elsewhere(thread: Thread, found: ElsewhereCandidates) -> list[RankedElsewhere]:
    """The most similar candidates with their confidence, the surest first.

    Those that share only a form, a link, a banner, or common words are left out.
    """
    asked, ours = found.ranked.asked, opening(thread.title, thread.body)
    alike = sorted(found.ranked.candidates, key=lambda one: -one.likeness)
    near = [one for one in alike if len(one.hit.terms) >= LEAST_TERMS][: 2 * READ]
    judged = []
    for candidate in near:
        theirs = found.threads[candidate.found_as]
        shared = shared_signals(ours, stored_signals(theirs.errors, theirs.files, theirs.names))
        shared = shared.only(lambda words: _is_in_few(words, asked))
        if shared != SharedSignals() or asked.is_rare(rare_terms(candidate.hit, asked), LEAST_RARITY):
            is_error, is_file = bool(shared.errors), bool(shared.files)
            errors = sum(len(line.split()) for line in shared.errors)
            text = SharedText(frozenset(theirs.terms), errors, is_error, is_error and is_file)
            why = reasons(ours.text, shared, telling_words(candidate.hit, candidate.hit.terms, asked))
            shown = found.threads[candidate.entry.id]
            judged.append(RankedElsewhere(found.ranked.judged(candidate, text), shown, why))
    return sorted(judged, key=lambda one: surest_first(one.candidate))


def _weights(thread: Thread) -> dict[str, float]:
    """The thread's terms by how much they say in it: those of its title first, which say three times as much."""
    counts = Counter(body_terms(thread.body))
    weights = {term: TITLE_WEIGHT * (1 + log1p(counts[term])) for term in terms(thread.title)}
    for term, count in counts.most_common(MAX_TERMS_LOOKED_UP):
        weights.setdefault(term, 1 + log(count))
    return weights


def _boost(term: str, asked: RankingQuery) -> float:
    return TITLE_WEIGHT if term in asked.title else 1.0


def _hit(
    found: OrganisationThread, wanted: Mapping[str, float], asked: RankingQuery, most: float, before: datetime | None
) -> Hit:
    """The thread as a hit, with the score that `bot.index.bm25f` would give it."""
    title = Counter(terms(found.title))
    counts, words = Counter(filter(wanted.__contains__, found.terms)), len(found.terms)
    title_scale = 8.0 / (0.5 + 0.5 * title.total() / 6.0)
    body_scale = 1.0 / (0.1 + 0.9 * max(0, words - TITLE_REPEATS * title.total()) / 100.0)
    parts = {}
    for term in wanted:
        if count := counts[term]:
            here = title[term]
            frequency = title_scale * here + body_scale * max(0, count - TITLE_REPEATS * here)
            parts[term] = _boost(term, asked) * asked.rarity.get(term, 0.0) * frequency / (SATURATION + frequency)
    score = fsum(parts.values())
    strongest = sorted(parts, key=lambda term: (-parts[term], term))[:MAX_SHOWN_TERMS]
    return Hit(_entry(found, before, words), score, tuple(strongest), score / most if most else 0.0)


def _entry(found: OrganisationThread, before: datetime | None, words: int) -> IndexEntry:
    closed_at = _closed_at(found, before)
    return IndexEntry(
        id=_name(found.key),
        kind=found.kind,
        title=found.title,
        author=found.author,
        state="closed" if closed_at else "open",
        created_at=found.created_at,
        updated_at=found.created_at,
        closed_at=closed_at,
        length=USUAL_TERM * words,
        flips=(closed_at,) if closed_at else (),
    )


def _originals(
    hits: Iterable[Hit], threads: Mapping[ThreadId, OrganisationThread], before: datetime | None
) -> dict[ThreadId, IndexEntry]:
    """For each hit that is a duplicate of another one, the other's entry."""
    entries = {hit.entry.id: hit.entry for hit in hits}
    found = {}
    for key in entries:
        one = threads[key]
        original = one.outcome.duplicate_of
        target = _name(OrganisationKey(one.repository, original)) if original is not None else ""
        if target in entries and target != key and _closed_at(one, before):
            found[key] = entries[target]
    return found


def _is_in_few(words: Iterable[str], asked: RankingQuery) -> bool:
    """Whether few threads hold the rarest of these terms; the engine does not count those that hold all."""
    few = log1p(max(0.0, asked.threads - asked.few + 0.5) / (asked.few + 0.5))
    return max((asked.rarity.get(word, 0.0) for word in words), default=0.0) >= few


def _closed_at(found: OrganisationThread, before: datetime | None) -> datetime | None:
    closed_at = found.closed_at
    return closed_at if closed_at and (before is None or closed_at <= before) else None


def _name(key: OrganisationKey) -> str:
    """An id that no two threads of an organisation share."""
    return f"{key.repository}#{key.thread}"
