"""Loads archives of threads into the fake and exports them again, one JSON object per thread."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from tests.fakes.history import one_at_a_time
from tests.fakes.project import Project
from tests.fakes.state import Account, Comment, Event, Issue, Pull

Json = dict[str, Any]
QUIET = frozenset({"cross-referenced", "referenced"})
"""Events that do not change when an issue was last updated."""


def read_archive(path: Path) -> Iterator[Json]:
    """The threads of a ``.jsonl`` or ``.jsonl.gz`` file."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for line in lines:
            yield json.loads(line)


class ArchivedProject(Project):
    """A project that can be filled from an archive and written as one."""

    @one_at_a_time
    def load_archive(self, threads: Iterable[Json]) -> list[int]:
        """Add these threads to the repository with everything that the archive knows; returns their numbers.

        Events in an archive name no labels: the thread's labels are given to its ``labeled`` events in turn. A source
        that the archive lacks becomes an issue that only appears at the far end of the reference.
        """
        archived = list(threads)
        for thread in archived:
            self._load_thread(thread)
        self._load_comments(archived)
        for thread in archived:
            self._load_events(thread)
            self._load_duplicates(thread)
            self._settle(thread)
        numbers = [int(thread["id"]) for thread in archived]
        self.repo.next_number = max([self.repo.next_number, *(number + 1 for number in numbers)])
        return numbers

    def _load_thread(self, thread: Json) -> None:
        number, account = int(thread["id"]), self.world.account(thread.get("author"))
        created, association = thread["created_at"], thread.get("author_association") or "NONE"
        body = thread.get("body") or None
        issue = Issue(
            self.repo, number, self.world.next_id(), thread["title"], body, account, association, created, created
        )
        issue.labels = list(thread.get("labels") or ())
        if thread.get("kind") == "pull" or thread.get("pull"):
            issue.pull = Pull(head=f"{number:040x}")
        self._mark_bot(account, thread)
        self.repo.issues[number] = issue

    def _load_comments(self, archived: list[Json]) -> None:
        """Comment ids rise with time across the whole repository, as on GitHub."""
        entries = [
            (c["created_at"], int(t["id"]), i, c) for t in archived for i, c in enumerate(t.get("comments") or ())
        ]
        for created, number, _, source in sorted(entries, key=lambda entry: entry[:3]):
            issue, account = self.repo.issues[number], self.world.account(source.get("author"))
            role, updated = source.get("association") or "NONE", source.get("updated_at") or created
            comment_id = source.get("id") or self.world.next_id()
            comment = Comment(comment_id, issue, account, role, source.get("body") or "", created, updated)
            self._mark_bot(account, source)
            issue.comments.append(comment)
            self.repo.comments[comment.id] = comment

    def _mark_bot(self, account: Account | None, source: Json) -> None:
        if account and source.get("is_bot"):
            account.type = "Bot"

    def _load_events(self, thread: Json) -> None:
        issue = self.repo.issues[int(thread["id"])]
        names = iter(issue.labels)
        for entry in thread.get("events") or ():
            event = self._event(entry["event"], entry.get("actor"), entry["at"])
            if event.kind == "labeled":
                event.detail = next(names, "label")
            if event.kind in ("locked", "unlocked"):
                issue.locked = event.kind == "locked"
            if event.kind == "merged" and issue.pull:
                issue.pull.merged_at, issue.pull.merged_by = event.at, event.actor
                issue.pull.merge_commit = event.commit = entry.get("commit")
            issue.events.append(event)
        for entry in thread.get("xrefs") or ():
            event = self._event(entry["event"], entry.get("actor"), entry["date"])
            event.commit = entry.get("commit")
            if "from" in entry:
                event.other = self._source(int(entry["from"]), entry.get("type") == "pull", event.at)
            issue.events.append(event)

    def _event(self, kind: str, actor: str | None, at: str) -> Event:
        return Event(self.world.next_id(), kind, self.world.account(actor), at)

    def _source(self, number: int, is_pull: bool, at: str) -> Issue:
        source = self.repo.issues.get(number) or self.repo.outsiders.get(number)
        if source is None:
            source = Issue(self.repo, number, self.world.next_id(), f"Thread {number}", None, None, "NONE", at, at)
            source.pull = Pull(head=f"{number:040x}") if is_pull else None
            self.repo.outsiders[number] = source
        return source

    def _load_duplicates(self, thread: Json) -> None:
        issue = self.repo.issues[int(thread["id"])]
        for number in thread.get("duplicate_of") or ():
            event = self._event(
                "marked_as_duplicate", thread.get("closed_by"), thread.get("closed_at") or issue.created_at
            )
            event.other = self._source(int(number), False, issue.created_at)
            issue.events.append(event)

    def _settle(self, thread: Json) -> None:
        """Set the state, the times and the closing event, once all events are loaded."""
        issue = self.repo.issues[int(thread["id"])]
        issue.state_reason = thread.get("state_reason")
        for event in issue.events:
            issue.touch(event.at if event.kind not in QUIET else issue.created_at)
        for comment in issue.comments:
            issue.touch(comment.updated_at)
        if thread.get("state") == "closed":
            self._settle_closing(issue, thread)
        issue.updated_at = thread.get("updated_at") or issue.updated_at
        self.world.clock.stamp(issue.updated_at)

    def _settle_closing(self, issue: Issue, thread: Json) -> None:
        closings = [event for event in issue.events if event.kind == "closed"]
        issue.state, issue.closed_at = "closed", thread.get("closed_at") or issue.updated_at
        closer = thread.get("closed_by") or (closings[-1].actor.login if closings and closings[-1].actor else None)
        issue.closed_by = self.world.account(closer)
        if not closings:
            closings = [self._event("closed", closer, issue.closed_at)]
            issue.events.extend(closings)
        closings[-1].detail = issue.state_reason
        issue.touch(issue.closed_at)

    @one_at_a_time
    def export_archive(self) -> list[Json]:
        """The threads in the format of `load_archive`, plus ``updated_at``, ``is_bot``, ``locked`` and comment ids."""
        return [export_thread(self.repo.issues[number]) for number in sorted(self.repo.issues)]


def export_thread(issue: Issue) -> Json:
    thread: Json = {
        "id": issue.number,
        "title": issue.title,
        "body": issue.body,
        "state": issue.state,
        "state_reason": issue.state_reason,
        "created_at": issue.created_at,
        "updated_at": issue.updated_at,
        "closed_at": issue.closed_at,
        "closed_by": issue.closed_by.login if issue.closed_by else None,
        "author": _login(issue.author),
        "author_association": issue.association,
        "is_bot": _is_bot(issue.author),
        "locked": issue.locked,
        "labels": list(issue.labels),
        "comments": [_export_comment(comment) for comment in issue.comments],
        "events": [_export_event(e) for e in issue.events if e.kind not in QUIET and e.kind != "marked_as_duplicate"],
        "xrefs": [_export_reference(event) for event in issue.events if event.kind in QUIET],
        "duplicate_of": [e.other.number for e in issue.events if e.kind == "marked_as_duplicate" and e.other],
    }
    if issue.pull:
        thread["kind"] = "pull"
    optional = ("state_reason", "closed_at", "closed_by", "xrefs", "duplicate_of")
    return {key: value for key, value in thread.items() if value or key not in optional}


def _export_comment(comment: Comment) -> Json:
    return {
        "id": comment.id,
        "author": _login(comment.author),
        "association": comment.association,
        "created_at": comment.created_at,
        "updated_at": comment.updated_at,
        "body": comment.body,
        "is_bot": _is_bot(comment.author),
    }


def _export_event(event: Event) -> Json:
    return {"event": event.kind, "actor": _login(event.actor), "at": event.at}


def _export_reference(event: Event) -> Json:
    shared = {"event": event.kind, "actor": _login(event.actor), "date": event.at}
    if event.other is None:
        return shared | {"commit": event.commit}
    return shared | {"from": event.other.number, "type": "pull" if event.other.pull else "issue"}


def _login(account: Account | None) -> str:
    return account.login if account else "ghost"


def _is_bot(account: Account | None) -> bool:
    return account is not None and account.type == "Bot"
