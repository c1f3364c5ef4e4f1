"""What must hold after every run and at the end of every history, whatever went wrong in it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from datetime import timedelta

from bot.comment.marker import read_seal
from bot.domain.thread import Thread, Tombstone
from bot.domain.thread_json import parse_time
from bot.files import bytes_hash
from bot.memory import manifest as manifests
from bot.memory.manifest import MANIFEST_PATH
from bot.memory.memory import Memory
from bot.memory.shards import DIGESTS, read_lines
from bot.reading.digest import digest
from bot.recall.library import similar_query
from tests.simulator.bare_repository import NONE, Bare, Move
from tests.simulator.displays import stale_displays
from tests.simulator.memories import differences, missed_changes, open_memory, posted_comments
from tests.simulator.observed_github import OURS
from tests.simulator.scene import REPOSITORY, RunResult, Scene

FRESH = timedelta(hours=24)


def after_run(scene: Scene, result: RunResult) -> list[str]:
    """The invariants broken after this run, whether it crashed or not."""
    return [*missed_changes(scene), *duplicate_comments(scene)]


def duplicate_comments(scene: Scene) -> Iterator[str]:
    """(1) At most one comment of ours on an issue, and at most one reply to each request."""
    for (number, reply), count in Counter(posted_comments(scene)).items():
        if count > 1:
            yield f"(1) {count} comments of ours on #{number} for {reply or 'the issue'}"


def forced_moves(bare: Bare, squash_after: int) -> Iterator[str]:
    """(3) Only the squash drops history of the branch; it keeps the tree and comes when it is due."""
    for move in bare.moves():
        if NONE in (move.old, move.new) or bare.is_ancestor(move.old, move.new):
            continue
        if not _is_squash(bare, move, squash_after):
            yield f"(3) the branch was forced from {move.old[:8]} to {move.new[:8]}"


def _is_squash(bare: Bare, move: Move, squash_after: int) -> bool:
    """Whether it leads to a commit without parents that keeps every record, at the limit of commits."""
    commit_count = 0
    commits = [move.old]
    while commits:
        commit_count, commits = commit_count + 1, bare.parents(commits[0])
    old, new = (bare.files(bare.tree_of(commit)) for commit in move)
    keeps_records = all(path in new for path in old if path.startswith("records/"))
    return not bare.parents(move.new) and commit_count >= squash_after and keeps_records


def after_history(scene: Scene, reported_gone: set[int]) -> list[str]:
    """The invariants broken once everything has settled. ``reported_gone``: issues whose removal an event reported."""
    faults = [f"(contract) {violation}"[:600] for violation in scene.fake.violations]
    with open_memory(scene) as memory:
        faults += _records(scene, memory, reported_gone)
        faults += _files(memory)
        faults += _index(memory)
        faults += _answers(scene, memory)
        faults += _comments_shown(memory)
        faults += [f"(2) a note: {note}" for note in memory.notes]
    faults += stale_displays(scene, reported_gone)
    return faults


def _records(scene: Scene, memory: Memory, reported_gone: set[int]) -> Iterator[str]:
    """(2) Memory holds the latest state of every issue."""
    stored = {record.id: record for record in memory.state.every_record()}
    for issue in scene.fake.repo.issues.values():
        if issue.pull is None:
            yield from (f"(2) {difference}" for difference in differences(stored.get(issue.number), issue))
    for number in reported_gone:
        if not isinstance(stored.get(number), Tombstone):
            yield f"(2) #{number} is gone, and no tombstone"
    threads = sum(isinstance(record, Thread) for record in stored.values())
    manifest = memory.state.manifest
    if (manifest.threads, manifest.tombstones) != (threads, len(stored) - threads):
        yield f"(2) the manifest counts {manifest.threads} threads and {manifest.tombstones} tombstones"


def _files(memory: Memory) -> Iterator[str]:
    """(2) The digests match the records, and the manifest matches the index files."""
    snapshot = memory.state.base.snapshot
    digests: dict[object, object] = {}
    for data in snapshot.read(snapshot.paths("digests")).values():
        digests |= read_lines(data)[0]
    records = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    expected = {record.id: json.loads(DIGESTS.line(digest(record, repo=REPOSITORY)) or "null") for record in records}
    for key in digests.keys() | expected.keys():
        if digests.get(key) != expected.get(key):
            yield f"(2) the digest of #{key} is {digests.get(key)!r:.200} instead of {expected.get(key)!r:.200}"
    files = {path[6:]: bytes_hash(data) for path, data in snapshot.read(snapshot.paths("index")).items()}
    if files != memory.state.manifest.index:
        yield "(2) the index files are not those of the manifest"
    data = snapshot.read([MANIFEST_PATH]).get(MANIFEST_PATH, b"")
    if data and manifests.encode_manifest(manifests.decode_manifest(data)) != data:
        yield "(2) the manifest is not canonical"


def _index(memory: Memory) -> Iterator[str]:
    """(2) The index has the same entries and results as one rebuilt from the records."""
    records = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    keys = [record.id for record in records]
    queries = [similar_query(record) for record in records[-3:]]
    entries = dict(memory.entries(keys))
    hits = [[hit.entry.id for hit in memory.search(query)] for query in queries]
    memory.rebuild_index()
    rebuilt = dict(memory.entries(keys))
    if entries != rebuilt:
        wrong = [key for key in keys if entries.get(key) != rebuilt.get(key)]
        yield f"(2) the index knows otherwise of {wrong}: {[(entries.get(k), rebuilt.get(k)) for k in wrong[:1]]}"
    rebuilt_hits = [[hit.entry.id for hit in memory.search(query)] for query in queries]
    if [set(ids) for ids in hits] != [set(ids) for ids in rebuilt_hits]:
        yield f"(2) the index finds {hits} instead of {rebuilt_hits}"


def _comments_shown(memory: Memory) -> Iterator[str]:
    """(2) Each thread knows the comments that show it, and no comment still waits to be updated."""
    thread_comments = list(memory.state.every_thread_comments())
    shows = {
        (key, comment.comment_key) for each in thread_comments for comment in each.comments for key in comment.shows
    }
    listed = {(each.id, comment_key) for each in thread_comments for comment_key in each.shown_in}
    if shows != listed:
        yield f"(2) comments show {sorted(shows - listed, key=str)} beside what is listed, {listed - shows} is listed"
    if memory.state.manifest.owed:
        yield f"(8) comments are not worked out again: {memory.state.manifest.owed[:2]}"


def _answers(scene: Scene, memory: Memory) -> Iterator[str]:
    """The manifest lists the outbox entries, every recorded comment exists, and no answer was forgotten."""
    answers = {answer.id: answer for answer in memory.state.every_answer()}
    pending = {key for key, answer in answers.items() if answer.state == "pending"}
    if pending != set(memory.state.manifest.pending):
        yield f"(2) promised are {sorted(pending)}, the manifest has {sorted(memory.state.manifest.pending)}"
    now = parse_time(scene.fake.clock.now)
    for number, issue in scene.fake.repo.issues.items():
        answer = answers.get(number)
        ours = [c for c in issue.comments if _is_sticky(c.body, c.author.login if c.author else None)]
        if answer and answer.state == "said" and not ours and (number, 0) not in scene.fake.created:
            yield f"(2) on #{number} something is said to stand that never did: {answer}"
        seal = read_seal(ours[0].body) if ours else None
        if answer and answer.state == "said" and seal and seal.untouched and seal.content != answer.text_hash:
            yield f"(2) the comment on #{number} does not say what memory says it does"
        is_owed = issue.pull is None and now - parse_time(issue.created_at) < FRESH
        if is_owed and answer is None and memory.state.manifest.cursor is not None:
            yield f"(8) #{number} is fresh and nobody has looked for an answer"
        if answer and answer.state == "pending" and not answer.reason and not ours:
            yield f"(8) the promise on #{number} was not kept: {answer}"


def _is_sticky(body: str, login: str | None) -> bool:
    return OURS.is_answer({"body": body, "user": {"login": login}})


def leaked_secrets(scene: Scene) -> Iterator[str]:
    """(6) No object of the repository holds a token."""
    tokens = scene.secrets()
    for data in scene.bare.everything():
        if any(secret in data for secret in tokens):
            yield "(6) a token is in the repository"
