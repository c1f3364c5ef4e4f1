"""What a comment shows of other threads: which of them, and which of their messages it quotes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime

from bot.answer import Context, Match, Mention
from bot.kept import StandingComment
from bot.model import Outcome, Record, Thread, ThreadId
from bot.reading.proof import number_of

Hit = Mention | Match


def shown_in(context: Context) -> tuple[ThreadId, ...]:
    """The threads that a comment with this context shows, in its order: also the duplicates that led to one, what a
    thread is a duplicate of, and the pull request that fixed it or is said to have."""
    return tuple(dict.fromkeys(key for hit in _hits(context) for key in _keys(hit)))


def quoted_in(context: Context, records: Mapping[ThreadId, Record]) -> tuple[str, ...]:
    """Marks of the messages that a comment with this context quotes, titles among them; ``records`` has the threads."""
    found = {mark(text) for hit in _hits(context) for text in _quoted(hit, records.get(hit.id))}
    return tuple(sorted(found))


def is_false(standing: StandingComment, records: Mapping[ThreadId, Record]) -> bool:
    """Whether a comment quotes what is in none of the threads that it shows, as these are now."""
    threads = (record for key in standing.shows if isinstance(record := records.get(key), Thread))
    there = {mark(text) for thread in threads for text in (thread.title, thread.body, *_said(thread))}
    return not there.issuperset(standing.quotes)


def mark(text: str) -> str:
    """What a text is known by: eight hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]


def _hits(context: Context) -> Iterable[Hit]:
    shown = context.mentioned, context.also_mentioned, context.seen_before, context.open_now, context.possible
    return (hit for section in shown for hit in section)


def _keys(hit: Hit) -> Iterator[ThreadId]:
    yield hit.id
    yield from hit.chain if isinstance(hit, Mention) else ()
    if hit.outcome.duplicate_of is not None:
        yield hit.outcome.duplicate_of
    if number := number_of(hit.outcome.fix or hit.outcome.claimed):
        yield number


def _quoted(hit: Hit, record: Record | None) -> Iterator[str]:
    """The texts of the messages of a thread that a hit quotes: its title, and what was said at the moments that it
    tells of."""
    if not isinstance(record, Thread):
        return
    yield record.title
    moments = set(_moments(hit))
    if record.created_at in moments or (isinstance(hit, Mention) and hit.summary):
        yield record.body
    yield from (comment.text for comment in record.comments if comment.created_at in moments)


def _moments(hit: Hit) -> Iterator[datetime]:
    endings: list[Outcome] = [hit.outcome, *([hit.earlier.outcome] if hit.earlier else [])]
    yield from (ending.at for ending in endings if ending.at and ending.quote)
    yield from (turn.at for turn in hit.conversation)
    yield from (decision.at for decision in (hit.decisions if isinstance(hit, Mention) else ()))


def _said(thread: Thread) -> Iterator[str]:
    return (comment.text for comment in thread.comments)
