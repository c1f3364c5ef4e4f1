"""Which threads deserve an answer in this run, and which of them must not get one."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.github.catch_up import News
from bot.github.events import Event
from bot.kept import Said, Wish
from bot.model import Kind, Thread, ThreadId
from bot.recall.mentioned import Place, referenced
from bot.recall.wishes import redo
from bot.settings import Settings

ANSWER_AGE = timedelta(hours=24)
"""An issue that was never answered still gets an answer from a later run while it is younger than this."""

SPEAKING = timedelta(minutes=2)
"""How long a run may take from its promise to the comment. Another run that looks in between leaves it to that one."""


@dataclass(frozen=True, slots=True)
class Look:
    """All that is known when it is decided whom to answer.

    ``said`` is what was answered before, ``settled`` the part of it that memory does not know yet. ``late`` are fresh
    threads that are not in the news, because they were read as history. ``wished``: what people asked for in this run.
    ``is_first``: memory was empty, and does not know what was said before it. ``limit`` is why nothing more can be
    asked of GitHub in this run, empty while it can.
    """

    event: Event
    news: News
    now: datetime
    place: Place
    said: Mapping[ThreadId, Said] = field(default_factory=dict)
    settled: Mapping[ThreadId, Said] = field(default_factory=dict)
    late: tuple[ThreadId, ...] = ()
    wished: tuple[Wish, ...] = ()
    is_first: bool = False
    within: timedelta = ANSWER_AGE
    limit: str = ""

    def asks_for(self, thread: Thread) -> bool:
        """Whether somebody started this run by hand to have this very thread answered."""
        return self.event.name == "workflow_dispatch" and self.event.number == thread.id


def due(threads: Iterable[Thread], look: Look) -> list[Thread]:
    """The threads that are to be answered now, oldest first. The same look twice gives the same threads."""
    return sorted((thread for thread in threads if _is_due(thread, look)), key=lambda thread: thread.created_at)


def is_being_said(said: Said, now: datetime) -> bool:
    """Whether another run may be writing the comment at this moment."""
    return said.state == "pending" and is_at_it(said.trying_since, now)


def is_at_it(since: datetime | None, now: datetime) -> bool:
    """Whether a run that began to write then may be at it still."""
    return since is not None and since > now - SPEAKING


def question_of(thread: Thread, place: Place) -> str:
    """Identifies what there is to answer: the title, the opening text, and the issues that are pointed at."""
    asked = repr((thread.title, thread.body, sorted(referenced(thread, place))))
    return hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()[:16]


def _is_due(thread: Thread, look: Look) -> bool:
    """Judged by what was answered, never by what was remembered: another run may have read this event's news before."""
    event, said = look.event, look.said.get(thread.id)
    is_its_own = event.number == thread.id
    is_fresh = thread.created_at > look.now - look.within
    if look.asks_for(thread) or thread.id in redo(look.wished):
        return True
    if said is None:
        return is_fresh or (is_its_own and event.may_be_answered and (event.name == "issues" or _points(thread, look)))
    if said.state == "pending":
        return said.at > look.now - look.within and not is_being_said(said, look.now)
    if is_its_own and not event.may_be_answered:
        return False
    return (is_its_own or is_fresh) and said.question != question_of(thread, look.place)


def _points(thread: Thread, look: Look) -> bool:
    """Whether the event's comments point at an issue that nothing else in the thread points at."""
    new = {look.event.comment_id, *look.event.earlier}
    rest = replace(thread, comments=tuple(c for c in thread.comments if c.id not in new))
    return bool(set(referenced(thread, look.place)) - set(referenced(rest, look.place)))


def reason_to_pass(thread: Thread, settings: Settings) -> str:
    """Why this thread is remembered but never answered; empty when it may be."""
    if settings.mode == "off":
        return "the mode is off"
    if thread.kind is Kind.PULL and not settings.pulls:
        return "pull requests are not answered"
    if thread.is_bot or _matches(thread.author, settings.ignore.authors):
        return "its author is a bot or ignored"
    if _matches(thread.author, settings.ignore.people):
        return "its author asked to be left alone"
    if any(_matches(label, settings.ignore.labels) for label in thread.labels):
        return "it carries an ignored label"
    if thread.is_closed:
        return "it is closed already"
    return "the conversation is locked" if thread.locked else ""


def _matches(name: str, names: Iterable[str]) -> bool:
    return name.casefold() in {each.casefold() for each in names}
