"""Collects readers' 👍 and 👎 on our comments, in runs that nobody waits for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from bot.domain.changes import Changes
from bot.domain.post import Post, Vote
from bot.domain.thread import Kind
from bot.domain.thread_json import parse_number, storable
from bot.github.client import GitHubClient
from bot.github.errors import ForgeError, Gone, NotPermitted
from bot.memory.memory import Memory
from bot.pipeline.promises import deleted_post
from bot.pipeline.room import Room

MAX_AGE = timedelta(days=14)
"""How long after it is posted a comment is checked."""

MIN_AGE = timedelta(minutes=10)
"""GitHub may answer 404 for a comment younger than this, so until then a 404 proves nothing."""

MAX_READS = 30
"""Comments that one run checks, with one API read each, and another one if the thumbs on it changed."""

MAX_VOTERS = 20
"""Accounts of which one run asks whether they may write, with one API read each."""

_THUMBS = {"+1": True, "-1": False}


class Votes(Room):
    """Readers' opinions on our comments."""

    def look(self) -> None:
        run = self.run
        if self.facts.event.is_maintenance:
            run.memory.stage(Changes(posts=collect_feedback(run.memory, run.forge, run.now)))


def collect_feedback(memory: Memory, forge: GitHubClient, now: datetime) -> tuple[Post, ...]:
    """Changed thumbs on the comments of the last two weeks, newest first, to be staged.

    A comment that is gone was deleted by a person. If GitHub cannot be reached, the result so far is kept and a later
    run continues.
    """
    changed: list[Post] = []
    collector = _Collector(forge)
    try:
        for comment in _on_issues(_newest(memory.state.every_comment(), now), memory):
            current = collector.current(comment)
            if current != comment:
                changed.append(replace(current, revised_at=now))
    except ForgeError:
        pass
    return tuple(changed)


def _newest(comments: Iterable[Post], now: datetime) -> list[Post]:
    recent = [
        comment
        for comment in comments
        if comment.state == "said" and comment.comment_id and now - MAX_AGE < comment.at <= now - MIN_AGE
    ]
    return sorted(recent, key=lambda comment: (comment.at, comment.comment_id), reverse=True)[:MAX_READS]


def _on_issues(comments: list[Post], memory: Memory) -> list[Post]:
    """Without those in discussions: for REST, the id of a comment there belongs to another comment, or to none."""
    entries = memory.entries([comment.id for comment in comments])
    return [
        comment for comment in comments if comment.id not in entries or entries[comment.id].kind is not Kind.DISCUSSION
    ]


@dataclass(frozen=True, slots=True)
class _Collector:
    """Reads the votes on comments. ``writers`` are the accounts looked up so far: whether each may write."""

    forge: GitHubClient
    writers: dict[str, bool] = field(default_factory=dict)

    def current(self, comment: Post) -> Post:
        """The post as it stands now. It keeps its ``at``, as its text is not new. Raises ForgeError."""
        assert comment.comment_id is not None
        try:
            counts = count_thumbs(self.forge.comment(comment.comment_id))
            if counts is None or counts == _stored_counts(comment):
                return comment
            return replace(comment, votes=self._votes(comment) if any(counts.values()) else ())
        except Gone:
            return deleted_post(comment)

    def _votes(self, comment: Post) -> tuple[Vote, ...]:
        """The vote of each person with a thumb on the comment. After MAX_VOTERS accounts, those that are left are taken
        for strangers in this comment, and the votes on others are left to a later run."""
        if len(self.writers) >= MAX_VOTERS:
            return comment.votes
        opinions = read_opinions(self.forge.reactions(comment.comment_id or 0))
        return tuple(Vote(login, helps, self._may_write(login)) for login, helps in sorted(opinions.items()))

    def _may_write(self, login: str) -> bool:
        if login not in self.writers and len(self.writers) < MAX_VOTERS:
            try:
                self.writers[login] = self.forge.may_write(login)
            except NotPermitted:
                self.writers[login] = False
        return self.writers.get(login, False)


def _stored_counts(comment: Post) -> dict[bool, int]:
    return {helps: sum(vote.helps is helps for vote in comment.votes) for helps in _THUMBS.values()}


def count_thumbs(comment: Mapping[str, Any]) -> dict[bool, int] | None:
    """How many 👍 (True) and 👎 (False) a comment has; an invalid count is 0. None if the forge does not say."""
    counts = comment.get("reactions")
    if not isinstance(counts, Mapping):
        return None
    return {helps: parse_number(counts.get(name)) or 0 for name, helps in _THUMBS.items()}


def read_opinions(reactions: Iterable[Mapping[str, Any]]) -> dict[str, bool]:
    """Each person's opinion; whoever gave both thumbs has none. Bots and deleted accounts have none either."""
    opinions: dict[str, set[bool]] = {}
    for reaction in reactions:
        user, helps = reaction.get("user"), _THUMBS.get(str(reaction.get("content")))
        if isinstance(user, Mapping) and user.get("type") == "User" and helps is not None:
            opinions.setdefault(storable(user.get("login")).casefold(), set()).add(helps)
    return {login: helps for login, (helps, *more) in opinions.items() if login and not more}
