"""What must hold after a kill, and after the runs that follow it: comments, memory, the branch, files left behind."""

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
from bot.memory.manifest import INDEX
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, edit_shards
from bot.memory.stored_index import damaged_files
from bot.pipeline.run_context import POSTING_WINDOW
from bot.reading.digest import digest
from tests.kills.repository import Repository
from tests.marker import find_marker


def too_many(repository: Repository, asking: int | None) -> list[str]:
    """Faults that may exist at no moment: two comments on an issue, or two replies to a comment."""
    found = []
    for number, texts in repository.comments().items():
        mine = sum(find_marker(text) for text in texts)
        replies = _replies(texts, asking)
        if mine > 1 or replies > 1 or mine + replies < len(texts) or number != repository.number:
            found.append(f"on issue {number} stand {mine} comments and {replies} replies of {len(texts)}")
    return found


def said(repository: Repository, asking: int | None) -> tuple[str, int]:
    """What our comment tells, as its seal says, and how many replies stand."""
    texts = repository.comments().get(repository.number, [])
    sealed = [read_seal(text) for text in texts if find_marker(text)]
    told = " ".join(f"{one.content}{'' if one.untouched else ' broken'}" if one else "no seal" for one in sealed)
    return told, _replies(texts, asking)


def _replies(texts: list[str], asking: int | None) -> int:
    return 0 if asking is None else sum(find_marker(text, reply_to=asking) for text in texts)


def owed_later(repository: Repository, asking: int | None) -> str:
    """The rule by which the next run may leave the comment or the reply to a run after it; empty when it may not.

    ``POSTING_WINDOW``: a promise younger than two minutes may belong to a run that is about to speak.
    """
    try:
        memory = _opened(repository)
    except StoreError as error:
        return f"unreadable: {error}"
    now = datetime.fromisoformat(repository.github.clock.now)
    promised = [
        one.trying_since for one in memory.state.answers([repository.number]).values() if one.state == "pending"
    ]
    wishes = memory.requests([repository.number]).get(repository.number, ())
    promised += [one.trying_since for one in wishes if one.state == "pending" and one.comment_id == asking]
    memory.close()
    return "SPEAKING" if any(since and since > now - POSTING_WINDOW for since in promised) else ""


def branch_faults(repository: Repository) -> list[str]:
    """What is wrong with the branch and with the memory on it."""
    command = ["git", "-C", str(repository.bare), "fsck", "--full", "--strict", "--no-dangling"]
    checked = subprocess.run(command, check=False, capture_output=True, text=True)
    found = [f"git fsck: {line}" for line in (checked.stdout + checked.stderr).splitlines() if checked.returncode]
    if not _has_branch(repository.bare):
        return found
    try:
        memory = _opened(repository)
        try:
            found += _memory_faults(memory)
        finally:
            memory.close()
    except (StoreError, ValueError) as error:
        found.append(f"the branch cannot be read: {type(error).__name__}: {error}")
    return found


def incomplete(repository: Repository) -> list[str]:
    """What memory lacks of the repository, or has otherwise."""
    memory = _opened(repository)
    try:
        held = {
            r.id: _comparable(r) for r in memory.state.every_record() if isinstance(r, Thread) and isinstance(r.id, int)
        }
    finally:
        memory.close()
    own = {comment.id for comment in repository.github.comments_by("github-actions[bot]")}
    wanted = {}
    for thread in repository.github.export_archive():
        if thread.get("kind") == "pull":
            continue  # the default settings do not want them
        comments = [comment for comment in thread["comments"] if comment["id"] not in own]
        wanted[thread["id"]] = _comparable(thread_from_archive(thread | {"comments": comments}))
    found = [f"the record of issue {key} is missing or too much" for key in sorted(wanted.keys() ^ held.keys())]
    for key in sorted(wanted.keys() & held.keys()):
        wrong = [name for name in wanted[key] | held[key] if wanted[key].get(name) != held[key].get(name)]
        found += [f"the record of issue {key} differs in {', '.join(wrong)}"] if wrong else []
    return found


def _comparable(thread: Thread) -> dict[str, object]:
    """A thread without its last update, which our own comment moves, and what changes without an update of it."""
    comments = tuple(replace(comment, reactions=()) for comment in thread.comments)
    return archive_fields(replace(thread, updated_at=None, events=(), reactions=(), comments=comments))


def _opened(repository: Repository) -> Memory:
    return Memory(BranchStore(str(repository.bare), "precedent", None), repo=repository.name).open()


def _has_branch(bare: Path) -> bool:
    command = ["git", "-C", str(bare), "rev-parse", "--verify", "--quiet", "refs/heads/precedent"]
    return subprocess.run(command, check=False, capture_output=True).returncode == 0


def _memory_faults(memory: Memory) -> Iterator[str]:
    """Where records, manifest, digests and index of one state do not agree."""
    manifest, snapshot = memory.state.manifest, memory.state.base.snapshot
    records = list(memory.state.every_record())
    threads: dict[ThreadId, Thread] = {record.id: record for record in records if isinstance(record, Thread)}
    graves = sum(isinstance(record, Tombstone) for record in records)
    if (manifest.threads, manifest.tombstones) != (len(threads), graves):
        counted = f"{manifest.threads} threads and {manifest.tombstones} tombstones"
        yield f"the manifest counts {counted}, there are {len(threads)} and {graves}"
    yield from (f"index: {name}" for name in damaged_files(manifest.index, snapshot.checkout(INDEX)))
    entries = memory.entries(threads)
    if entries.keys() != threads.keys() or memory.index.ask(len, 0) != len(threads):
        yield f"the index knows {len(entries)} of {len(threads)} threads"
    lines = [(key, DIGESTS.line(digest(thread, repo=memory.state.repo))) for key, thread in threads.items()]
    wanted = edit_shards({}, lines, DIGESTS.path)
    shards = snapshot.read(snapshot.paths(DIGESTS.folder))
    yield from (f"{path} is not the digest of its records" for path in wanted if shards.get(path) != wanted[path])
    yield from (f"{path} is of no record" for path in shards.keys() - wanted.keys())
    yield from (f"a note: {note}" for note in memory.notes)
