"""The threads that look like this one: those that ended, with how they ended, and the open ones apart."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from bot.answer import Match
from bot.model import Entry, Hit, Kind, Thread, ThreadId
from bot.reading.digest import digest as read_digest
from bot.reading.words import terms
from bot.recall.condense import condense, share_budget
from bot.recall.files import telling_files
from bot.recall.library import Library, threads
from bot.recall.query import similar_query
from bot.recall.rank import Candidate, in_order, ranked, with_signals, within_reach
from bot.recall.why import reasons, shared_signals

CANDIDATES = 200
FOLDED = 40
"""Of how many of the best hits it is asked whether they are duplicates of something."""

_NUMBERED = re.compile(
    r"\b(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?"
    r"|nov(?:ember)?|dec(?:ember)?)\b|[0-9]+(?:[.,:/-][0-9]+)*(?:st|nd|rd|th)?",
    re.ASCII | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Limits:
    """``floor``: least similarity. How many closed and open threads are shown, and the characters shared by them."""

    floor: float
    closed: int
    open: int
    budget: int


def similar(
    thread: Thread, library: Library, before: datetime | None, skip: Iterable[ThreadId], limits: Limits
) -> tuple[tuple[Match, ...], tuple[Match, ...]]:
    """The closed threads most like this one, and the open ones; ``skip`` names those that are shown already.

    Only threads that are older than this one are looked at, so that the answer does not change as others are opened.
    States are those at ``before``, None for today's. Nothing is like a thread whose title has no word in it: what
    such a one shares with others is the form that nobody filled in.
    """
    if not terms(thread.title):
        return (), ()
    left_out = {thread.id, *skip}
    query = similar_query(thread)
    hits = library.search(
        query,
        limit=CANDIDATES,
        before=thread.created_at,
        keep=lambda entry: entry.kind is Kind.ISSUE and entry.id not in left_out,
    )
    candidates = ranked(hits, _canonical(hits, library, before), len(query.terms))
    candidates = [c for c in candidates if c.entry.id not in left_out and not is_next_in_series(thread, c.entry)]
    near = within_reach(candidates, limits.floor)
    texts = threads(library, _needed(near), before)
    found = _with_signals(thread, near, texts)
    good = [pair for pair in found if pair[0].similarity >= limits.floor]
    closed = [pair for pair in good if texts[pair[0].entry.id].is_closed][: limits.closed]
    still_open = [pair for pair in good if not texts[pair[0].entry.id].is_closed][: limits.open]
    seen = _matches(closed, texts)
    budgets = share_budget([match.similarity for match in seen], limits.budget) if seen else []
    question = Counter(terms(f"{thread.title}\n{thread.body}"))
    told = [replace(m, conversation=condense(texts[m.id], question, b)) for m, b in zip(seen, budgets, strict=True)]
    return tuple(told), tuple(_matches(still_open, texts))


def is_next_in_series(thread: Thread, entry: Entry) -> bool:
    """Whether one author wrote both under titles that differ in numbers and dates only: reports, releases, digests."""
    if thread.author != entry.author or thread.title == entry.title:
        return False
    return _NUMBERED.sub("#", thread.title) == _NUMBERED.sub("#", entry.title)


def _needed(candidates: Iterable[Candidate]) -> list[ThreadId]:
    return [key for c in candidates for key in dict.fromkeys((c.entry.id, c.found_as))]


Found = tuple[Candidate, tuple[str, ...]]
"""A candidate, and why it was found."""


def _with_signals(thread: Thread, near: Iterable[Candidate], texts: Mapping[ThreadId, Thread]) -> list[Found]:
    """The candidates with what their texts share with the thread, best first.

    Those whose text is gone are left out, and those for which no reason can be told: they share a form or a link.
    """
    why: dict[ThreadId, tuple[str, ...]] = {}
    lifted: list[Candidate] = []
    for c in near:
        if c.entry.id in texts:
            both = shared_signals(thread, texts.get(c.found_as, texts[c.entry.id]))
            why[c.entry.id] = reasons(thread, both, c.terms)
            lifted.append(with_signals(c, same_error=bool(both.errors), same_file=bool(both.files)))
    return [(c, why[c.entry.id]) for c in in_order(lifted) if why[c.entry.id]]


def _matches(pairs: Iterable[Found], texts: Mapping[ThreadId, Thread]) -> list[Match]:
    return [_match(candidate, why, texts[candidate.entry.id]) for candidate, why in pairs]


def _match(candidate: Candidate, why: tuple[str, ...], found: Thread) -> Match:
    digest = read_digest(found)
    return Match(
        id=found.id,
        title=found.title,
        similarity=round(candidate.similarity, 4),
        state=found.state,
        state_reason=found.state_reason,
        created_at=found.created_at,
        closed_at=found.closed_at,
        closed_by=found.closed_by,
        turn_count=digest.turn_count,
        outcome=digest.outcome,
        why=why,
        files=telling_files(digest.files),
    )


def _canonical(hits: list[Hit], library: Library, before: datetime | None) -> dict[ThreadId, Entry]:
    """For each of the best hits that is a duplicate: the entry of the thread at the end of its chain."""
    wanted = {hit.entry.id: hit.entry for hit in hits[:FOLDED]}
    known = dict(wanted)
    targets = {key: _duplicate_of(entry, library, before) for key, entry in wanted.items()}
    found: dict[ThreadId, Entry] = {}
    for key, start in targets.items():
        walked, target = [key], start
        while target is not None and target not in walked:
            if target not in known:
                known |= library.entries([target])
            if target not in known or (before and known[target].created_at >= before):
                break
            walked.append(target)
            target = _duplicate_of(known[target], library, before)
        if len(walked) > 1:
            found[key] = known[walked[-1]]
    return found


def _duplicate_of(entry: Entry, library: Library, before: datetime | None) -> ThreadId | None:
    """What the thread was a duplicate of at that time; the index knows only what it is a duplicate of today."""
    if before is None:
        return entry.duplicate_of
    if entry.open_at(before):
        return None
    thread = threads(library, [entry.id], before).get(entry.id)
    return read_digest(thread).duplicate_of if thread else None
