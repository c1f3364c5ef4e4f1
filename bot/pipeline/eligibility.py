"""Decides which threads get answers."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from bot.domain.changes import threads_to_redo
from bot.domain.post import short_hash
from bot.domain.thread import Kind, RepositoryAddress, Thread
from bot.pipeline.tools import Facts, is_being_posted
from bot.recall.mentions import referenced_numbers
from bot.settings.schema import Settings


def question_hash(thread: Thread, place: RepositoryAddress) -> str:
    """Identifies the question of a thread: its title, opening text and references."""
    question = repr((thread.title, thread.body, sorted(referenced_numbers(thread, place))))
    return short_hash(question)


def is_due(thread: Thread, facts: Facts) -> bool:
    """Whether to answer the thread now. Depends on earlier posts, not on the stored thread: another run may have read
    this event's changes before."""
    event, post = facts.event, facts.comments.get(thread.id)
    is_its_own = event.number == thread.id
    is_fresh = thread.created_at > facts.now - facts.max_age
    if facts.is_by_hand(thread) or thread.id in threads_to_redo(facts.requested):
        return True
    if post is None:
        is_asked = is_its_own and event.may_be_answered
        return is_fresh or (is_asked and (event.name != "issue_comment" or _adds_reference(thread, facts)))
    if post.state == "pending":
        return post.at > facts.now - facts.max_age and not is_being_posted(post, facts.now)
    if is_its_own and not event.may_be_answered:
        return False
    return (is_its_own or is_fresh) and post.question != question_hash(thread, facts.address)


def _adds_reference(thread: Thread, facts: Facts) -> bool:
    """Whether the event's comments refer to an issue that nothing else in the thread refers to."""
    new = {facts.event.comment_id, *facts.event.earlier}
    rest = replace(thread, comments=tuple(comment for comment in thread.comments if comment.id not in new))
    return bool(set(referenced_numbers(thread, facts.address)) - set(referenced_numbers(rest, facts.address)))


def answers_kind(kind: Kind, settings: Settings) -> bool:
    """Whether the settings allow answers on threads of this kind."""
    by_setting = (kind.traits.is_change and settings.pulls) or (kind is Kind.DISCUSSION and settings.discussions.answer)
    return kind.traits.is_answered or by_setting


def reason_to_pass(thread: Thread, settings: Settings) -> str:
    """Why this thread is remembered but not answered, "" if it may be answered."""
    if reason := reason_to_ignore(thread, settings):
        return reason
    if thread.is_bot or matches(thread.author, settings.ignore.authors):
        return "its author is a bot or ignored"
    if thread.author in settings.ignore.hidden:
        return "its author asked to be left alone"
    if thread.is_closed:
        return "it is already closed"
    return "the conversation is locked" if thread.locked else ""


def reason_to_ignore(thread: Thread, settings: Settings) -> str:
    """Why not even requests in this thread count, "" if they do."""
    if settings.mode == "off":
        return "the mode is off"
    if not answers_kind(thread.kind, settings):
        return f"{thread.kind.traits.noun}s are not answered"
    is_ignored = any(matches(label, settings.ignore.labels) for label in thread.labels)
    return "it carries an ignored label" if is_ignored else ""


def matches(name: str, names: Iterable[str]) -> bool:
    """Whether this is one of the names, in upper or lower case."""
    return name.casefold() in {listed.casefold() for listed in names}
