"""Finds the threads similar to this one: closed ones with their endings, and open ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from bot.domain.answer import Match
from bot.domain.digest import IndexEntry, IndexHit
from bot.domain.duplicates import duplicate_chain
from bot.domain.reason import is_near
from bot.domain.thread import Thread, ThreadId
from bot.index.protocol import Query
from bot.ranking import order
from bot.ranking.features import (
    SPECIFIC_THREADS_FLOOR,
    RankingQuery,
    SharedText,
    is_distinctive,
    is_specific,
    query_for,
    title_terms,
)
from bot.ranking.order import (
    MIN_SHARED_TERMS,
    NO_HOLDERS,
    Candidate,
    Holders,
    RankedCandidates,
    SimilarityKey,
    limit_unknown_authors,
    rank_candidates,
    similarity_key,
)
from bot.reading.analyzer import body_terms, terms
from bot.reading.digest import digest as read_digest
from bot.reading.endings.quote import is_unanswered
from bot.reading.error_lines import line_terms
from bot.recall.comparison import compare
from bot.recall.condense import condense, share_budget
from bot.recall.library import Library, similar_query, threads
from bot.recall.mentions import earlier_ending, telling_files
from bot.recall.reasons import common_title, has_whole_error, reasons

MAX_CANDIDATES = 200
MAX_READ = 8
"""How many of the most similar candidates are read: this many closed ones, and as many open ones."""

MAX_NEAREST = 5
"""How many threads are reported as the nearest, shown or not, among those that are read anyway."""

SAME_TITLE_SHARE, MIN_TITLE_TERMS = 0.8, 2
"""Titles are nearly the same if they share this part of their words, and at least this many."""

MAX_ANSWERED = 3
"""An error is rare if at most this many threads that state it were closed, but not as duplicates."""

SAME_ERROR_SIMILARITY = 0.7
"""Minimum similarity of a thread that was closed and states the same rare error in the same words, however else their
texts differ. Of the graded pairs that share such an error, and whose older thread was closed sooner or later, 13 of 14
are useful."""

SAME_DAY = timedelta(days=1)

MIN_LISTED_ISSUES = 5
_LISTED_ISSUE = re.compile(
    r"^[ \t]{0,8}(?:[-*+]|\d{1,3}[.)])[ \t]+(?:\[[ xX]\][ \t]+)?(?:[\w.-]{1,80}/[\w.-]{1,80})?#\d", re.MULTILINE
)

ABSENT_TERM = "\0"
"""A term that no text contains."""

_SERIES_NUMBER = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b|[0-9]+(?:[.,:/-][0-9]+)*(?:st|nd|rd|th)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """``floor``: minimum similarity; ``closed`` and ``open``: how many to show; ``budget``: characters of conversation.

    Threads in ``kept`` are shown already, so they may be below today's floor.
    """

    floor: float
    closed: int
    open: int
    budget: int
    kept: frozenset[ThreadId] = frozenset()


def find_candidates(
    thread: Thread, library: Library, before: datetime | None, skip: Iterable[ThreadId]
) -> RankedCandidates:
    """The threads most similar to this one, best first, before their texts are read; ``skip`` lists those to leave out.

    Only older threads count, in their states when this one was opened, so that the answer does not change when others
    are opened. Duplicates are folded as known at ``before``, None for today. Only a few of an unknown author's
    unanswered threads take part, all of them open; the index leaves out closed ones.
    """
    left_out = {thread.id, *skip}
    is_let_in = limit_unknown_authors(thread.created_at, order.MAX_UNVOUCHED_CANDIDATES)
    vector = library.vector(thread)
    ranking, has_vectors = library.ranking, bool(vector)
    query = similar_query(thread, vector, ranking.model(has_vectors=has_vectors))

    def is_possible(entry: IndexEntry) -> bool:
        return entry.kind.traits.is_suggested and entry.id not in left_out and is_let_in(entry)

    hits = library.search(query, limit=MAX_CANDIDATES, before=thread.created_at, keep=is_possible)
    rarity = library.rarity([*query.terms, ABSENT_TERM], before=thread.created_at)
    ranking_query, holders = _with_lines(query_for(thread, rarity, rarity.get(ABSENT_TERM, 0.0)), thread, library)
    certain = _with_same_title(thread, library, is_possible).union(holders.answered)
    missed = certain.difference(hit.entry.id for hit in hits)
    if missed:
        hits += library.search(
            query, limit=len(missed), before=thread.created_at, keep=lambda e: e.id in missed and is_possible(e)
        )
    originals = _originals(hits, library, before)
    found = rank_candidates(hits, originals, ranking_query, ranking, holders, has_vectors=has_vectors)
    fit = (c for c in found.candidates if c.entry.id not in left_out and not is_next_in_series(thread, c.entry))
    return replace(found, candidates=tuple(fit))


def _with_same_title(thread: Thread, library: Library, keep: Callable[[IndexEntry], bool]) -> set[ThreadId]:
    """The threads with nearly the same title, which a long text may rank below all others."""
    words = Query(dict.fromkeys(title_terms(thread.title), 1.0))
    hits = library.search(words, limit=MAX_READ, before=thread.created_at, keep=keep) if words.terms else []
    return {hit.entry.id for hit in hits if is_same_title(thread.title, hit.entry.title)}


def is_same_title(one: str, other: str) -> bool:
    """Whether two titles are the same, or have nearly the same words, at least two."""
    ours, theirs = title_terms(one), title_terms(other)
    return _is_equal(one, other) or len(ours & theirs) >= max(MIN_TITLE_TERMS, SAME_TITLE_SHARE * len(ours | theirs))


def is_telling_title(one: str, other: str) -> bool:
    """Whether two titles are the same, and long enough to be no coincidence."""
    return _is_equal(one, other) and len(terms(one)) >= MIN_SHARED_TERMS


def _is_equal(one: str, other: str) -> bool:
    return one.casefold().split() == other.casefold().split()


def _with_lines(query: RankingQuery, thread: Thread, library: Library) -> tuple[RankingQuery, Holders]:
    """The query with the errors of the thread that are no boilerplate, and the threads that state one of them too.

    An error is boilerplate if many threads that state it were closed, each for its own reason; a vague one sooner.
    However often people report it while it is open, they report one thing.
    """
    lines = line_terms(thread.title, thread.body)
    hits = library.search(Query(dict.fromkeys(lines, 1.0)), limit=MAX_CANDIDATES, before=query.at) if lines else []
    answered = Counter(line for hit in hits if _is_answered(hit.entry, query.at) for line in hit.terms)
    few = {line: SPECIFIC_THREADS_FLOOR if is_vague else query.few for line, is_vague in lines.items()}
    telling = frozenset(line for line in lines if answered[line] <= few[line])
    query = replace(query, lines=telling, has_lines=True)
    held = Counter(line for hit in hits for line in hit.terms if line in query.lines)
    if not held:
        return query, NO_HOLDERS
    most_held = max(sorted(held), key=held.__getitem__)
    pairs = {term: frozenset((most_held, term)) for term in (*query.title, *query.body, *query.lines)}
    joint_frequency = library.joint_frequency(pairs.values(), before=query.at)
    rare = frozenset(line for line in query.lines if answered[line] <= MAX_ANSWERED and not lines[line])
    return query, Holders(
        frozenset(hit.entry.id for hit in hits if not query.lines.isdisjoint(hit.terms)),
        {term: joint_frequency.get(pair, 0) for term, pair in pairs.items()},
        frozenset(hit.entry.id for hit in hits if not rare.isdisjoint(hit.terms) and _is_answered(hit.entry, query.at)),
        rare,
    )


def _is_answered(entry: IndexEntry, moment: datetime) -> bool:
    return entry.closed_since(moment) is not None and entry.duplicate_of_at(moment) is None


@dataclass(frozen=True, slots=True)
class SimilarThreads:
    """The closed threads to show, the open ones, and the MAX_NEAREST most similar ones, shown or not."""

    seen: tuple[Match, ...] = ()
    still_open: tuple[Match, ...] = ()
    nearest: tuple[Match, ...] = ()


def find_similar(
    thread: Thread,
    library: Library,
    before: datetime | None,
    skip: Iterable[ThreadId],
    limits: Limits,
    repo: str | None = None,
) -> SimilarThreads:
    """The closed and open threads most similar to this one; ``skip`` lists those that are shown already.

    States are those at ``before``, None for today's. Nothing is similar to a thread without a word of its own.
    """
    if not has_words(thread):
        return SimilarThreads()
    candidates = judge_candidates(thread, find_candidates(thread, library, before, skip), library, before)
    shown = [
        candidate for candidate in candidates if candidate.is_shown(limits.floor) or candidate.thread.id in limits.kept
    ]
    seen = [
        candidate.match(repo)
        for candidate in _take_first(
            [candidate for candidate in shown if candidate.thread.is_closed], limits.closed, limits.kept
        )
    ]
    open_candidates = [candidate for candidate in shown if not candidate.thread.is_closed]
    still_open = [candidate.match(repo) for candidate in _take_first(open_candidates, limits.open, limits.kept)]
    texts = {candidate.thread.id: candidate.thread for candidate in shown}
    budgets = share_budget([match.similarity for match in seen], limits.budget) if seen else []
    question_terms = Counter(terms(f"{thread.title}\n{thread.body}"))
    seen = [
        replace(m, conversation=condense(texts[m.id], question_terms, b)) for m, b in zip(seen, budgets, strict=True)
    ]
    return SimilarThreads(
        tuple(seen), tuple(still_open), tuple(candidate.brief_match() for candidate in candidates[:MAX_NEAREST])
    )


def has_words(thread: Thread) -> bool:
    """Whether its title or its text has words other than those of an issue template."""
    return bool(terms(thread.title) or body_terms(thread.body))


def is_same_day(thread: Thread, entry: IndexEntry) -> bool:
    """Whether one person filed both within a day, about parts of one thing: not under the same title."""
    is_near = thread.author == entry.author and thread.created_at - entry.created_at <= SAME_DAY
    return is_near and not is_same_title(thread.title, entry.title)


def is_next_in_series(thread: Thread, entry: IndexEntry) -> bool:
    """Whether both have the same author and titles that differ only in numbers and dates, such as weekly reports."""
    if thread.author != entry.author or thread.title == entry.title:
        return False
    return _SERIES_NUMBER.sub("#", thread.title) == _SERIES_NUMBER.sub("#", entry.title)


@dataclass(frozen=True, slots=True)
class SimilarThread:
    """A candidate whose text was read: its thread, and why it was found; ``why`` is empty without a reason that a
    reader could check. ``is_copy``: its text is the question's, nearly word for word."""

    candidate: Candidate
    thread: Thread
    why: tuple[str, ...]
    is_copy: bool = False

    def is_shown(self, floor: float) -> bool:
        """Whether a comment may show it: it is similar enough and worth it."""
        return self.candidate.similarity >= floor and self.is_worth_showing

    @property
    def is_worth_showing(self) -> bool:
        """Whether it has a reason, and more to tell than that nobody answered, unless it is the same problem."""
        if not self.why or not self.thread.is_closed or is_near(self.candidate.similarity, self.why):
            return bool(self.why)
        return not is_unanswered(read_digest(self.thread).outcome)

    def brief_match(self) -> Match:
        """As a match with only its similarity and reasons."""
        return Match(
            id=self.thread.id,
            title=self.thread.title,
            similarity=round(self.candidate.similarity, 4),
            state=self.thread.state,
            state_reason=self.thread.state_reason,
            created_at=self.thread.created_at,
            closed_at=self.thread.closed_at,
            why=self.why,
            kind=self.thread.kind,
        )

    def match(self, repo: str | None = None) -> Match:
        """As a match to show; ``repo`` is its repository."""
        digest = read_digest(self.thread, repo=repo)
        return replace(
            self.brief_match(),
            closed_by=self.thread.closed_by,
            turn_count=digest.turn_count,
            outcome=digest.outcome,
            files=telling_files(digest.files),
            earlier=earlier_ending(self.thread, repo),
        )


def judge_candidates(
    thread: Thread, ranking: RankedCandidates, library: Library, before: datetime | None
) -> list[SimilarThread]:
    """Read the most similar candidates of each state and judge their confidence, the surest first.

    Leaves out candidates without a text and, next to a copy of the question, what is only somewhat like it.
    """
    is_read = limit_unknown_authors(thread.created_at, order.MAX_UNVOUCHED_READ)
    fit = (c for c in ranking.candidates if not is_same_day(thread, c.entry))
    alike = [c for c in sorted(fit, key=lambda c: -c.likeness) if is_read(c.entry)]
    certain = [c for c in alike if is_same_title(thread.title, c.hit.entry.title)][:MAX_READ]
    certain += [c for c in alike if c.found_as in ranking.holders.answered and c not in certain][:MAX_READ]
    related = [c for c in alike if len(c.hit.terms) >= MIN_SHARED_TERMS and c not in certain]
    near = certain + [c for c in related if not c.entry.open_at(before)][:MAX_READ]
    near += [c for c in related if c.entry.open_at(before)][:MAX_READ]
    texts = threads(library, [key for c in near for key in dict.fromkeys((c.entry.id, c.found_as))], before)
    pairs = [(c, texts.get(c.found_as, texts[c.entry.id])) for c in near if c.entry.id in texts]
    judged = []
    comparisons = compare(thread, [text for _, text in pairs], ranking.query, library)
    for (candidate, text), comparison in zip(pairs, comparisons, strict=True):
        shown = text if is_umbrella(texts[candidate.entry.id]) else texts[candidate.entry.id]
        why = reasons(
            comparison.text,
            comparison.shared,
            telling_words(candidate.hit, comparison.prose_words, ranking.query),
            comparison.prose_words,
            is_same=comparison.is_same,
            titles=common_title(thread.title, shown.title, is_same=is_telling_title(thread.title, shown.title)),
        )
        has_error, has_file = bool(comparison.shared.errors), bool(comparison.shared.files)
        found = SharedText(
            comparison.words, comparison.errors, has_error, has_error and has_file, comparison.has_other_error
        )
        is_known = candidate.found_as in ranking.holders.answered
        is_known &= has_whole_error(comparison.shared, ranking.holders.lines)
        known = ranking.judge(candidate, found, SAME_ERROR_SIMILARITY if is_known else 0.0)
        judged.append(SimilarThread(known, shown, why, comparison.is_same))
    return sorted(_beside_copies(_with_equal_copies(judged)), key=_listing_key)


def _with_equal_copies(judged: Sequence[SimilarThread]) -> list[SimilarThread]:
    """The same threads; all copies of the question are as similar as the most similar one."""
    best = max(
        (one.candidate for one in judged if one.is_copy), key=lambda c: (c.similarity, c.confidence), default=None
    )
    if best is None:
        return list(judged)
    return [
        replace(one, candidate=replace(one.candidate, similarity=best.similarity, confidence=best.confidence))
        if one.is_copy
        else one
        for one in judged
    ]


def _beside_copies(judged: Sequence[SimilarThread]) -> Sequence[SimilarThread]:
    """The same threads; if one is a copy of the question, only those nearly as similar, as others add nothing to it."""
    near = [one for one in judged if is_near(one.candidate.similarity, one.why)]
    return near if any(one.is_copy for one in near) else judged


def _listing_key(similar: SimilarThread) -> tuple[float, float, bool, datetime, SimilarityKey]:
    """A sort key that puts the most similar first; among copies of the question, the oldest that has an ending."""
    key = similarity_key(similar.candidate)
    since = similar.thread.created_at if similar.is_copy else datetime.min.replace(tzinfo=UTC)
    return *key[:2], similar.is_copy and not similar.thread.is_closed, since, key


def is_umbrella(thread: Thread) -> bool:
    """Whether its text lists other issues: a thread that was closed in its favour is kept there, but not like it."""
    return len(_LISTED_ISSUE.findall(thread.body)) >= MIN_LISTED_ISSUES


def telling_words(hit: IndexHit, prose_terms: Collection[str], query: RankingQuery) -> dict[str, bool]:
    """The distinctive terms in the prose or code of both, and whether each is specific: rare, or in both titles.

    ``prose_terms``: the terms in the prose or code of the older text.
    """
    titles = query.title & title_terms(hit.entry.title)
    telling = (term for term in hit.terms if term in prose_terms and is_distinctive(term, query))
    return {term: term in titles or is_specific(term, query) for term in telling}


def _take_first(candidates: list[SimilarThread], limit: int, kept: frozenset[ThreadId]) -> list[SimilarThread]:
    """The first ``limit``, in their order; kept ones take precedence."""
    taken = sorted(candidates, key=lambda candidate: candidate.thread.id not in kept)[:limit]
    return [candidate for candidate in candidates if candidate in taken]


def _originals(hits: list[IndexHit], library: Library, before: datetime | None) -> dict[ThreadId, IndexEntry]:
    """For each hit that is a duplicate, the entry of its original, at the end of the chain."""
    entries = {hit.entry.id: hit.entry for hit in hits}
    originals: dict[ThreadId, IndexEntry] = {}

    def original_of(key: ThreadId) -> ThreadId | None:
        target = entries[key].duplicate_of_at(before)
        if target is not None and target not in entries:
            entries.update(library.entries([target]))
        is_known = target in entries and not (before and entries[target].created_at >= before)
        return target if is_known else None

    for hit in hits:
        original = duplicate_chain(hit.entry.id, original_of)[-1]
        if original != hit.entry.id:
            originals[hit.entry.id] = entries[original]
    return originals
