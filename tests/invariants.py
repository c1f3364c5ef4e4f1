"""What must hold for memory and our comments however a run ended: at a fault, at a kill, or in a simulated history."""

from __future__ import annotations

import json
import subprocess
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from bot.domain.post import PostKey
from bot.domain.thread import Record, Thread
from bot.domain.thread_json import archive_fields, parse_time, thread_from_archive
from bot.files import bytes_hash
from bot.github.threads import OwnCommentRule
from bot.github.updates import OVERLAP
from bot.memory import manifest as manifests
from bot.memory.manifest import MANIFEST_PATH
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, read_lines
from bot.reading.digest import digest
from bot.recall.library import similar_query
from tests.fakes.archive import export_thread
from tests.fakes.state import BOT_LOGIN, Comment, Issue, Repository

OURS = OwnCommentRule(BOT_LOGIN, "<!-- precedent:v1 id=action -->")
REFERENCES = ("cross-referenced", "referenced")


# -- our posts -------------------------------------------------------------------------------------------------------


def key_of(number: int, body: str, login: str | None = BOT_LOGIN) -> PostKey | None:
    """Which post of ours on this issue a comment is; None if it is not ours."""
    slot = OURS.slot({"body": body, "user": {"login": login}})
    return None if slot is None else PostKey(number, slot)


def key_of_comment(comment: Comment) -> PostKey | None:
    return key_of(comment.issue.number, comment.body, comment.author.login if comment.author else None)


def posted_keys(repo: Repository) -> list[PostKey]:
    """The key of each post of ours that exists now."""
    keys = (key_of_comment(comment) for issue in repo.issues.values() for comment in issue.comments)
    return [key for key in keys if key]


def duplicate_comments(repo: Repository) -> Iterator[str]:
    """(1) At most one comment of ours on an issue, one reply to each request, and one notice of each fix."""
    for (number, slot), count in Counter(posted_keys(repo)).items():
        if count > 1:
            yield f"(1) {count} comments of ours on #{number} for {slot or 'the issue'}"


# -- records ---------------------------------------------------------------------------------------------------------


def expected_thread(issue: Issue) -> Thread:
    """The thread that a full read of the fake gives now, without our own comments."""
    exported = export_thread(issue)
    ours = {comment.id for comment in issue.comments if key_of_comment(comment)}
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
    return archive_fields(replace(thread, updated_at=None, events=events, comments=comments))


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


def wrong_records(repo: Repository, memory: Memory) -> Iterator[str]:
    """(2) Memory holds the latest state of every issue."""
    issues = [issue for issue in repo.issues.values() if issue.pull is None]
    stored = memory.records(issue.number for issue in issues)
    for issue in issues:
        yield from (f"(2) {difference}" for difference in differences(stored.get(issue.number), issue))


def superfluous_records(repo: Repository, memory: Memory) -> Iterator[str]:
    """(2) With the default settings, and where nothing was removed, every remembered number is an issue."""
    issues = {issue.number for issue in repo.issues.values() if issue.pull is None}
    for record in memory.state.every_record():
        if isinstance(record, Thread) and isinstance(record.id, int) and record.id not in issues:
            yield f"(2) the record of {record.id} is too much"


def missed_changes(repo: Repository, memory: Memory) -> Iterator[str]:
    """(4) Memory holds every change from before the cursor, apart from issues whose answer is pending."""
    cursor = memory.state.manifest.cursor
    if cursor is None:
        return
    issues = [issue for issue in repo.issues.values() if issue.pull is None]
    changed = [issue for issue in issues if parse_time(issue.updated_at) < cursor - OVERLAP]
    stored = memory.records(issue.number for issue in changed)
    for issue in changed:
        if issue.number not in memory.state.manifest.pending:
            for difference in differences(stored.get(issue.number), issue):
                yield f"(4) the cursor {cursor} has passed {difference}"


# -- the branch ------------------------------------------------------------------------------------------------------


def broken_objects(bare: Path) -> list[str]:
    """What git finds wrong with a repository."""
    command = ["git", "-C", str(bare), "fsck", "--full", "--strict", "--no-dangling"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    return [f"git fsck: {line}" for line in (checked.stdout + checked.stderr).splitlines() if checked.returncode]


def memory_faults(memory: Memory) -> Iterator[str]:
    """(2) Where the records, manifest, digests, index and the lists of what posts show disagree; and all notes."""
    records = list(memory.state.every_record())
    threads = [record for record in records if isinstance(record, Thread)]
    if memory.state.manifest.threads != len(threads):
        yield f"(2) the manifest counts {memory.state.manifest.threads} threads"
    yield from _wrong_files(memory, threads)
    yield from _wrong_index(memory, threads)
    yield from _wrong_lists(memory)
    yield from (f"(2) a note: {note}" for note in memory.notes)


def _wrong_files(memory: Memory, threads: list[Thread]) -> Iterator[str]:
    """The digests match the records, and the manifest matches the index files."""
    snapshot = memory.state.base.snapshot
    digests: dict[object, object] = {}
    for data in snapshot.read(snapshot.paths(DIGESTS.folder)).values():
        digests |= read_lines(data)[0]
    repo = memory.state.repo
    expected = {thread.id: json.loads(DIGESTS.line(digest(thread, repo=repo)) or "null") for thread in threads}
    for key in digests.keys() | expected.keys():
        if digests.get(key) != expected.get(key):
            yield f"(2) the digest of #{key} is {digests.get(key)!r:.200} instead of {expected.get(key)!r:.200}"
    files = {path[6:]: bytes_hash(data) for path, data in snapshot.read(snapshot.paths("index")).items()}
    if files != memory.state.manifest.index:
        yield "(2) the index files are not those of the manifest"
    data = snapshot.read([MANIFEST_PATH]).get(MANIFEST_PATH, b"")
    if data and manifests.encode_manifest(manifests.decode_manifest(data)) != data:
        yield "(2) the manifest is not canonical"


def _wrong_index(memory: Memory, threads: list[Thread]) -> Iterator[str]:
    """The index has the same entries and results as one rebuilt from the records."""
    keys = [thread.id for thread in threads]
    queries = [similar_query(thread) for thread in threads[-3:]]
    size, entries = memory.index.ask(len, 0), dict(memory.entries(keys))
    hits = [{hit.entry.id for hit in memory.search(query)} for query in queries]
    memory.rebuild_index()
    rebuilt = dict(memory.entries(keys))
    if size != len(keys):
        yield f"(2) the index has {size} entries for {len(keys)} threads"
    if entries != rebuilt:
        wrong = [key for key in keys if entries.get(key) != rebuilt.get(key)]
        yield f"(2) the index knows otherwise of {wrong}: {[(entries.get(k), rebuilt.get(k)) for k in wrong[:1]]}"
    rebuilt_hits = [{hit.entry.id for hit in memory.search(query)} for query in queries]
    if hits != rebuilt_hits:
        yield f"(2) the index finds {hits} instead of {rebuilt_hits}"


def _wrong_lists(memory: Memory) -> Iterator[str]:
    """Each thread knows the posts that show it, and the manifest lists the promised comments."""
    threads = memory.state.every_thread_posts()
    shows = {(key, post.key) for thread in threads for post in thread.posts for key in post.shows}
    listed = {(thread.id, key) for thread in threads for key in thread.shown_by}
    if shows != listed:
        yield f"(2) posts show {sorted(shows - listed, key=str)} beside what is listed, {listed - shows} is listed"
    pending = {post.id for post in memory.state.every_comment() if post.state == "pending"}
    if pending != set(memory.state.manifest.pending):
        yield f"(2) promised are {sorted(pending)}, the manifest has {sorted(memory.state.manifest.pending)}"
