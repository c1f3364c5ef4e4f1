"""Finds the threads similar to this one: closed ones with their endings, and open ones."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from bot.domain.answer import Match
from bot.domain.digest import Hit, IndexEntry
from bot.domain.thread import Thread, ThreadId
from bot.ranking import order
from bot.ranking.features import RankingQuery, SharedText, is_specific, is_told, question, rare_terms, title_terms
from bot.ranking.order import (
    LEAST_TERMS,
    Candidate,
    RankedCandidates,
    few_of_each_unknown_author,
    rank_candidates,
    surest_first,
)
from bot.reading.analyzer import terms
from bot.reading.digest import digest as read_digest
from bot.recall.comparison import compare
from bot.recall.condense import condense, share_budget
from bot.recall.library import Library, similar_query, threads
from bot.recall.mentions import earlier_ending, telling_files
from bot.recall.reasons import SharedSignals, reasons

CANDIDATES = 200
READ = 8
"""How many of the most similar candidates are read, of the closed and of the open ones."""

NEAREST = 5
"""Threads reported as the nearest, shown or not, among those that are read anyway."""

LEAST_RARITY = 0.45
"""Least rarity of the rarest shared terms if nothing else is shared, as a share of the rarest term's. Among 60 pairs
read by hand it separated related pairs best from others."""

NOWHERE = "\0"
"""A term that no text has."""

_NUMBERED = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b|[0-9]+(?:[.,:/-][0-9]+)*(?:st|nd|rd|th)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """``floor``: least similarity; ``closed`` and ``open``: how many are shown; ``budget``: characters of conversation.

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
    """The threads most similar to this one, best first, before their texts are read; ``skip`` names those left out.

    Only older threads count, with their states when this one was opened, so that the answer does not change as others
    are opened. Duplicates are folded as known at ``before``, None for today. Of an unknown author's unanswered threads
    only few open ones take part; the index leaves out closed ones.
    """
    left_out = {thread.id, *skip}
    is_let_in = few_of_each_unknown_author(thread.created_at, order.AMONG_CANDIDATES)
    vectors = library.vectors(thread)
    model = library.ranking.model(vectors)
    query = similar_query(thread, vectors, model)
    hits = library.search(
        query,
        limit=CANDIDATES,
        before=thread.created_at,
        keep=lambda entry: entry.kind.traits.is_suggested and entry.id not in left_out and is_let_in(entry),
    )
    rarity = library.rarity([*query.terms, NOWHERE], before=thread.created_at)
    found = rank_candidates(
        hits, _canonical(hits, library, before), question(thread, rarity, rarity.get(NOWHERE, 0.0)), model
    )
    fit = (c for c in found.candidates if c.entry.id not in left_out and not is_next_in_series(thread, c.entry))
    return replace(found, candidates=tuple(fit))


@dataclass(frozen=True, slots=True)
class SimilarThreads:
    """The closed threads to show, the open ones, and the NEAREST most similar, shown or not."""

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
    """The closed and open threads most similar to this one; ``skip`` names those that are shown already.

    States are those at ``before``, None for today's. Nothing is similar to a thread without a word in its title: all
    that it shares with others is an empty issue template.
    """
    if not terms(thread.title):
        return SimilarThreads()
    found = judge_candidates(thread, find_candidates(thread, library, before, skip), library, before)
    good = [one for one in found if one.is_shown(limits.floor) or one.thread.id in limits.kept]
    seen = [one.match(repo) for one in _first([o for o in good if o.thread.is_closed], limits.closed, limits.kept)]
    is_open = [one for one in good if not one.thread.is_closed]
    still_open = [one.match(repo) for one in _first(is_open, limits.open, limits.kept)]
    texts = {one.thread.id: one.thread for one in good}
    budgets = share_budget([match.similarity for match in seen], limits.budget) if seen else []
    asked = Counter(terms(f"{thread.title}\n{thread.body}"))
    seen = [replace(m, conversation=condense(texts[m.id], asked, b)) for m, b in zip(seen, budgets, strict=True)]
    return SimilarThreads(tuple(seen), tuple(still_open), tuple(one.in_short() for one in found[:NEAREST]))


def is_next_in_series(thread: Thread, entry: IndexEntry) -> bool:
    """Whether both have one author and titles that differ in numbers and dates only, such as weekly reports."""
    if thread.author != entry.author or thread.title == entry.title:
        return False
    return _NUMBERED.sub("#", thread.title) == _NUMBERED.sub("#", entry.title)


@dataclass(frozen=True, slots=True)
class SimilarThread:
    """A candidate whose text was read: its thread, and why it was found, empty without a reason that a reader could
    check."""

    candidate: Candidate
    thread: Thread
    why: tuple[str, ...]

    def is_shown(self, floor: float) -> bool:
        """Whether it may stand in a comment: similar enough, and for a reason."""
        return bool(self.why) and self.candidate.similarity >= floor

    def in_short(self) -> Match:
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
            self.in_short(),
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

    Candidates without a text are left out, and those that share only a form, a link, a banner, or common words.
    """
    is_read = few_of_each_unknown_author(thread.created_at, order.READ_UNVOUCHED)
    alike = [c for c in sorted(ranking.candidates, key=lambda c: -c.likeness) if is_read(c.entry)]
    near = [c for c in alike if len(c.hit.terms) >= LEAST_TERMS and not c.entry.open_at(before)][:READ]
    near += [c for c in alike if len(c.hit.terms) >= LEAST_TERMS and c.entry.open_at(before)][:READ]
    texts = threads(library, [key for c in near for key in dict.fromkeys((c.entry.id, c.found_as))], before)
    read = [(c, texts.get(c.found_as, texts[c.entry.id])) for c in near if c.entry.id in texts]
    found = []
    comparisons = compare(thread, [text for _, text in read], ranking.asked, library)
    for (candidate, _), both in zip(read, comparisons, strict=True):
        why = reasons(
            both.text, both.shared, telling_words(candidate.hit, both.said, ranking.asked), is_same=both.is_same
        )
        is_rare = ranking.asked.is_rare(rare_terms(candidate.hit, ranking.asked), LEAST_RARITY)
        if both.shared != SharedSignals() or is_rare:
            has_error, has_file = bool(both.shared.errors), bool(both.shared.files)
            text = SharedText(both.words, both.errors, has_error, has_error and has_file)
            found.append(SimilarThread(ranking.judged(candidate, text), texts[candidate.entry.id], why))
    return sorted(found, key=lambda one: surest_first(one.candidate))


def telling_words(hit: Hit, said: Collection[str], asked: RankingQuery) -> dict[str, bool]:
    """The telling terms of a hit in the prose or code of both, and whether each is specific: rare, or in both titles.

    ``said``: the terms in the prose or code of the older text.
    """
    titles = asked.title & title_terms(hit.entry.title)
    told = (term for term in hit.terms if term in said and is_told(term, asked))
    return {term: term in titles or is_specific(term, asked) for term in told}


def _first(found: list[SimilarThread], most: int, kept: frozenset[ThreadId]) -> list[SimilarThread]:
    """The first ``most``, in their order; kept ones take precedence."""
    chosen = sorted(found, key=lambda one: one.thread.id not in kept)[:most]
    return [one for one in found if one in chosen]


def _canonical(hits: list[Hit], library: Library, before: datetime | None) -> dict[ThreadId, IndexEntry]:
    """For each hit that is a duplicate, the entry of its original, at the end of the chain."""
    known = {hit.entry.id: hit.entry for hit in hits}
    found: dict[ThreadId, IndexEntry] = {}
    for hit in hits:
        walked, target = [hit.entry.id], hit.entry.duplicate_of_at(before)
        while target is not None and target not in walked:
            if target not in known:
                known |= library.entries([target])
            if target not in known or (before and known[target].created_at >= before):
                break
            walked.append(target)
            target = known[target].duplicate_of_at(before)
        if len(walked) > 1:
            found[hit.entry.id] = known[walked[-1]]
    return found
