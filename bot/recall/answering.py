"""A thread → everything that memory has to say about it, and whether that is worth a comment."""

from __future__ import annotations

from datetime import datetime

from bot.answer import Answer, Context, Match, Silent, Speak
from bot.model import Thread, ThreadId
from bot.recall.library import Library, WithoutWords
from bot.recall.mentioned import Place, mentions, referenced
from bot.recall.troubleshoot import Limits, similar
from bot.settings import Settings

NOTHING_RELATED = "nothing in memory is close enough"


def recall(
    thread: Thread, library: Library, settings: Settings, place: Place, before: datetime | None = None
) -> Context:
    """What the thread points at and what looks like it. ``before``: memory as it stood then, None for today's."""
    if settings.ignore.people:
        library = WithoutWords(library, settings.ignore.people)
    limits = settings.references
    full, listed = mentions(thread, place, library, before, (limits.max, limits.chars))
    skip: list[ThreadId] = [*referenced(thread, place)]
    skip += [key for mention in (*full, *listed) for key in (mention.id, *mention.chain)]
    wanted = settings.troubleshooting
    seen: tuple[Match, ...] = ()
    still_open: tuple[Match, ...] = ()
    if wanted.enabled:
        room = Limits(wanted.similarity_threshold, wanted.max_results, wanted.open_results, wanted.total_budget_chars)
        seen, still_open = similar(thread, library, before, skip, room)
    return Context(full, listed, seen, still_open, searched=0 if before else library.size)


def decide(context: Context) -> Answer:
    """Speak when there is something true and of use to tell; a reference to nothing that is known is not."""
    resolved = any(not mention.missing for mention in context.mentioned)
    if resolved or context.seen_before or context.open_now or context.pages:
        return Speak(context)
    return Silent(NOTHING_RELATED)
