"""Finds everything that memory knows about a thread, and decides whether it is worth a comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from bot.domain.answer import Answer, Context, Match, Mention, Silent, Speak, open_issues
from bot.domain.card import is_change, number_of, revise_ending
from bot.domain.changes import FixInfo, wrong_matches_for
from bot.domain.thread import Outcome, OutcomeKind, RepositoryAddress, Thread, ThreadId
from bot.reading.versions import compare_versions, reported_version
from bot.recall.library import Library, RedactedLibrary, threads
from bot.recall.mentions import find_mentions, mentioned_elsewhere, referenced_numbers
from bot.recall.open_pulls import remembered_pulls, with_pulls
from bot.recall.pages import find_pages
from bot.recall.similar import Limits, SimilarThreads, find_similar
from bot.settings.schema import Settings

NOTHING_RELATED = "nothing in memory is close enough"
NOTHING_YET = "memory holds no older issue"
MIN_POSSIBLE_SIMILARITY = 0.4
"""Minimum similarity of possibly related issues: below it the odds are a third of those at the usual threshold."""

MAX_EARLY_NUMBER = 20
"""Up to this number an issue counts as one of the first of its repository."""


def recall(
    thread: Thread,
    library: Library,
    settings: Settings,
    address: RepositoryAddress,
    before: datetime | None = None,
    *,
    kept: frozenset[ThreadId] = frozenset(),
) -> Context:
    """What the thread refers to and the threads similar to it or, if there are none, the pages that answer it.

    ``before``: memory as it stood then, None for today's. Threads in ``kept`` always count as similar.
    """
    if settings.ignore.people:
        library = RedactedLibrary(library, settings.ignore.people)
    limits = settings.references
    full, listed = find_mentions(thread, address, library, before, (limits.max, limits.chars))
    wrong = wrong_matches_for(library.requests([thread.id]).get(thread.id, ()), before)
    full, listed = (tuple(m for m in part if m.id not in wrong) for part in (full, listed))
    skip: list[ThreadId] = [*wrong, *referenced_numbers(thread, address)]
    skip += [key for mention in (*full, *listed) for key in (mention.id, *mention.chain)]
    config = settings.troubleshooting
    caps = Limits(config.similarity_threshold, config.max_results, config.open_results, config.total_budget_chars, kept)
    similar = _find_similar(thread, library, caps, before, skip, address.repo) if config.enabled else SimilarThreads()
    is_shown = bool(similar.seen or similar.still_open)
    context = Context(
        full,
        listed,
        similar.seen,
        similar.still_open,
        pages=() if is_shown else find_pages(thread, library, settings.pages, address, before),
        possible=_possibly_related(similar) if settings.troubleshooting.possibly_related else (),
        nearest=similar.nearest,
        elsewhere=mentioned_elsewhere(thread, address),
        searched=0 if before else library.issues,
        is_first=_is_first(thread, library),
    )
    if settings.pulls and not before:
        pulls = remembered_pulls(open_issues(context), library, address)
        context = with_pulls(context, (pull for pull in pulls if pull.id not in wrong), thread)
    return with_endings(context, thread, library, address, before)


def with_endings(
    context: Context, thread: Thread, library: Library, address: RepositoryAddress, before: datetime | None = None
) -> Context:
    """The context with the known fixes, and with how the thread's version compares to their releases."""
    return with_version(with_fixes(context, library, before), reported_version(thread, address.repo))


def _find_similar(
    thread: Thread, library: Library, limits: Limits, before: datetime | None, skip: list[ThreadId], repo: str | None
) -> SimilarThreads:
    excluded = {*skip}
    while True:
        similar = find_similar(thread, library, before, excluded, limits, repo)
        shown = {match.id for match in (*similar.seen, *similar.still_open)}
        requests = library.requests([*shown, *(match.id for match in similar.nearest)])
        wrong = {
            key for key, thread_requests in requests.items() if thread.id in wrong_matches_for(thread_requests, before)
        }
        if not wrong & shown:
            return replace(similar, nearest=tuple(match for match in similar.nearest if match.id not in wrong))
        excluded |= wrong


def _possibly_related(similar: SimilarThreads) -> tuple[Match, ...]:
    """The nearest issues that are not shown, but are similar enough and have a reason."""
    shown = {match.id for match in (*similar.seen, *similar.still_open)}
    return tuple(m for m in similar.nearest if m.id not in shown and m.why and m.similarity >= MIN_POSSIBLE_SIMILARITY)


def _is_first(thread: Thread, library: Library) -> bool:
    """Whether memory has no issue with a smaller number. Later issues do not count: silence there surprises nobody."""
    if not isinstance(thread.id, int) or thread.id > MAX_EARLY_NUMBER:
        return False
    return not any(entry.kind.traits.is_suggested for entry in library.entries(range(1, thread.id)).values())


def decide(context: Context) -> Answer:
    """Speak if there is anything useful to show; unknown references alone are not useful."""
    resolved = any(not mention.missing for mention in context.mentioned)
    if resolved or context.seen_before or context.open_now or context.pages or context.organisation:
        return Speak(context)
    return Silent(NOTHING_YET if context.is_first else NOTHING_RELATED, context.nearest)


AnyHit = TypeVar("AnyHit", Mention, Match)

MERGED_CONFIDENCE = 0.9
"""Confidence in an ending whose change is known to be merged."""


def fix_refs(context: Context) -> dict[ThreadId, str]:
    """The fixes (``#57`` or a SHA), claimed ones too, of the threads shown in full, mentioned threads first."""
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.seen_before)
    refs = {hit.id: _fix_ref(hit) for hit in hits}
    return {key: ref for key, ref in refs.items() if ref}


def with_fixes(context: Context, library: Library, before: datetime | None) -> Context:
    """The context with the known fixes, as they were known at ``before`` (None: now).

    An issue or an unmerged pull request is not a fix, and a thread said to be fixed by one loses that ending.
    """
    refs = fix_refs(context)
    fixes = library.fixes(refs) if refs else {}
    current = {key: fix for key, fix in fixes.items() if fix.ref == refs[key]}
    merged_fixes = {key: fix for key, stored_fix in current.items() if (fix := as_of(stored_fix, before))}
    merged = merge_states(library, map(fix_number, _outcomes_in(context)), before)

    def settle(hit: AnyHit) -> AnyHit:
        outcome = apply_merge_state(hit.outcome, _is_merged(hit.outcome, current.get(hit.id), merged, before))
        earlier = hit.earlier
        if earlier:
            earlier_outcome = apply_merge_state(earlier.outcome, merged.get(fix_number(earlier.outcome) or 0))
            earlier = replace(earlier, outcome=earlier_outcome)
        return replace(hit, outcome=outcome, earlier=earlier, fix=merged_fixes.get(hit.id))

    return replace(
        context,
        mentioned=tuple(map(settle, context.mentioned)),
        also_mentioned=tuple(map(settle, context.also_mentioned)),
        seen_before=tuple(map(settle, context.seen_before)),
        open_now=tuple(map(settle, context.open_now)),
    )


def known_endings(endings: Mapping[ThreadId, Outcome], library: Library) -> dict[ThreadId, Outcome]:
    """How these threads ended, given what memory knows about the changes that they name."""
    fixes = library.fixes(endings)
    merged = merge_states(library, map(fix_number, endings.values()))
    return {
        key: apply_merge_state(ending, _is_merged(ending, fixes.get(key), merged, None))
        for key, ending in endings.items()
    }


def merge_states(library: Library, numbers: Iterable[int | None], before: datetime | None = None) -> dict[int, bool]:
    """For each of these numbers that memory knows: whether it was a merged change at ``before`` (None: now)."""
    known_numbers = [number for number in dict.fromkeys(numbers) if number]
    entries = library.entries(known_numbers) if known_numbers else {}
    pulls = [key for key, entry in entries.items() if entry.kind.traits.is_change]
    pull_threads = threads(library, pulls, before) if pulls else {}
    states = {key: is_change(entry.kind, entry.state, None) for key, entry in entries.items() if key not in pulls}
    states |= {key: is_change(pull.kind, pull.state, pull.merged_at) for key, pull in pull_threads.items()}
    return {key: is_merged for key, is_merged in states.items() if isinstance(key, int) and is_merged is not None}


def fix_number(outcome: Outcome) -> int | None:
    """The number of the outcome's fix or claimed fix."""
    return number_of(outcome.fix or outcome.claimed)


def _outcomes_in(context: Context) -> Iterator[Outcome]:
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.also_mentioned, *context.seen_before)
    for hit in (*hits, *context.open_now):
        yield hit.outcome
        if hit.earlier:
            yield hit.earlier.outcome


def _is_merged(
    outcome: Outcome, fix: FixInfo | None, merged: Mapping[int, bool], before: datetime | None
) -> bool | None:
    """Whether the fix that an outcome names was merged at ``before``; None if unknown.

    Both the thread in memory and the forge's answer may be older than the merge.
    """
    is_merged = merged.get(fix_number(outcome) or 0)
    if not is_merged and fix and fix.ref == (outcome.fix or outcome.claimed) and (fix.commit or fix.refuted):
        return as_of(fix, before) is not None
    return is_merged


def apply_merge_state(outcome: Outcome, is_merged: bool | None) -> Outcome:
    """The outcome, given whether its ``fix`` or ``claimed`` fix was merged (None: unknown).

    An unmerged fix becomes a claim, and the quote stays; a merged claim becomes the fix.
    """
    revised = revise_ending(outcome.kind, outcome.fix or "", outcome.claimed or "", is_merged)
    if revised is None:
        return outcome
    kind, fix, claimed = OutcomeKind(revised[0]), revised[1] or None, revised[2] or None
    noun = "pull request" if number_of(fix or claimed) else "commit"
    evidence = (*outcome.evidence, f"the {noun} was merged" if fix else f"names no {noun} that was merged")
    release = outcome.release if fix else None
    confidence = MERGED_CONFIDENCE if fix else 0.0
    return replace(
        outcome, kind=kind, fix=fix, claimed=claimed, release=release, evidence=evidence, confidence=confidence
    )


def with_version(context: Context, version: str) -> Context:
    """The context, with how the question's version compares to the releases that have the fixes."""
    return replace(context, seen_before=tuple(_compare_version(match, version) for match in context.seen_before))


def as_of(fix: FixInfo, before: datetime | None) -> FixInfo | None:
    """The fix as it was known at ``before`` (None: now); None if nothing was merged then."""
    if fix.commit is None or fix.refuted or (before and (fix.merged_at is None or fix.merged_at > before)):
        return None
    if before and (fix.released_at is None or fix.released_at > before):
        return replace(fix, release=None, released_at=None, unreleased=False)
    return fix


def _fix_ref(hit: Mention | Match) -> str:
    is_merged = isinstance(hit, Mention) and hit.merged_at  # a merged pull request is its own fix
    return f"#{hit.id}" if is_merged else hit.outcome.fix or hit.outcome.claimed or ""


def _compare_version(match: Match, version: str) -> Match:
    fix = match.fix
    release = (fix.release if fix else None) or match.outcome.release
    if not (version and release):
        return match
    comparison = compare_versions(version, release, fix.released_at if fix else None, fix.merged_at if fix else None)
    return match if comparison is None else replace(match, asked_on=version, may_be_back=comparison == "same or newer")
