"""Which threads deserve an answer in this run, and which of them must not get one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from fnmatch import fnmatchcase

from bot.github.catch_up import News
from bot.github.events import Event
from bot.model import Kind, Record, Said, Thread, ThreadId
from bot.recall.mentioned import Place, referenced
from bot.settings import Settings

ANSWER_AGE = timedelta(hours=24)
"""An issue that was never answered still gets an answer from a later run while it is younger than this."""


@dataclass(frozen=True, slots=True)
class Look:
    """All that is known when it is decided whom to answer: ``before`` is memory as it was when the run began."""

    event: Event
    news: News
    now: datetime
    place: Place
    before: Mapping[ThreadId, Record] = field(default_factory=dict)
    said: Mapping[ThreadId, Said] = field(default_factory=dict)


def due(threads: Iterable[Thread], look: Look) -> list[Thread]:
    """The threads that are to be answered now, oldest first. The same look twice gives the same threads."""
    return sorted((thread for thread in threads if _is_due(thread, look)), key=lambda thread: thread.created_at)


def _is_due(thread: Thread, look: Look) -> bool:
    event, said = look.event, look.said.get(thread.id)
    is_asked = event.number == thread.id and event.may_be_answered
    is_fresh = thread.created_at > look.now - ANSWER_AGE
    if event.name == "workflow_dispatch" and event.number == thread.id:
        return True
    if said is None:
        return is_fresh or (is_asked and event.name == "issues") or (is_asked and _brings_reference(thread, look))
    if said.state == "pending" and thread.id in look.news.own and look.news.own[thread.id] is None:
        return said.at > look.now - ANSWER_AGE
    if not (is_asked or is_fresh):
        return False
    return _is_rewritten(thread, look.before.get(thread.id)) or _brings_reference(thread, look)


def _is_rewritten(thread: Thread, before: Record | None) -> bool:
    return isinstance(before, Thread) and (thread.title, thread.body) != (before.title, before.body)


def _brings_reference(thread: Thread, look: Look) -> bool:
    """Whether the newest comments point at an issue that nothing before them pointed at."""
    before = look.before.get(thread.id)
    if isinstance(before, Thread):
        known = {comment.id for comment in before.comments}
        old = replace(thread, comments=tuple(c for c in thread.comments if c.id in known))
    else:
        old = replace(thread, comments=tuple(c for c in thread.comments if c.id != look.event.comment_id))
    if len(old.comments) == len(thread.comments):
        return False
    return bool(set(referenced(thread, look.place)) - set(referenced(old, look.place)))


def reason_to_pass(thread: Thread, settings: Settings) -> str:
    """Why this thread is remembered but never answered; empty when it may be."""
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


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
