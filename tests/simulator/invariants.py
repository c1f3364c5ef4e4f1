"""What must hold after every run and at the end of every history, whatever went wrong in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

from bot.comment.marker import read_seal
from bot.domain.post import PostKey, reply_slot
from bot.domain.thread import Tombstone
from bot.domain.thread_json import parse_time
from bot.memory.memory import Memory
from tests.acceptance.bare_repository import NONE, Bare, BranchTipStore, Move
from tests.acceptance.stage import REPOSITORY
from tests.invariants import (
    duplicate_comments,
    key_of_comment,
    memory_faults,
    missed_changes,
    posted_keys,
    wrong_records,
)
from tests.simulator.displays import stale_displays
from tests.simulator.scene import Scene

FRESH = timedelta(hours=24)


@contextmanager
def open_memory(scene: Scene) -> Iterator[Memory]:
    """The memory of the branch's tip."""
    memory = Memory(BranchTipStore(scene.bare), repo=REPOSITORY)
    try:
        yield memory.open()
    finally:
        memory.close()


def after_run(scene: Scene) -> list[str]:
    """The invariants broken after a run, whether it crashed or not."""
    with open_memory(scene) as memory:
        return [*missed_changes(scene.fake.repo, memory), *duplicate_comments(scene.fake.repo)]


def has_pending_work(scene: Scene, *, fully: bool) -> bool:
    """Whether memory still lists an answer to post or a comment to update. A promise whose comment is already
    posted counts only with ``fully``."""
    posted = set() if fully else set(posted_keys(scene.fake.repo))
    with open_memory(scene) as memory:
        requests = memory.state.every_request() if memory.state.manifest.threads else ()
        owed = [PostKey(key) for key in memory.state.manifest.pending]
        owed += [PostKey(each.id, reply_slot(each.comment_id)) for each in requests if each.state == "pending"]
        return bool(memory.state.manifest.renewals_due) or any(key not in posted for key in owed)


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
        faults += wrong_records(scene.fake.repo, memory)
        gone = memory.records(reported_gone)
        faults += [
            f"(2) #{n} is gone, and no tombstone" for n in reported_gone if not isinstance(gone.get(n), Tombstone)
        ]
        faults += _comments(scene, memory)
        if memory.state.manifest.renewals_due:
            faults.append(f"(8) comments are not worked out again: {memory.state.manifest.renewals_due[:2]}")
        faults += memory_faults(memory)
    faults += stale_displays(scene, reported_gone)
    return faults


def _comments(scene: Scene, memory: Memory) -> Iterator[str]:
    """Every comment that memory takes to stand exists, and no issue was overlooked."""
    posts = {post.id: post for post in memory.state.every_comment()}
    now = parse_time(scene.fake.clock.now)
    for number, issue in scene.fake.repo.issues.items():
        post = posts.get(number)
        ours = [comment for comment in issue.comments if key_of_comment(comment) == PostKey(number)]
        if post and post.state == "said" and not ours and PostKey(number) not in scene.fake.created:
            yield f"(2) on #{number} something is said to stand that never did: {post}"
        seal = read_seal(ours[0].body) if ours else None
        if post and post.state == "said" and seal and seal.untouched and seal.content != post.content:
            yield f"(2) the comment on #{number} does not say what memory says it does"
        is_owed = issue.pull is None and now - parse_time(issue.created_at) < FRESH
        if is_owed and post is None and memory.state.manifest.cursor is not None:
            yield f"(8) #{number} is fresh and nobody has looked for an answer"
        if post and post.state == "pending" and not post.reason and not ours:
            yield f"(8) the promise on #{number} was not kept: {post}"


def leaked_secrets(scene: Scene) -> Iterator[str]:
    """(6) No object of the repository holds a token."""
    tokens = scene.secrets()
    for data in scene.branch.everything():
        if any(secret in data for secret in tokens):
            yield "(6) a token is in the repository"
