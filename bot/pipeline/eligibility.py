"""Decides which threads get answers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import replace

from bot.domain.changes import redo
from bot.domain.thread import Kind, RepositoryAddress, Thread
from bot.pipeline.run_context import RunState, is_being_said
from bot.recall.mentions import referenced
from bot.settings.schema import Settings


def due(threads: Iterable[Thread], state: RunState) -> list[Thread]:
    """The threads to answer now, oldest first. The same state always gives the same threads."""
    return sorted((thread for thread in threads if _is_due(thread, state)), key=lambda thread: thread.created_at)


def question_of(thread: Thread, place: RepositoryAddress) -> str:
    """Identifies the question of a thread: its title, opening text and references."""
    asked = repr((thread.title, thread.body, sorted(referenced(thread, place))))
    return hashlib.sha256(asked.encode("utf-8", "replace")).hexdigest()[:16]


def _is_due(thread: Thread, state: RunState) -> bool:
    """Decided by earlier answers, not by what is remembered: another run may have read this event's changes before."""
    event, said = state.event, state.said.get(thread.id)
    is_its_own = event.number == thread.id
    is_fresh = thread.created_at > state.now - state.within
    if state.asks_for(thread) or thread.id in redo(state.requested):
        return True
    if said is None:
        is_asked = is_its_own and event.may_be_answered
        return is_fresh or (is_asked and (event.name != "issue_comment" or _points(thread, state)))
    if said.state == "pending":
        return said.at > state.now - state.within and not is_being_said(said, state.now)
    if is_its_own and not event.may_be_answered:
        return False
    return (is_its_own or is_fresh) and said.question != question_of(thread, state.place)


def _points(thread: Thread, state: RunState) -> bool:
    """Whether the event's comments refer to an issue that nothing else in the thread refers to."""
    new = {state.event.comment_id, *state.event.earlier}
    rest = replace(thread, comments=tuple(c for c in thread.comments if c.id not in new))
    return bool(set(referenced(thread, state.place)) - set(referenced(rest, state.place)))


def answers_kind(kind: Kind, settings: Settings) -> bool:
    """Whether the settings allow answers on threads of this kind."""
    by_setting = (kind.traits.is_change and settings.pulls) or (kind is Kind.DISCUSSION and settings.discussions.answer)
    return kind.traits.is_answered or by_setting


def reason_to_pass(thread: Thread, settings: Settings) -> str:
    """Why this thread is remembered but never answered, "" if it may be answered."""
    if settings.mode == "off":
        return "the mode is off"
    if not answers_kind(thread.kind, settings):
        return f"{thread.kind.traits.noun}s are not answered"
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
