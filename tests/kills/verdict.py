"""What is there after a kill and after the runs that follow, and what of it must not be."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from bot.comment.marker import read_seal
from bot.domain.post import PostKey, reply_slot
from bot.errors import StoreError
from bot.pipeline.tools import POSTING_WINDOW
from tests.acceptance.bare_repository import Bare
from tests.acceptance.stage import BOT
from tests.invariants import (
    broken_objects,
    duplicate_comments,
    key_of_comment,
    memory_faults,
    superfluous_records,
    wrong_records,
)
from tests.kills.kill_stage import NUMBER, KillStage


def misplaced_comments(stage: KillStage, reply_to: int | None) -> list[str]:
    """Faults that must never occur, not even for a moment: a second comment or reply, or one that was not due."""
    with stage.github.world.lock:
        due = {PostKey(NUMBER), *_reply_keys(reply_to)}
        keys = [key_of_comment(comment) for comment in stage.github.comments_by(BOT)]
        return [
            *duplicate_comments(stage.github.repo),
            *(f"there is a comment of ours for {key}" for key in keys if key not in due),
        ]


def _reply_keys(reply_to: int | None) -> set[PostKey]:
    return set() if reply_to is None else {PostKey(NUMBER, reply_slot(reply_to))}


def read_answer(stage: KillStage, reply_to: int | None) -> tuple[str, int]:
    """The content of our comment by its seal, and the number of replies."""
    comments = stage.github.comments_by(BOT, NUMBER)
    seals = [read_seal(comment.body) for comment in comments if key_of_comment(comment) == PostKey(NUMBER)]
    keys = _reply_keys(reply_to)
    content = " ".join(f"{seal.content}{'' if seal.untouched else ' broken'}" if seal else "no seal" for seal in seals)
    return content, sum(key_of_comment(comment) in keys for comment in comments)


def postponement_rule(stage: KillStage, reply_to: int | None) -> str:
    """The rule that lets the next run leave the comment or the reply to a later run; empty if there is none.

    ``POSTING_WINDOW``: a promise younger than two minutes may belong to a run that is about to post.
    """
    try:
        memory = stage.memory()
    except StoreError as error:
        return f"unreadable: {error}"
    now = datetime.fromisoformat(stage.github.clock.now)
    entries = [*memory.state.comments([NUMBER]).values()]
    entries += [entry for entry in memory.requests([NUMBER]).get(NUMBER, ()) if entry.comment_id == reply_to]
    is_young = [
        entry.state == "pending" and entry.trying_since > now - POSTING_WINDOW
        for entry in entries
        if entry.trying_since
    ]
    return "SPEAKING" if any(is_young) else ""


def branch_faults(stage: KillStage) -> list[str]:
    """The faults of the branch and of the memory on it."""
    faults = broken_objects(stage.bare)
    if Bare(stage.bare).tip():
        try:
            faults += memory_faults(stage.memory())
        except (StoreError, ValueError) as error:
            faults.append(f"the branch cannot be read: {type(error).__name__}: {error}")
    return faults


def all_faults(stage: KillStage, reply_to: int | None) -> Iterator[str]:
    yield from misplaced_comments(stage, reply_to)
    yield from branch_faults(stage)
    yield from wrong_records(stage.github.repo, stage.memory())
    yield from superfluous_records(stage.github.repo, stage.memory())
