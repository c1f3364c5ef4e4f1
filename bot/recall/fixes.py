"""Where the fixes of threads are, as far as it was looked up, and what that says about the version of a question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from bot.answer import Context, Earlier, Match, Mention
from bot.kept import Fix
from bot.model import Kind, Outcome, OutcomeKind, ThreadId
from bot.reading.proof import is_change, number_of, settled
from bot.reading.versions import stands
from bot.recall.library import Library, threads

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
        earlier = hit.earlier and _earlier(hit.earlier, merged)
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


def _earlier(earlier: Earlier, merged: Mapping[int, bool]) -> Earlier:
    return replace(earlier, outcome=proven(earlier.outcome, merged.get(named(earlier.outcome) or 0)))


def _is_merged(outcome: Outcome, fix: Fix | None, merged: Mapping[int, bool], before: datetime | None) -> bool | None:
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


def as_of(fix: Fix, before: datetime | None) -> Fix | None:
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
