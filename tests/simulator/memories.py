"""Reads memory from the bare repository as it is now, and compares it with the fake."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime

from bot.domain.thread import Record, Thread
from bot.domain.thread_json import archive_fields, parse_time, thread_from_archive
from bot.errors import StoreError
from bot.github.updates import OVERLAP
from bot.memory.memory import Memory
from bot.memory.store import Edits, Snapshot
from tests.fakes.archive import export_thread
from tests.fakes.state import Issue
from tests.simulator.observed_github import OURS, Key
from tests.simulator.scene import REPOSITORY, Scene

REFERENCES = ("cross-referenced", "referenced")


class BranchTipStore:
    """A store that only reads the tip of the branch."""

    def __init__(self, scene: Scene) -> None:
        self.snapshot = scene.bare.snapshot(scene.workspace.temporary)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self.snapshot

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        raise StoreError("nothing is written here")

    def close(self) -> None:
        """There is nothing to give back."""


@contextmanager
def open_memory(scene: Scene) -> Iterator[Memory]:
    """The memory of the branch's tip."""
    memory = Memory(BranchTipStore(scene), repo=REPOSITORY)
    try:
        yield memory.open()
    finally:
        memory.close()


def expected_thread(issue: Issue) -> Thread:
    """The thread that a full read of the fake gives now, without our own comments."""
    exported = export_thread(issue)
    ours = {comment.id for comment in issue.comments if _is_ours(comment.body, comment.author and comment.author.login)}
    events = [
        {
            "event": event.kind,
            "at": event.at,
            "actor": event.actor.login if event.actor else None,
            "commit": event.commit,
        }
        for event in issue.events
    ]
    changed = {"comments": [c for c in exported["comments"] if c["id"] not in ours], "events": events}
    return thread_from_archive(
        {name: value for name, value in exported.items() if name not in ("xrefs", "duplicate_of")} | changed
    )


def _is_ours(body: str, login: str | None) -> bool:
    comment = {"body": body, "user": {"login": login}}
    return OURS.is_answer(comment) or OURS.reply_target(comment) is not None


def comparable(thread: Thread) -> dict[str, object]:
    """A thread without what changes silently, and without events that are read only when an issue is closed.

    Reactions and references from elsewhere change no timestamp, and our own comment changes the time of the last
    update. The events of an issue are read once it was closed; those of a closing since undone may come later.
    """
    at = thread.closed_at
    kept_events = tuple(e for e in thread.events if at is not None and e.name not in REFERENCES and e.at <= at)
    plain_events = (replace(event, source=None, source_kind=None) for event in kept_events)
    events = tuple(sorted(plain_events, key=lambda event: (event.at, event.name, event.actor or "")))
    comments = tuple(replace(comment, reactions={}) for comment in thread.comments)
    return archive_fields(replace(thread, updated_at=None, events=events, comments=comments, reactions={}))


def differences(record: Record | None, issue: Issue) -> list[str]:
    """Each field in which the record differs from the fake."""
    if not isinstance(record, Thread):
        return [f"#{issue.number} is {'no record' if record is None else 'a tombstone'}"]
    actual, expected = comparable(record), comparable(expected_thread(issue))
    names = sorted(actual.keys() | expected.keys())
    return [
        f"#{issue.number}.{name} is {actual.get(name)!r:.200} instead of {expected.get(name)!r:.200}"
        for name in names
        if actual.get(name) != expected.get(name)
    ]


def posted_comments(scene: Scene) -> list[Key]:
    """The key of each comment of ours that exists now."""
    keys = []
    for issue in scene.fake.repo.issues.values():
        for comment in issue.comments:
            shape = {"body": comment.body, "user": {"login": comment.author.login if comment.author else None}}
            reply = 0 if OURS.is_answer(shape) else OURS.reply_target(shape)
            keys += [] if reply is None else [(issue.number, reply)]
    return keys


def has_pending_work(scene: Scene, *, fully: bool) -> bool:
    """Whether memory still lists an answer to post or a comment to update. An outbox entry whose comment is already
    posted counts only with ``fully``."""
    posted = set() if fully else set(posted_comments(scene))
    with open_memory(scene) as memory:
        requests = memory.state.every_request() if memory.state.manifest.threads else ()
        owed = [(int(key), 0) for key in memory.state.manifest.pending]
        owed += [(int(request.id), request.comment_id) for request in requests if request.state == "pending"]
        return bool(memory.state.manifest.owed) or any(key not in posted for key in owed)


def missed_changes(scene: Scene) -> list[str]:
    """Changes before the cursor that memory does not hold: there must be none."""
    with open_memory(scene) as memory:
        if memory.state.manifest.cursor is None:
            return []
        issues = changed_before(scene, memory.state.manifest.cursor)
        stored = memory.records(issue.number for issue in issues)
        waiting = set(memory.state.manifest.pending)
        return [
            f"(4) the cursor {memory.state.manifest.cursor} has passed {difference}"
            for issue in issues
            if issue.number not in waiting
            for difference in differences(stored.get(issue.number), issue)
        ]


def changed_before(scene: Scene, cursor: datetime) -> list[Issue]:
    """The issues whose last change lies before what the next run reads again."""
    issues = [issue for issue in scene.fake.repo.issues.values() if issue.pull is None]
    return [issue for issue in issues if parse_time(issue.updated_at) < cursor - OVERLAP]
