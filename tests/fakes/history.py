"""What people do with issues: open, comment, close, label and lock them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar, cast

from tests.fakes.commits import fake_sha, merge
from tests.fakes.mentions import duplicate_of, find_mentions
from tests.fakes.state import (
    BOT_LOGIN,
    Account,
    ChangedFile,
    Comment,
    Event,
    Issue,
    Moment,
    Pull,
    Reaction,
    Repository,
    World,
)

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound="History")


def one_at_a_time(verb: Callable[Concatenate[H, P], R]) -> Callable[Concatenate[H, P], R]:
    """Hold the lock for the whole call, since requests are served on other threads."""

    @wraps(verb)
    def locked(self: H, *args: P.args, **kwargs: P.kwargs) -> R:
        with self.world.lock:
            self.world.version += 1
            return verb(self, *args, **kwargs)

    return cast("Callable[Concatenate[H, P], R]", locked)


class History:
    """One repository and what happens in it. ``at`` None means now; a login of None is a deleted account."""

    def __init__(self, world: World, repo: Repository) -> None:
        self.world = world
        self.repo = repo

    def issue(self, number: int) -> Issue:
        """The state of an issue or pull, to look at."""
        return self.repo.issues[number]

    def comment_by_id(self, comment_id: int) -> Comment:
        return self.repo.comments[comment_id]

    def comments_by(self, login: str, number: int | None = None) -> list[Comment]:
        """The comments of this account, oldest first, on one issue or on all."""
        account = self.world.account(login)
        matching = (c for c in list(self.repo.comments.values()) if c.author is account)  # others write meanwhile
        return sorted((c for c in matching if number in (None, c.issue.number)), key=lambda c: c.id)

    @one_at_a_time
    def open_issue(
        self,
        author: str | None,
        title: str,
        body: str | None = "",
        at: Moment = None,
        labels: Iterable[str] = (),
        association: str | None = None,
    ) -> int:
        issue = self._open(author, title, body, at)
        issue.association = association or issue.association
        for name in labels:
            self.label(issue.number, name, at=issue.created_at, actor=author)
        return issue.number

    @one_at_a_time
    def add_pull(
        self,
        author: str | None,
        title: str,
        body: str | None = "",
        at: Moment = None,
        files: Iterable[ChangedFile | str] = (),
        closes: Iterable[int] = (),
    ) -> int:
        """Open a pull request in the same number space; ``closes`` are the issues it will close when it is merged."""
        issue = self._open(author, title, body, at)
        changed = [ChangedFile(file) if isinstance(file, str) else file for file in files]
        issue.pull = Pull(fake_sha(f"head {issue.number}"), changed, list(closes))
        for number in issue.pull.closes:
            self.cross_reference(number, issue, issue.author, issue.created_at)
        return issue.number

    def _open(self, author: str | None, title: str, body: str | None, at: Moment) -> Issue:
        account, moment = self.world.account(author), self.world.clock.stamp(at)
        number, role = self.repo.next_number, self.association(account)
        self.repo.next_number += 1
        issue = Issue(self.repo, number, self.world.next_id(), title, body or None, account, role, moment, moment)
        issue.app = app_of(account)
        self.repo.issues[number] = issue
        self._note_mentions(issue, body or "", account, moment)
        return issue

    @one_at_a_time
    def comment(
        self, number: int, author: str | None, text: str, at: Moment = None, association: str | None = None
    ) -> int:
        issue, moment = self.repo.issues[number], self.world.clock.stamp(at)
        account = self.world.account(author)
        role = association or self.association(account)
        comment = Comment(self.world.next_id(), issue, account, role, text, moment, moment, app=app_of(account))
        issue.comments.append(comment)
        self.repo.comments[comment.id] = comment
        issue.touch(moment)
        self._note_mentions(issue, text, account, moment)
        self._note_duplicate(issue, text, account, moment)
        return comment.id

    @one_at_a_time
    def edit_comment(self, comment_id: int, text: str, at: Moment = None, by: str | None = None) -> None:
        comment, moment = self.repo.comments[comment_id], self.world.clock.stamp(at)
        comment.issue.changes = {"body": {"from": comment.body}}
        comment.body, comment.updated_at = text, moment
        comment.issue.touch(moment)
        editor = self.world.account(by) if by else comment.author
        self._note_mentions(comment.issue, text, editor, moment)

    @one_at_a_time
    def delete_comment(self, comment_id: int, at: Moment = None, by: str | None = None) -> None:
        comment = self.repo.removed[comment_id] = self.repo.comments.pop(comment_id)
        comment.issue.comments.remove(comment)
        actor = self.world.account(by) if by else comment.author
        self._add_event(comment.issue, "comment_deleted", actor, at)

    @one_at_a_time
    def edit_issue(self, number: int, title: str | None = None, body: str | None = None, at: Moment = None) -> None:
        issue, moment = self.repo.issues[number], self.world.clock.stamp(at)
        issue.changes = {}
        if title is not None and title != issue.title:
            event = self._add_event(issue, "renamed", issue.author, moment)
            event.renamed = (issue.title, title)
            issue.changes["title"] = {"from": issue.title}
            issue.title = title
        if body is not None and body != (issue.body or ""):
            issue.changes["body"] = {"from": issue.body or ""}
            issue.body = body or None
            self._note_mentions(issue, body, issue.author, moment)
        issue.touch(moment)

    @one_at_a_time
    def close(
        self,
        number: int,
        actor: str | None,
        reason: str | None = "completed",
        at: Moment = None,
        commit: str | None = None,
        by_pull: int | None = None,
    ) -> None:
        """``reason`` is ``completed``, ``not_planned`` or ``duplicate``; a pull has none."""
        issue = self.repo.issues[number]
        if issue.state == "closed":
            return
        event = self._add_event(issue, "closed", self.world.account(actor), at)
        issue.state, issue.closed_at, issue.closed_by = "closed", event.at, event.actor
        issue.state_reason = event.detail = None if issue.pull else reason
        event.commit = commit
        if by_pull is not None:
            event.other = self.repo.issues[by_pull]
            closes = event.other.pull.closes if event.other.pull else []
            if number not in closes:
                closes.append(number)
            self.cross_reference(number, event.other, event.actor, event.at)

    @one_at_a_time
    def reopen(self, number: int, actor: str | None, at: Moment = None) -> None:
        issue = self.repo.issues[number]
        if issue.state == "open":
            return
        event = self._add_event(issue, "reopened", self.world.account(actor), at)
        issue.state, issue.closed_at, issue.closed_by = "open", None, None
        issue.state_reason = event.detail = None if issue.pull else "reopened"

    @one_at_a_time
    def merge_pull(self, number: int, actor: str | None, at: Moment = None, commit: str | None = None) -> None:
        """Merge and close the pull, and the issues that it closes with it."""
        issue = self.repo.issues[number]
        assert issue.pull is not None, f"#{number} is no pull request"
        self.close(number, actor, None, at)
        merge(issue, commit)
        self._add_event(issue, "merged", issue.closed_by, issue.closed_at).commit = issue.pull.merge_commit
        for closed in issue.pull.closes:
            self.close(closed, actor, "completed", issue.closed_at, by_pull=number)

    @one_at_a_time
    def label(self, number: int, *names: str, at: Moment = None, actor: str | None = BOT_LOGIN) -> None:
        issue = self.repo.issues[number]
        for name in names:
            if name not in issue.labels:
                issue.labels.append(name)
                issue.label_changed = name
                self._add_event(issue, "labeled", self.world.account(actor), at).detail = name

    @one_at_a_time
    def unlabel(self, number: int, *names: str, at: Moment = None, actor: str | None = BOT_LOGIN) -> None:
        issue = self.repo.issues[number]
        for name in names:
            issue.labels.remove(name)
            issue.label_changed = name
            self._add_event(issue, "unlabeled", self.world.account(actor), at).detail = name

    @one_at_a_time
    def lock(self, number: int, reason: str | None = None, at: Moment = None, actor: str | None = BOT_LOGIN) -> None:
        issue = self.repo.issues[number]
        issue.locked, issue.lock_reason = True, reason
        self._add_event(issue, "locked", self.world.account(actor), at).detail = reason

    @one_at_a_time
    def unlock(self, number: int, at: Moment = None, actor: str | None = BOT_LOGIN) -> None:
        issue = self.repo.issues[number]
        issue.locked, issue.lock_reason = False, None
        self._add_event(issue, "unlocked", self.world.account(actor), at)

    @one_at_a_time
    def mark_duplicate(self, number: int, canonical: int, actor: str | None, at: Moment = None) -> None:
        event = self._add_event(self.repo.issues[number], "marked_as_duplicate", self.world.account(actor), at)
        event.other = self.repo.issues[canonical]

    @one_at_a_time
    def reference(self, number: int, commit: str, actor: str | None, at: Moment = None) -> None:
        """A commit message names the issue."""
        event = self._add_event(self.repo.issues[number], "referenced", self.world.account(actor), at)
        event.commit = commit

    @one_at_a_time
    def react(self, number: int, login: str, content: str, comment_id: int | None = None) -> int:
        """React to the issue, or to one of its comments; the same reaction again is the one that is there."""
        target = self.repo.issues[number] if comment_id is None else self.repo.comments[comment_id]
        author = self.world.account(login)
        for reaction in target.reactions:
            if reaction.author is author and reaction.content == content:
                return reaction.id
        target.reactions.append(Reaction(self.world.next_id(), author, content, self.world.clock.now))
        return target.reactions[-1].id

    def cross_reference(self, number: int, source: Issue, actor: Account | None, at: str) -> None:
        """Note once that ``source`` refers to the issue. The issue's ``updated_at`` stays the same."""
        target = self.repo.issues[number]
        if any(event.kind == "cross-referenced" and event.other is source for event in target.events):
            return
        target.events.append(Event(self.world.next_id(), "cross-referenced", actor, at, other=source))

    def association(self, account: Account | None) -> str:
        """``author_association`` as GitHub computes it: by role, then by merged pull requests."""
        if account is self.repo.owner:
            return "OWNER"
        if self.repo.writable_by(account):
            return "COLLABORATOR"
        merged = (i for i in self.repo.issues.values() if i.pull and i.pull.merged_at)
        return "CONTRIBUTOR" if account and any(i.author is account for i in merged) else "NONE"

    def _add_event(self, issue: Issue, kind: str, actor: Account | None, at: Moment) -> Event:
        event = Event(self.world.next_id(), kind, actor, self.world.clock.stamp(at))
        issue.events.append(event)
        issue.touch(event.at)
        return event

    def _note_mentions(self, issue: Issue, text: str, actor: Account | None, at: str) -> None:
        for number in find_mentions(text, self.repo.full_name):
            if number in self.repo.issues and number != issue.number:
                self.cross_reference(number, issue, actor, at)

    def _note_duplicate(self, issue: Issue, text: str, actor: Account | None, at: str) -> None:
        """Mark a duplicate if a comment says so and its author may write."""
        number = duplicate_of(text)
        allowed = self.repo.writable_by(actor) or (actor is not None and actor.type == "Bot")
        if number in self.repo.issues and allowed:
            self._add_event(issue, "marked_as_duplicate", actor, at).other = self.repo.issues[number]


def app_of(account: Account | None) -> str | None:
    """The slug of the app behind a bot account; None for people."""
    return account.login.removesuffix("[bot]") if account and account.type == "Bot" else None
