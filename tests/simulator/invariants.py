"""What must hold after every run, and what must hold at the end of every history, whatever went wrong in it."""

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
from tests.simulator.bare import NONE, Bare, Move
from tests.simulator.displays import stale
from tests.simulator.eye import OURS
from tests.simulator.memories import differences, open_memory, standing, undone
from tests.simulator.scene import REPOSITORY, Ran, Scene

FRESH = timedelta(hours=24)


def after_run(scene: Scene, ran: Ran) -> list[str]:
    """What is broken after this run, crashed or not."""
    return [*undone(scene), *two_comments(scene)]


def two_comments(scene: Scene) -> Iterator[str]:
    """(1) At most one comment of ours on an issue, at most one reply to each request."""
    for (number, reply), count in Counter(standing(scene)).items():
        if count > 1:
            yield f"(1) {count} comments of ours on #{number} for {reply or 'the issue'}"


def forced(bare: Bare, squash_after: int) -> Iterator[str]:
    """(3) No move of the branch gives up history but the squash, which keeps the tree and comes when it is due."""
    for move in bare.moves():
        if NONE in (move.old, move.new) or bare.is_ancestor(move.old, move.new):
            continue
        if not _is_squash(bare, move, squash_after):
            yield f"(3) the branch was forced from {move.old[:8]} to {move.new[:8]}"


def _is_squash(bare: Bare, move: Move, squash_after: int) -> bool:
    """A commit without a past, made when the branch had as many commits as it may have, that keeps every record."""
    grown = 0
    commits = [move.old]
    while commits:
        grown, commits = grown + 1, bare.parents(commits[0])
    old, new = (bare.files(bare.tree_of(commit)) for commit in move)
    kept = all(path in new for path in old if path.startswith("records/"))
    return not bare.parents(move.new) and grown >= squash_after and kept


def at_the_end(scene: Scene, told_gone: set[int]) -> list[str]:
    """What is broken once everything has settled. ``told_gone``: issues whose going memory was told of."""
    found = [f"(contract) {violation}"[:600] for violation in scene.fake.violations]
    with open_memory(scene) as memory:
        found += _records(scene, memory, told_gone)
        found += _files(memory)
        found += _index(memory)
        found += _answers(scene, memory)
        found += _comments_shown(memory)
        found += [f"(2) a note: {note}" for note in memory.notes]
    found += stale(scene, told_gone)
    return found


def _records(scene: Scene, memory: Memory, told_gone: set[int]) -> Iterator[str]:
    """(2) Memory is the fold of the latest states."""
    held = {record.id: record for record in memory.state.every_record()}
    for issue in scene.fake.repo.issues.values():
        if issue.pull is None:
            yield from (f"(2) {told}" for told in differences(held.get(issue.number), issue))
    for number in told_gone:
        if not isinstance(held.get(number), Tombstone):
            yield f"(2) #{number} is gone, and no tombstone"
    threads = sum(isinstance(record, Thread) for record in held.values())
    manifest = memory.state.manifest
    if (manifest.threads, manifest.tombstones) != (threads, len(held) - threads):
        yield f"(2) the manifest counts {manifest.threads} threads and {manifest.tombstones} tombstones"


def _files(memory: Memory) -> Iterator[str]:
    """(2) Digests are those of the records, the manifest names the index as it is."""
    snapshot = memory.state.base.snapshot
    digests: dict[object, object] = {}
    for data in snapshot.read(snapshot.paths("digests")).values():
        digests |= read_lines(data)[0]
    records = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    wanted = {record.id: json.loads(DIGESTS.line(digest(record, repo=REPOSITORY)) or "null") for record in records}
    for key in digests.keys() | wanted.keys():
        if digests.get(key) != wanted.get(key):
            yield f"(2) the digest of #{key} is {digests.get(key)!r:.200} instead of {wanted.get(key)!r:.200}"
    files = {path[6:]: bytes_hash(data) for path, data in snapshot.read(snapshot.paths("index")).items()}
    if files != memory.state.manifest.index:
        yield "(2) the index files are not those of the manifest"
    data = snapshot.read([MANIFEST_PATH]).get(MANIFEST_PATH, b"")
    if data and manifests.encode_manifest(manifests.decode_manifest(data)) != data:
        yield "(2) the manifest is not canonical"


def _index(memory: Memory) -> Iterator[str]:
    """(2) The index holds what one made anew from the records does, and finds the same."""
    records = [record for record in memory.state.every_record() if isinstance(record, Thread)]
    keys = [record.id for record in records]
    asked = [similar_query(record) for record in records[-3:]]
    entries = dict(memory.entries(keys))
    hits = [[hit.entry.id for hit in memory.search(query)] for query in asked]
    memory.rebuild_index()
    anew = dict(memory.entries(keys))
    if entries != anew:
        wrong = [key for key in keys if entries.get(key) != anew.get(key)]
        yield f"(2) the index knows otherwise of {wrong}: {[(entries.get(k), anew.get(k)) for k in wrong[:1]]}"
    again = [[hit.entry.id for hit in memory.search(query)] for query in asked]
    if [set(ids) for ids in hits] != [set(ids) for ids in again]:
        yield f"(2) the index finds {hits} instead of {again}"


def _comments_shown(memory: Memory) -> Iterator[str]:
    """(2) Each thread knows the comments that show it, and nothing is owed to a comment any more."""
    linked = list(memory.state.every_thread_comments())
    shows = {(key, one.comment_key) for each in linked for one in each.comments for key in one.shows}
    listed = {(each.id, comment_key) for each in linked for comment_key in each.shown_in}
    if shows != listed:
        yield f"(2) comments show {sorted(shows - listed, key=str)} beside what is listed, {listed - shows} is listed"
    if memory.state.manifest.owed:
        yield f"(8) comments are not worked out again: {memory.state.manifest.owed[:2]}"


def _answers(scene: Scene, memory: Memory) -> Iterator[str]:
    """Promises are known in the manifest; what is said to stand does, and nothing that is owed was forgotten."""
    said = {one.id: one for one in memory.state.every_answer()}
    promised = {key for key, one in said.items() if one.state == "pending"}
    if promised != set(memory.state.manifest.pending):
        yield f"(2) promised are {sorted(promised)}, the manifest has {sorted(memory.state.manifest.pending)}"
    now = parse_time(scene.fake.clock.now)
    for number, issue in scene.fake.repo.issues.items():
        one = said.get(number)
        ours = [c for c in issue.comments if _is_sticky(c.body, c.author.login if c.author else None)]
        if one and one.state == "said" and not ours and (number, 0) not in scene.fake.created:
            yield f"(2) on #{number} something is said to stand that never did: {one}"
        seal = read_seal(ours[0].body) if ours else None
        if one and one.state == "said" and seal and seal.untouched and seal.content != one.text_hash:
            yield f"(2) the comment on #{number} does not say what memory says it does"
        is_owed = issue.pull is None and now - parse_time(issue.created_at) < FRESH
        if is_owed and one is None and memory.state.manifest.cursor is not None:
            yield f"(8) #{number} is fresh and nobody has looked for an answer"
        if one and one.state == "pending" and not one.reason and not ours:
            yield f"(8) the promise on #{number} was not kept: {one}"


def _is_sticky(body: str, login: str | None) -> bool:
    return OURS.is_answer({"body": body, "user": {"login": login}})


def secrets(scene: Scene) -> Iterator[str]:
    """(6) No token in any object of the repository."""
    wanted = scene.secrets()
    for data in scene.bare.everything():
        if any(secret in data for secret in wanted):
            yield "(6) a token is in the repository"
