"""Labels from what people did later: the older threads that they linked, when, and their feedback on our matches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from bot.domain.changes import Request
from bot.domain.post import Post, Vote
from bot.domain.thread import MAINTAINER_ROLES, Thread, ThreadId, TimelineEvent
from bot.evaluation.results import Relations
from bot.reading.endings.engine import find_original
from bot.reading.endings.outcome import outcome
from bot.reading.markdown import statements
from bot.reading.references import find_references, find_title_references

_CLOSING_WINDOW = timedelta(minutes=2)
"""How long after a closing a comment may state the ending."""

Pair = tuple[ThreadId, ThreadId]
"""A thread, and a match that people were shown for it."""


@dataclass(frozen=True, slots=True)
class Feedback:
    """What people think of the matches that they were shown.

    ``opinions``: whether a match is helpful, according to people who may say so for everybody. ``votes``: everybody's.
    """

    opinions: Mapping[Pair, bool] = field(default_factory=dict)
    votes: Mapping[Pair, tuple[Vote, ...]] = field(default_factory=dict)


NO_FEEDBACK = Feedback()


def feedback_of(comments: Iterable[Post], requests: Iterable[Request], threads: Iterable[Thread] = ()) -> Feedback:
    """The feedback on the matches of these comments. ``threads``: those whose authors may have called a match wrong.

    The thumbs on a comment judge its match if it shows only one; with several, they could mean any. A pair that was
    called wrong is wrong in both directions, whatever the thumbs say.
    """
    votes = {(record.id, record.matches[0][0]): record.votes for record in comments if len(record.matches) == 1}
    opinions = {pair: balance > 0 for pair, rated in votes.items() if (balance := _balance(rated))}
    unlike = _votes_against(requests, {thread.id: thread for thread in threads})
    votes = {pair: rated for pair, rated in (votes | unlike).items() if rated}
    return Feedback(opinions | dict.fromkeys(unlike, False), votes)


def _votes_against(requests: Iterable[Request], threads: Mapping[ThreadId, Thread]) -> dict[Pair, tuple[Vote, ...]]:
    """The pairs that were called wrong, in both directions, and by whom."""
    votes: dict[Pair, tuple[Vote, ...]] = {}
    for request in requests:
        vote = Vote(request.by.casefold(), False, _may_write(request, threads.get(request.id)))
        for match in request.about if request.name == "wrong" else ():
            for pair in ((request.id, match), (match, request.id)):
                votes[pair] = (*(other for other in votes.get(pair, ()) if other.by != vote.by), vote)
    return votes


def _balance(votes: Iterable[Vote]) -> int:
    """How many more people with write access found a match helpful than not."""
    return sum(1 if vote.helps else -1 for vote in votes if vote.may_write)


def _may_write(request: Request, thread: Thread | None) -> bool:
    """Whether a ``wrong`` came from somebody with write access. Others may call a match wrong on their own issues."""
    if thread is None:
        return False
    return thread.author.casefold() != request.by.casefold() or thread.role in MAINTAINER_ROLES


@dataclass(frozen=True, slots=True)
class Mark:
    """Somebody linked ``thread`` to ``target`` at a moment, calling it a duplicate or not."""

    thread: ThreadId
    target: ThreadId
    at: datetime
    is_duplicate: bool


def marks(thread: Thread, repo: str | None = None) -> list[Mark]:
    """The links that were made in a thread after it was opened, oldest first.

    The author's own links count only if they call the thread a duplicate, which they did not know when they opened it.
    Threads mentioned in the opening text do not count, because nobody had to find them; nor do links by bots.
    """
    thread = replace(thread, events=tuple(event for event in thread.events if not _is_mark_of_bot(event)))
    number = thread.id if isinstance(thread.id, int) else None
    mentioned = find_title_references(thread.title, repo=repo, number=number)
    mentioned += find_references(thread.body, repo=repo, number=number)
    known = {reference.number for reference in mentioned if reference.owner is None}
    marked = [mark for mark in _stated_marks(thread, repo) if mark.target not in known and mark.target != thread.id]
    return sorted(marked, key=lambda mark: mark.at)


def _stated_marks(thread: Thread, repo: str | None) -> Iterator[Mark]:
    number = thread.id if isinstance(thread.id, int) else None
    for event in thread.events if thread.state_changes else ():
        if event.name == "marked_as_duplicate" and event.source is not None:
            # The events of a thread are stored from its first closing on, so the mark is not known earlier.
            yield Mark(thread.id, event.source, max(event.at, thread.state_changes[0]), True)
    original = first_original(thread)
    if original is not None:
        yield Mark(thread.id, *original, is_duplicate=True)
    for comment in thread.comments:
        if comment.is_bot:
            continue
        for target in _named_originals(comment.text, thread.id):
            yield Mark(thread.id, target, comment.created_at, True)
        if comment.author == thread.author:
            continue
        for reference in find_references(comment.text, repo=repo, number=number):
            if reference.owner is None and reference.kind is None:
                yield Mark(thread.id, reference.number, comment.created_at, False)


def first_original(thread: Thread) -> tuple[ThreadId, datetime] | None:
    """The thread that this one was first closed as a duplicate of, and when that became known.

    Later events do not change it, even a reopening: a replay of the past must not know the future.
    """
    for moment in _ending_times(thread):
        # Only the newest state reason is known, and it may belong to a later closing.
        target = outcome(replace(thread.as_of(moment), state_reason=None)).duplicate_of
        if target is not None:
            return target, moment
    return None


def _ending_times(thread: Thread) -> list[datetime]:
    """The moments when the ending may have become known: the closings, and what followed within two minutes."""
    closings = thread.state_changes[::2]
    comment_times = (c.created_at for c in thread.comments)
    late_times = [at for at in comment_times if any(at - _CLOSING_WINDOW <= closed <= at for closed in closings)]
    marked = [event.at for event in thread.events if event.name == "marked_as_duplicate" and closings]
    return sorted({*closings, *late_times, *(at for at in marked if at > closings[0])})


def _is_mark_of_bot(event: TimelineEvent) -> bool:
    return event.name.endswith("marked_as_duplicate") and event.actor.endswith("[bot]")


def _named_originals(text: str, own: ThreadId) -> Iterator[ThreadId]:
    """The threads that a comment calls the original."""
    if "dup" not in text.lower():
        return
    for sentence in statements(text):
        original = find_original(sentence, own)
        if original is not None:
            yield original


class LinkLabels:
    """All marks of a history and their consequence: the duplicates of one thread are related to one another.

    Feedback overrules the marks, whenever it was given: a match called wrong is not related, a helpful one is.
    """

    def __init__(
        self, created: Mapping[ThreadId, datetime], all_marks: Iterable[Mark], feedback: Feedback = NO_FEEDBACK
    ) -> None:
        self.created = created
        self.feedback = feedback
        self._opinions: dict[ThreadId, dict[ThreadId, bool]] = {}
        for (thread, match), helps in feedback.opinions.items():
            self._opinions.setdefault(thread, {})[match] = helps
        self._marks: dict[ThreadId, list[Mark]] = {}
        self._neighbours: dict[ThreadId, list[tuple[ThreadId, datetime]]] = {}
        for mark in all_marks:
            self._marks.setdefault(mark.thread, []).append(mark)
            if mark.is_duplicate and mark.target in created:
                self._neighbours.setdefault(mark.thread, []).append((mark.target, mark.at))
                self._neighbours.setdefault(mark.target, []).append((mark.thread, mark.at))
        self._before: datetime | None = None

    @classmethod
    def read(cls, threads: Sequence[Thread], repo: str | None = None, feedback: Feedback = NO_FEEDBACK) -> LinkLabels:
        created = {thread.id: thread.created_at for thread in threads}
        return cls(created, (mark for thread in threads for mark in marks(thread, repo)), feedback)

    def known_at(self, moment: datetime) -> LinkLabels:
        """The links that had been made before that moment."""
        labels = copy(self)
        labels._before = moment if self._before is None else min(moment, self._before)
        return labels

    def with_marks(self, more: Iterable[Mark]) -> LinkLabels:
        return LinkLabels(self.created, [*self._known_marks(), *more], self.feedback)

    def relations(self, thread: Thread) -> Relations:
        """The threads older than this one that it was linked to, at any time."""
        duplicates = self._older(self._group(thread.id), thread)
        others = self._older({mark.target for mark in self._marks_of(thread.id)}, thread)
        unlike, liked = self._rated_threads(thread, helps=False), self._rated_threads(thread, helps=True)
        return Relations(duplicates - unlike, (others | liked) - duplicates - unlike)

    def duplicates(self) -> list[ThreadId]:
        """The threads that were called a duplicate of a known, older one, oldest first."""
        marked = (m.thread for m in self._known_marks() if m.is_duplicate and self._is_older(m.target, m.thread))
        return sorted(dict.fromkeys(marked), key=lambda key: self.created[key])

    def first_duplicate_mark(self, key: ThreadId) -> datetime | None:
        """When the thread was first called a duplicate of an older one."""
        moments = (m.at for m in self._marks_of(key) if m.is_duplicate and self._is_older(m.target, key))
        return min(moments, default=None)

    def _known_marks(self) -> Iterator[Mark]:
        return (mark for key in self._marks for mark in self._marks_of(key))

    def _marks_of(self, key: ThreadId) -> Iterator[Mark]:
        return (mark for mark in self._marks.get(key, ()) if self._is_known(mark.at))

    def _is_known(self, at: datetime) -> bool:
        return self._before is None or at < self._before

    def _group(self, key: ThreadId) -> set[ThreadId]:
        """The thread and all threads that duplicate marks connect with it, in either direction."""
        group, todo = {key}, [key]
        while todo:
            for other, at in self._neighbours.get(todo.pop(), ()):
                if other not in group and self._is_known(at):
                    group.add(other)
                    todo.append(other)
        return group

    def _rated_threads(self, thread: Thread, *, helps: bool) -> frozenset[ThreadId]:
        opinions = self._opinions.get(thread.id, {})
        return self._older((key for key, is_helpful in opinions.items() if is_helpful is helps), thread)

    def _is_older(self, key: ThreadId, other: ThreadId) -> bool:
        return key in self.created and other in self.created and self.created[key] < self.created[other]

    def _older(self, keys: Iterable[ThreadId], thread: Thread) -> frozenset[ThreadId]:
        return frozenset(key for key in keys if key in self.created and self.created[key] < thread.created_at)
