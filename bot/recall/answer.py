"""Finds everything that memory knows about a thread, and decides whether it is worth a comment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar

from bot.domain.answer import Answer, Context, Match, Mention, Silent, Speak, open_issues
from bot.domain.change_state import ChangeState, NamedChange, change_state, number_of, revise_ending
from bot.domain.changes import FixInfo, wrong_matches_for
from bot.domain.thread import Kind, Outcome, OutcomeKind, RepositoryAddress, Thread, ThreadId
from bot.reading.references import closed_by_text
from bot.reading.versions import compare_versions, read_version, reported_version
from bot.recall.library import Library, threads
from bot.recall.mentions import (
    MAX_FULL_MENTIONS,
    MENTION_CHARS,
    brief,
    find_mentions,
    mentioned_elsewhere,
    referenced_numbers,
)
from bot.recall.open_pulls import remembered_pulls, with_pulls
from bot.recall.pages import find_pages
from bot.recall.similar import Limits, SimilarThreads, find_similar
from bot.settings.schema import MentionSettings, Settings

NOTHING_RELATED = "nothing in memory is close enough"
NOTHING_YET = "memory holds no older issue"
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
    chars = settings.comment.chars
    full, others = find_mentions(thread, address, library, before, (MAX_FULL_MENTIONS, min(MENTION_CHARS, chars)))
    wrong = wrong_matches_for(library.requests([thread.id]).get(thread.id, ()), before)
    full, others = (tuple(m for m in part if m.id not in wrong) for part in (full, others))
    skip: list[ThreadId] = [*wrong, *referenced_numbers(thread, address)]
    skip += [key for mention in (*full, *others) for key in (mention.id, *mention.chain)]
    config = settings.similar
    caps = Limits(config.threshold, config.max, config.open, chars, kept)
    is_wanted = config.max or config.open
    similar = _find_similar(thread, library, caps, before, skip, address.repo) if is_wanted else SimilarThreads()
    is_shown = bool(similar.seen or similar.still_open)
    context = Context(
        full,
        others,
        similar.seen,
        similar.still_open,
        pages=() if is_shown else find_pages(thread, library, address, before),
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
    return with_version(with_fixes(context, library, before, address.repo), reported_version(thread, address.repo))


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


def _is_first(thread: Thread, library: Library) -> bool:
    """Whether memory has no issue with a smaller number. Later issues do not count: silence there surprises nobody."""
    if not isinstance(thread.id, int) or thread.id > MAX_EARLY_NUMBER:
        return False
    return not any(entry.kind.traits.is_suggested for entry in library.entries(range(1, thread.id)).values())


def decide(context: Context, settings: MentionSettings) -> Answer:
    """Speak if there is anything useful to show; a mentioned issue that is no news stands there in brief."""
    speak = settings.speak
    named = frozenset(mention.id for mention in (*context.mentioned, *context.also_mentioned))
    told = tuple(mention for mention in context.mentioned if speak == "always" or is_worth_saying(mention, named))
    known = tuple(brief(mention) for mention in context.mentioned if mention not in told)
    context = replace(context, mentioned=told, also_mentioned=(*known, *context.also_mentioned))
    is_reason = bool(told) and speak != "never"
    if is_reason or context.seen_before or context.open_now or context.pages or context.organisation:
        return Speak(context)
    return Silent(NOTHING_YET if context.is_first else NOTHING_RELATED, context.nearest)


def is_worth_saying(mention: Mention, named: frozenset[ThreadId] = frozenset()) -> bool:
    """Whether the thread has an ending or a decision and whoever mentions it took no part; or somebody asks for it.

    That a change fixed it is no news in a text that names the change too; ``named``: what the text names.
    """
    if mention.missing or mention.is_asked or mention.is_known:
        return mention.is_asked and not mention.missing
    ending = mention.earlier.outcome if mention.earlier else mention.outcome
    is_stated = ending.kind in _STATED or (ending.kind is OutcomeKind.NOT_PLANNED and bool(ending.quote))
    is_stated &= not (ending.change and ending.change.number in named)
    is_released = mention.merged_at is not None and mention.fix is not None and bool(mention.fix.release)
    return is_stated or is_released or bool(mention.decisions or mention.chain)


_STATED = frozenset({OutcomeKind.FIXED, OutcomeKind.ANSWERED, OutcomeKind.WORKAROUND, OutcomeKind.DUPLICATE})
"""Endings that say more than GitHub itself shows next to a link."""


AnyHit = TypeVar("AnyHit", Mention, Match)

MERGED_CONFIDENCE = 0.9
"""Confidence in an ending whose change is known to have closed the thread."""


def named_changes(context: Context) -> dict[ThreadId, NamedChange]:
    """The changes that the threads shown in full name as their fixes, mentioned threads first."""
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.seen_before)
    return {hit.id: change for hit in hits if (change := _named_change(hit))}


def with_fixes(context: Context, library: Library, before: datetime | None, repo: str | None = None) -> Context:
    """The context with the known fixes, as they were known at ``before`` (None: now).

    An issue or an unmerged pull request is not a fix, and a thread said to be fixed by one loses that ending. Nor is a
    change that only refers to the thread.
    """
    named = named_changes(context)
    fixes = library.fixes(named) if named else {}
    current = {key: fix for key, fix in fixes.items() if fix.ref == named[key].ref}
    merged_fixes = {key: fix for key, stored_fix in current.items() if (fix := as_of(stored_fix, before))}
    pulls = _changes_in(library, _outcomes_in(context), before, repo)

    def settle(hit: AnyHit) -> AnyHit:
        outcome = _settle(hit.id, hit.outcome, pulls, current.get(hit.id), library, before)
        earlier = hit.earlier
        if earlier:
            earlier = replace(earlier, outcome=_settle(hit.id, earlier.outcome, pulls, None, library, before))
        is_fix = bool(outcome.fix) or _is_merged_change(hit)
        return replace(hit, outcome=outcome, earlier=earlier, fix=merged_fixes.get(hit.id) if is_fix else None)

    return replace(
        context,
        mentioned=tuple(map(settle, context.mentioned)),
        also_mentioned=tuple(map(settle, context.also_mentioned)),
        seen_before=tuple(map(settle, context.seen_before)),
        open_now=tuple(map(settle, context.open_now)),
    )


def known_endings(
    endings: Mapping[ThreadId, Outcome], library: Library, repo: str | None = None
) -> dict[ThreadId, Outcome]:
    """How these threads ended, given what memory knows about the changes that they name."""
    fixes = library.fixes(endings)
    pulls = _changes_in(library, endings.values(), None, repo)
    return {key: _settle(key, ending, pulls, fixes.get(key), library) for key, ending in endings.items()}


class _KnownChange(NamedTuple):
    """A thread that an ending names as a change, and the threads that its text says it closes."""

    kind: Kind
    state: str
    merged_at: datetime | None = None
    closes: frozenset[int] = frozenset()


def _changes_in(
    library: Library, outcomes: Iterable[Outcome], before: datetime | None, repo: str | None
) -> dict[int, _KnownChange]:
    """The threads by number that these outcomes name as changes, as memory knew them at ``before`` (None: now)."""
    changes = (outcome.change for outcome in outcomes)
    numbers = dict.fromkeys(number for change in changes if change and (number := change.number))
    entries = library.entries(numbers) if numbers else {}
    pulls = [key for key, entry in entries.items() if entry.kind.traits.is_change]
    known: dict[ThreadId, _KnownChange] = {
        key: _KnownChange(entry.kind, entry.state) for key, entry in entries.items() if key not in pulls
    }
    for key, pull in (threads(library, pulls, before) if pulls else {}).items():
        known[key] = _KnownChange(
            pull.kind, pull.state, pull.merged_at, closed_by_text(f"{pull.title}\n\n{pull.body}", repo)
        )
    return {key: change for key, change in known.items() if isinstance(key, int)}


def _settle(
    key: ThreadId,
    outcome: Outcome,
    changes: Mapping[int, _KnownChange],
    fix: FixInfo | None,
    library: Library,
    before: datetime | None = None,
) -> Outcome:
    """The outcome of thread ``key``, given what is known about the change that it names."""
    named = outcome.change
    if named is None:
        return _with_known_release(outcome, library)
    change = changes.get(named.number or 0)
    if fix and (fix.commit or fix.refuted):
        fix = as_of(fix, before) or replace(fix, refuted=True)  # it was not merged at that time
    state = change_state(key, named, change, fix)
    return _with_known_release(with_change_state(outcome, state), library)


def _with_known_release(outcome: Outcome, library: Library) -> Outcome:
    """The outcome without the release that its thread names, if the repository has releases, but not this one."""
    if not outcome.release:
        return outcome
    known = {version for tag in library.releases() if (version := read_version(tag))}
    is_unknown = bool(known) and read_version(outcome.release) not in known
    return replace(outcome, release=None) if is_unknown else outcome


def _outcomes_in(context: Context) -> Iterator[Outcome]:
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.also_mentioned, *context.seen_before)
    for hit in (*hits, *context.open_now):
        yield hit.outcome
        if hit.earlier:
            yield hit.earlier.outcome


def with_change_state(outcome: Outcome, change: ChangeState) -> Outcome:
    """The outcome, given what is known about the change that it names.

    An unmerged fix becomes a claim, and the quote stays; a claim becomes the fix if that closed the thread.
    """
    revised = revise_ending(outcome.kind, outcome.fix or "", outcome.claimed or "", change)
    if revised is None:
        return outcome
    kind, fix, claimed = OutcomeKind(revised[0]), revised[1] or None, revised[2] or None
    noun = "pull request" if number_of(fix or claimed) else "commit"
    evidence = (*outcome.evidence, f"the {noun} closed it" if fix else f"names no {noun} that was merged")
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


def _is_merged_change(hit: Mention | Match) -> bool:
    """Whether it is a merged pull request, which is its own fix."""
    return isinstance(hit, Mention) and hit.merged_at is not None


def _named_change(hit: Mention | Match) -> NamedChange | None:
    return NamedChange(f"#{hit.id}") if _is_merged_change(hit) else hit.outcome.change


def _compare_version(match: Match, version: str) -> Match:
    fix = match.fix
    release = (fix.release if fix else None) or match.outcome.release
    if not (version and release):
        return match
    comparison = compare_versions(version, release, fix.released_at if fix else None, fix.merged_at if fix else None)
    return match if comparison is None else replace(match, asked_on=version, may_be_back=comparison == "same or newer")
