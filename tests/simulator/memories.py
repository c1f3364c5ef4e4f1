"""Memory as the bare repository holds it at this moment, for a look from outside."""

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
from tests.simulator.eye import OURS, Key
from tests.simulator.scene import REPOSITORY, Scene

REFERENCES = ("cross-referenced", "referenced")


class Looking:
    """A store that can only be read."""

    def __init__(self, scene: Scene) -> None:
        self.snapshot = scene.bare.snapshot(scene.ground.temporary)

    def open(self, want: Iterable[str] = ()) -> Snapshot:
        return self.snapshot

    def write(self, base: Snapshot, edits: Edits, message: str, *, squash: bool = False) -> Snapshot:
        raise StoreError("nothing is written here")

    def close(self) -> None:
        """There is nothing to give back."""


@contextmanager
def open_memory(scene: Scene) -> Iterator[Memory]:
    """The memory of the branch's tip."""
    memory = Memory(Looking(scene), repo=REPOSITORY)
    try:
        yield memory.open()
    finally:
        memory.close()


def thread_on(issue: Issue) -> Thread:
    """The thread that a full reading of the fake gives now, without what is ours."""
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
    kept = {"comments": [c for c in exported["comments"] if c["id"] not in ours], "events": events}
    return thread_from_archive(
        {name: value for name, value in exported.items() if name not in ("xrefs", "duplicate_of")} | kept
    )


def _is_ours(body: str, login: str | None) -> bool:
    comment = {"body": body, "user": {"login": login}}
    return OURS.is_answer(comment) or OURS.reply_target(comment) is not None


def comparable(thread: Thread) -> dict[str, object]:
    """A thread without what GitHub tells nobody about, and what is only read when an issue ends.

    Reactions and references from elsewhere move nothing, and our own comment moves the time of the last update. The
    events of an issue are read once it was closed; what belongs to an ending that was undone since may come later.
    """
    at = thread.closed_at
    kept = tuple(e for e in thread.events if at is not None and e.name not in REFERENCES and e.at <= at)
    told = (replace(event, source=None, source_kind=None) for event in kept)
    events = tuple(sorted(told, key=lambda event: (event.at, event.name, event.actor or "")))
    comments = tuple(replace(comment, reactions={}) for comment in thread.comments)
    return archive_fields(replace(thread, updated_at=None, events=events, comments=comments, reactions={}))


def differences(record: Record | None, issue: Issue) -> list[str]:
    """Each field of the record that is not as it stands on the fake."""
    if not isinstance(record, Thread):
        return [f"#{issue.number} is {'no record' if record is None else 'a tombstone'}"]
    found, wanted = comparable(record), comparable(thread_on(issue))
    names = sorted(found.keys() | wanted.keys())
    return [
        f"#{issue.number}.{name} is {found.get(name)!r:.200} instead of {wanted.get(name)!r:.200}"
        for name in names
        if found.get(name) != wanted.get(name)
    ]


def standing(scene: Scene) -> list[Key]:
    """What each of our comments that stand now is for."""
    found = []
    for issue in scene.fake.repo.issues.values():
        for comment in issue.comments:
            shape = {"body": comment.body, "user": {"login": comment.author.login if comment.author else None}}
            reply = 0 if OURS.is_answer(shape) else OURS.reply_target(shape)
            found += [] if reply is None else [(issue.number, reply)]
    return found


def waits(scene: Scene, *, fully: bool) -> bool:
    """Whether memory says that somebody still waits, or a comment to be worked out again. A promise that was kept waits
    for nothing but to be seen so, which only counts ``fully``."""
    kept = set() if fully else set(standing(scene))
    with open_memory(scene) as memory:
        wishes = memory.state.every_request() if memory.state.manifest.threads else ()
        owed = [(int(key), 0) for key in memory.state.manifest.pending]
        owed += [(int(wish.id), wish.comment_id) for wish in wishes if wish.state == "pending"]
        return bool(memory.state.manifest.owed) or any(key not in kept for key in owed)


def undone(scene: Scene) -> list[str]:
    """What the cursor has passed and memory does not hold: there must be nothing."""
    with open_memory(scene) as memory:
        if memory.state.manifest.cursor is None:
            return []
        passed = passed_by(scene, memory.state.manifest.cursor)
        held = memory.records(issue.number for issue in passed)
        waiting = set(memory.state.manifest.pending)
        return [
            f"(4) the cursor {memory.state.manifest.cursor} has passed {told}"
            for issue in passed
            if issue.number not in waiting
            for told in differences(held.get(issue.number), issue)
        ]


def passed_by(scene: Scene, cursor: datetime) -> list[Issue]:
    """The issues that changed before what the next run looks at again."""
    issues = [issue for issue in scene.fake.repo.issues.values() if issue.pull is None]
    return [issue for issue in issues if parse_time(issue.updated_at) < cursor - OVERLAP]
