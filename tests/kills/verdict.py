"""What must hold after a kill and after the runs that follow: comments, memory, and the branch."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from bot.comment.marker import read_seal
from bot.domain.thread import Thread, ThreadId, Tombstone
from bot.domain.thread_json import archive_fields, thread_from_archive
from bot.errors import StoreError
from bot.memory.branch_store import BranchStore
from bot.memory.manifest import INDEX_FOLDER
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, edit_shards
from bot.memory.stored_index import damaged_files
from bot.pipeline.run_context import POSTING_WINDOW
from bot.reading.digest import digest
from tests.kills.repository import Repository
from tests.marker import find_marker


def duplicate_comments(repository: Repository, reply_to: int | None) -> list[str]:
    """Faults that must never occur, not even for a moment: two comments on an issue, or two replies to a comment."""
    faults = []
    for number, texts in repository.comments().items():
        comments = sum(find_marker(text) for text in texts)
        replies = _replies(texts, reply_to)
        if comments > 1 or replies > 1 or comments + replies < len(texts) or number != repository.number:
            faults.append(f"on issue {number} stand {comments} comments and {replies} replies of {len(texts)}")
    return faults


def read_answer(repository: Repository, reply_to: int | None) -> tuple[str, int]:
    """The content of our comment by its seal, and the number of replies."""
    texts = repository.comments().get(repository.number, [])
    seals = [read_seal(text) for text in texts if find_marker(text)]
    content = " ".join(f"{seal.content}{'' if seal.untouched else ' broken'}" if seal else "no seal" for seal in seals)
    return content, _replies(texts, reply_to)


def _replies(texts: list[str], reply_to: int | None) -> int:
    return 0 if reply_to is None else sum(find_marker(text, reply_to=reply_to) for text in texts)


def postponement_rule(repository: Repository, reply_to: int | None) -> str:
    """The rule that lets the next run leave the comment or the reply to a later run; empty if there is none.

    ``POSTING_WINDOW``: an outbox entry younger than two minutes may belong to a run that is about to post.
    """
    try:
        memory = _open_memory(repository)
    except StoreError as error:
        return f"unreadable: {error}"
    now = datetime.fromisoformat(repository.github.clock.now)
    pending_since = [
        entry.trying_since for entry in memory.state.answers([repository.number]).values() if entry.state == "pending"
    ]
    requests = memory.requests([repository.number]).get(repository.number, ())
    pending_since += [
        entry.trying_since for entry in requests if entry.state == "pending" and entry.comment_id == reply_to
    ]
    memory.close()
    return "SPEAKING" if any(since and since > now - POSTING_WINDOW for since in pending_since) else ""


def branch_faults(repository: Repository) -> list[str]:
    """The faults of the branch and of the memory on it."""
    command = ["git", "-C", str(repository.bare), "fsck", "--full", "--strict", "--no-dangling"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    faults = [f"git fsck: {line}" for line in (checked.stdout + checked.stderr).splitlines() if checked.returncode]
    if not _has_branch(repository.bare):
        return faults
    try:
        memory = _open_memory(repository)
        try:
            faults += _memory_faults(memory)
        finally:
            memory.close()
    except (StoreError, ValueError) as error:
        faults.append(f"the branch cannot be read: {type(error).__name__}: {error}")
    return faults


def memory_differences(repository: Repository) -> list[str]:
    """Where memory and the repository differ."""
    memory = _open_memory(repository)
    try:
        stored = {
            r.id: _comparable(r) for r in memory.state.every_record() if isinstance(r, Thread) and isinstance(r.id, int)
        }
    finally:
        memory.close()
    own = {comment.id for comment in repository.github.comments_by("github-actions[bot]")}
    expected = {}
    for thread in repository.github.export_archive():
        if thread.get("kind") == "pull":
            continue  # the default settings leave pull requests out
        comments = [comment for comment in thread["comments"] if comment["id"] not in own]
        expected[thread["id"]] = _comparable(thread_from_archive(thread | {"comments": comments}))
    faults = [f"the record of issue {key} is missing or too much" for key in sorted(expected.keys() ^ stored.keys())]
    for key in sorted(expected.keys() & stored.keys()):
        differing = [name for name in expected[key] | stored[key] if expected[key].get(name) != stored[key].get(name)]
        faults += [f"the record of issue {key} differs in {', '.join(differing)}"] if differing else []
    return faults


def _comparable(thread: Thread) -> dict[str, object]:
    """A thread without its last update, which our own comment changes, and without what changes silently."""
    comments = tuple(replace(comment, reactions=()) for comment in thread.comments)
    return archive_fields(replace(thread, updated_at=None, events=(), reactions=(), comments=comments))


def _open_memory(repository: Repository) -> Memory:
    return Memory(BranchStore(str(repository.bare), "precedent", None), repo=repository.name).open()


def _has_branch(bare: Path) -> bool:
    command = ["git", "-C", str(bare), "rev-parse", "--verify", "--quiet", "refs/heads/precedent"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _memory_faults(memory: Memory) -> Iterator[str]:
    """Where the records, manifest, digests and index of one state disagree."""
    manifest, snapshot = memory.state.manifest, memory.state.base.snapshot
    records = list(memory.state.every_record())
    threads: dict[ThreadId, Thread] = {record.id: record for record in records if isinstance(record, Thread)}
    tombstones = sum(isinstance(record, Tombstone) for record in records)
    if (manifest.threads, manifest.tombstones) != (len(threads), tombstones):
        counted = f"{manifest.threads} threads and {manifest.tombstones} tombstones"
        yield f"the manifest counts {counted}, there are {len(threads)} and {tombstones}"
    yield from (f"index: {name}" for name in damaged_files(manifest.index, snapshot.checkout(INDEX_FOLDER)))
    entries = memory.entries(threads)
    if entries.keys() != threads.keys() or memory.index.ask(len, 0) != len(threads):
        yield f"the index knows {len(entries)} of {len(threads)} threads"
    lines = [(key, DIGESTS.line(digest(thread, repo=memory.state.repo))) for key, thread in threads.items()]
    expected = edit_shards({}, lines, DIGESTS.path)
    shards = snapshot.read(snapshot.paths(DIGESTS.folder))
    yield from (f"{path} is not the digest of its records" for path in expected if shards.get(path) != expected[path])
    yield from (f"{path} is of no record" for path in shards.keys() - expected.keys())
    yield from (f"a note: {note}" for note in memory.notes)
