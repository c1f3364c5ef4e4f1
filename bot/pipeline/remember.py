"""Remembers a forgotten thread again, as GitHub has it now; what was known about it before stays forgotten."""

from __future__ import annotations

from dataclasses import replace

from bot.domain.changes import FORGET, Changes
from bot.domain.thread import Thread, Tombstone, is_forgotten
from bot.errors import UserError
from bot.github.errors import Gone
from bot.github.updates import TOMBSTONE_OFFSET
from bot.pipeline.discussions import read_current
from bot.pipeline.tools import Tools


def remember_by_hand(number: int, run: Tools) -> None:
    """Raises UserError for a thread that is not forgotten, or that GitHub does not have."""
    memory = run.memory.open([number])
    record = memory.whole_records([number]).get(number)
    if not (isinstance(record, Tombstone) and is_forgotten(record)):
        raise UserError(f"issue {number} is not forgotten; give the number of an issue that is")
    thread = read_now(number, run, "remembered")
    at = max(run.now, record.at + TOMBSTONE_OFFSET)  # later than what forgot it, wherever the two versions meet
    requests = memory.requests([number]).get(number, ())
    unfinished = (stored for stored in requests if stored.name == FORGET and stored.state == "pending")
    changes = Changes(
        records=(replace(thread, updated_at=max(thread.revised_at, at)),),
        requests=tuple(replace(stored, state="done", trying_since=None) for stored in unfinished),
        remembered=((number, at),),
    )
    memory.stage(changes)
    memory.commit(f"Remember {number} again")
    run.note(f"Issue {number} {'would be' if run.is_dry else 'is'} remembered again, as GitHub has it now.")


def read_now(number: int, run: Tools, purpose: str) -> Thread:
    """The thread as GitHub has it. Raises UserError, that it cannot be ``purpose``, if GitHub has none; ForgeError."""
    try:
        return read_current(number, run)
    except Gone as error:
        cause = f"issue {number} cannot be {purpose}: GitHub does not have it"
        raise UserError(f"{cause}; give the number of an issue of this repository") from error
