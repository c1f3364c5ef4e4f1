"""A thread → everything that memory has to say about it, and whether that is worth a comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from bot.domain.answer import Answer, Context, Match, Mention, Silent, Speak
from bot.domain.card import is_change, number_of, settled
from bot.domain.changes import FixInfo, wrong_matches_for
from bot.domain.thread import Kind, Outcome, OutcomeKind, RepositoryAddress, Thread, ThreadId
from bot.reading.versions import asked_version, stands
from bot.recall.library import Library, WithoutWords, threads
from bot.recall.mentions import find_mentions, mentioned_elsewhere, referenced
from bot.recall.pages import find_pages
from bot.recall.similar import Limits, SimilarThreads, find_similar
from bot.settings.schema import Settings

NOTHING_RELATED = "nothing in memory is close enough"
NOTHING_YET = "memory holds no older issue"
LEAST_POSSIBLE = 0.4
"""Least similarity of what may be related: below it the odds are a third of those at the usual threshold."""

EARLY = 20
"""The numbers of the issues and pull requests that are the first of a repository."""


def recall(
    thread: Thread,
    library: Library,
    settings: Settings,
    place: RepositoryAddress,
    before: datetime | None = None,
    *,
    kept: frozenset[ThreadId] = frozenset(),
) -> Context:
    """What the thread points at, what looks like it or, where nothing does, the pages that answer it.

    ``before``: memory as it stood then, None for today's. Of threads that are ``kept`` it is known that they are alike.
    """
    if settings.ignore.people:
        library = WithoutWords(library, settings.ignore.people)
    limits = settings.references
    full, listed = find_mentions(thread, place, library, before, (limits.max, limits.chars))
    wrong = wrong_matches_for(library.requests([thread.id]).get(thread.id, ()), before)
    full, listed = (tuple(one for one in part if one.id not in wrong) for part in (full, listed))
    skip: list[ThreadId] = [*wrong, *referenced(thread, place)]
    skip += [key for mention in (*full, *listed) for key in (mention.id, *mention.chain)]
    wanted = settings.troubleshooting
    room = Limits(wanted.similarity_threshold, wanted.max_results, wanted.open_results, wanted.total_budget_chars, kept)
    found = _alike(thread, library, room, before, skip, place.repo) if wanted.enabled else SimilarThreads()
    is_shown = bool(found.seen or found.still_open)
    context = Context(
        full,
        listed,
        found.seen,
        found.still_open,
        pages=() if is_shown else find_pages(thread, library, settings.pages, place, before),
        possible=_possible(found) if settings.troubleshooting.possibly_related else (),
        nearest=found.nearest,
        elsewhere=mentioned_elsewhere(thread, place),
        searched=0 if before else library.issues,
        is_first=_is_first(thread, library),
    )
    return with_endings(context, thread, library, place, before)


def with_endings(
    context: Context, thread: Thread, library: Library, place: RepositoryAddress, before: datetime | None = None
) -> Context:
    """The context with where the fixes are, and how the version that the thread names stands to them."""
    return with_version(with_fixes(context, library, before), asked_version(thread, place.repo))


def _alike(
    thread: Thread, library: Library, room: Limits, before: datetime | None, skip: list[ThreadId], repo: str | None
) -> SimilarThreads:
    left_out = {*skip}
    while True:
        found = find_similar(thread, library, before, left_out, room, repo)
        shown = [match.id for match in (*found.seen, *found.still_open)]
        told = [*shown, *(match.id for match in found.nearest)]
        named = {
            key for key, requests in library.requests(told).items() if thread.id in wrong_matches_for(requests, before)
        }
        if not named.intersection(shown):
            return replace(found, nearest=tuple(match for match in found.nearest if match.id not in named))
        left_out |= named


def _possible(found: SimilarThreads) -> tuple[Match, ...]:
    """The nearest that are not shown, and not far from it, each for a reason."""
    shown = {match.id for match in (*found.seen, *found.still_open)}
    return tuple(m for m in found.nearest if m.id not in shown and m.why and m.similarity >= LEAST_POSSIBLE)


def _is_first(thread: Thread, library: Library) -> bool:
    """Whether no issue is remembered with a smaller number. Nobody wonders at the silence of a later one."""
    if not isinstance(thread.id, int) or thread.id > EARLY:
        return False
    return not any(entry.kind.traits.is_suggested for entry in library.entries(range(1, thread.id)).values())


def decide(context: Context) -> Answer:
    """Speak when there is something true and of use to tell; a reference to nothing that is known is not."""
    resolved = any(not mention.missing for mention in context.mentioned)
    if resolved or context.seen_before or context.open_now or context.pages:
        return Speak(context)
    return Silent(NOTHING_YET if context.is_first else NOTHING_RELATED, context.nearest)


AnyHit = TypeVar("AnyHit", Mention, Match)

SURE = 0.9
"""Confidence in an ending whose change is known to be merged."""


def fix_refs(context: Context) -> dict[ThreadId, str]:
    """What fixed the threads that are told of in full, by thread: ``#57`` or a SHA. What is mentioned comes first.

    With what is only claimed to have fixed them.
    """
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.seen_before)
    refs = {hit.id: _ref(hit) for hit in hits}
    return {key: ref for key, ref in refs.items() if ref}


def with_fixes(context: Context, library: Library, before: datetime | None) -> Context:
    """The context with the fixes that are known, as they were known at ``before`` (None: now).

    Nothing is told to be fixed by what is known to be none: by an issue, or a pull request that was not merged.
    """
    refs = fix_refs(context)
    held = library.fixes(refs) if refs else {}
    known = {key: fix for key, fix in held.items() if fix.ref == refs[key]}
    told = {key: fix for key, one in known.items() if (fix := as_of(one, before))}
    merged = merged_in(library, map(named, _outcomes(context)), before)

    def settle(hit: AnyHit) -> AnyHit:
        outcome = proven(hit.outcome, _is_merged(hit.outcome, known.get(hit.id), merged, before))
        earlier = hit.earlier
        if earlier:
            ended = proven(earlier.outcome, merged.get(named(earlier.outcome) or 0))
            earlier = replace(earlier, outcome=ended)
        return replace(hit, outcome=outcome, earlier=earlier, fix=told.get(hit.id))

    return replace(
        context,
        mentioned=tuple(map(settle, context.mentioned)),
        also_mentioned=tuple(map(settle, context.also_mentioned)),
        seen_before=tuple(map(settle, context.seen_before)),
        open_now=tuple(map(settle, context.open_now)),
    )


def known_endings(endings: Mapping[ThreadId, Outcome], library: Library) -> dict[ThreadId, Outcome]:
    """How these threads ended, by what memory knows of the changes that they name."""
    held = library.fixes(endings)
    merged = merged_in(library, map(named, endings.values()))
    return {key: proven(ending, _is_merged(ending, held.get(key), merged, None)) for key, ending in endings.items()}


def merged_in(library: Library, numbers: Iterable[int | None], before: datetime | None = None) -> dict[int, bool]:
    """Which of these numbers, as far as memory knows them, are changes that were merged at ``before`` (None: now)."""
    wanted = [number for number in dict.fromkeys(numbers) if number]
    entries = library.entries(wanted) if wanted else {}
    pulls = [key for key, entry in entries.items() if entry.kind is Kind.PULL]
    read = threads(library, pulls, before) if pulls else {}
    found = {key: is_change(entry.kind, entry.state, None) for key, entry in entries.items() if key not in pulls}
    found |= {key: is_change(pull.kind, pull.state, pull.merged_at) for key, pull in read.items()}
    return {key: known for key, known in found.items() if isinstance(key, int) and known is not None}


def named(outcome: Outcome) -> int | None:
    """The number that an outcome names as the fix, or as what is claimed to be one."""
    return number_of(outcome.fix or outcome.claimed)


def _outcomes(context: Context) -> Iterator[Outcome]:
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.also_mentioned, *context.seen_before)
    for hit in (*hits, *context.open_now):
        yield hit.outcome
        if hit.earlier:
            yield hit.earlier.outcome


def _is_merged(
    outcome: Outcome, fix: FixInfo | None, merged: Mapping[int, bool], before: datetime | None
) -> bool | None:
    """Whether the fix that an outcome names was merged at ``before``; None where nobody knows.

    Both what memory holds of the thread and what the forge said may be from before the merge.
    """
    if merged.get(named(outcome) or 0):
        return True
    if fix and fix.ref == (outcome.fix or outcome.claimed) and (fix.commit or fix.refuted):
        return as_of(fix, before) is not None
    return merged.get(named(outcome) or 0)


def proven(outcome: Outcome, is_merged: bool | None) -> Outcome:
    """The outcome, knowing whether its ``fix``, or what is ``claimed`` to be one, was merged; None: nobody knows.

    A fix that was not leaves the quote and what is claimed; a claim that was makes a fix.
    """
    told = settled(outcome.kind, outcome.fix or "", outcome.claimed or "", is_merged)
    if told is None:
        return outcome
    kind, fix, claimed = OutcomeKind(told[0]), told[1] or None, told[2] or None
    noun = "pull request" if number_of(fix or claimed) else "commit"
    evidence = (*outcome.evidence, f"the {noun} was merged" if fix else f"names no {noun} that was merged")
    release = outcome.release if fix else None
    confidence = SURE if fix else 0.0
    return replace(
        outcome, kind=kind, fix=fix, claimed=claimed, release=release, evidence=evidence, confidence=confidence
    )


def with_version(context: Context, asked: str) -> Context:
    """The context with how the version that the question names stands to the releases with the fixes."""
    return replace(context, seen_before=tuple(_compared(match, asked) for match in context.seen_before))


def as_of(fix: FixInfo, before: datetime | None) -> FixInfo | None:
    """The fix as it was known at ``before`` (None: now); None where nothing was merged then."""
    if fix.commit is None or fix.refuted or (before and (fix.merged_at is None or fix.merged_at > before)):
        return None
    if before and (fix.released_at is None or fix.released_at > before):
        return replace(fix, release=None, released_at=None, unreleased=False)
    return fix


def _ref(hit: Mention | Match) -> str:
    """A pull request that was merged is its own fix."""
    is_merged = isinstance(hit, Mention) and hit.merged_at
    return f"#{hit.id}" if is_merged else hit.outcome.fix or hit.outcome.claimed or ""


def _compared(match: Match, asked: str) -> Match:
    fix = match.fix
    release = (fix.release if fix else None) or match.outcome.release
    if not (asked and release):
        return match
    standing = stands(asked, release, fix.released_at if fix else None, fix.merged_at if fix else None)
    return match if standing is None else replace(match, asked_on=asked, may_be_back=standing == "same or newer")
