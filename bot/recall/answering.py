"""A thread → everything that memory has to say about it, and whether that is worth a comment."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.answer import Answer, Context, Match, Silent, Speak
from bot.model import Kind, Thread, ThreadId
from bot.reading.asked import asked_version
from bot.recall.fixes import with_fixes, with_version
from bot.recall.library import Library, WithoutWords
from bot.recall.mentioned import Place, elsewhere, mentions, referenced
from bot.recall.pages import find_pages
from bot.recall.troubleshoot import Alike, Limits, alike
from bot.recall.wishes import wrong_for
from bot.settings import Settings

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
    place: Place,
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
    full, listed = mentions(thread, place, library, before, (limits.max, limits.chars))
    wrong = wrong_for(library.wishes([thread.id]).get(thread.id, ()), before)
    full, listed = (tuple(one for one in part if one.id not in wrong) for part in (full, listed))
    skip: list[ThreadId] = [*wrong, *referenced(thread, place)]
    skip += [key for mention in (*full, *listed) for key in (mention.id, *mention.chain)]
    wanted = settings.troubleshooting
    room = Limits(wanted.similarity_threshold, wanted.max_results, wanted.open_results, wanted.total_budget_chars, kept)
    found = _alike(thread, library, room, before, skip, place.repo) if wanted.enabled else Alike()
    is_shown = bool(found.seen or found.still_open)
    context = Context(
        full,
        listed,
        found.seen,
        found.still_open,
        pages=() if is_shown else find_pages(thread, library, settings.pages, place, before),
        possible=_possible(found) if settings.troubleshooting.possibly_related else (),
        nearest=found.nearest,
        elsewhere=elsewhere(thread, place),
        searched=0 if before else library.issues,
        is_first=_is_first(thread, library),
    )
    return with_endings(context, thread, library, place, before)


def with_endings(
    context: Context, thread: Thread, library: Library, place: Place, before: datetime | None = None
) -> Context:
    """The context with where the fixes are, and how the version that the thread names stands to them."""
    return with_version(with_fixes(context, library, before), asked_version(thread, place.repo))


def _alike(
    thread: Thread,
    library: Library,
    room: Limits,
    before: datetime | None,
    skip: list[ThreadId],
    repo: str | None,
) -> Alike:
    """The closed and the open threads like this one, without those that somebody said are not."""
    left_out = {*skip}
    while True:
        found = alike(thread, library, before, left_out, room, repo)
        shown = [match.id for match in (*found.seen, *found.still_open)]
        told = [*shown, *(match.id for match in found.nearest)]
        named = {key for key, wishes in library.wishes(told).items() if thread.id in wrong_for(wishes, before)}
        if not named.intersection(shown):
            return replace(found, nearest=tuple(match for match in found.nearest if match.id not in named))
        left_out |= named


def _possible(found: Alike) -> tuple[Match, ...]:
    """The nearest that are not shown, and not far from it, each for a reason."""
    shown = {match.id for match in (*found.seen, *found.still_open)}
    return tuple(m for m in found.nearest if m.id not in shown and m.why and m.similarity >= LEAST_POSSIBLE)


def _is_first(thread: Thread, library: Library) -> bool:
    """Whether no issue is remembered with a smaller number. Nobody wonders at the silence of a later one."""
    if not isinstance(thread.id, int) or thread.id > EARLY:
        return False
    return not any(entry.kind is Kind.ISSUE for entry in library.entries(range(1, thread.id)).values())


def decide(context: Context) -> Answer:
    """Speak when there is something true and of use to tell; a reference to nothing that is known is not."""
    resolved = any(not mention.missing for mention in context.mentioned)
    if resolved or context.seen_before or context.open_now or context.pages:
        return Speak(context)
    return Silent(NOTHING_YET if context.is_first else NOTHING_RELATED, context.nearest)
