"""Saying it: the one comment on an issue is written, brought up to date, taken back, or left alone."""

from __future__ import annotations

from dataclasses import dataclass

from bot.answer import Answer, Context, Silent, Speak
from bot.comment.render import withdrawn
from bot.comment.seal import read_seal, seal
from bot.github.errors import CannotComment, ForgeError, Gone, Unreachable
from bot.github.forge import Forge
from bot.github.threads import Own, OwnComment, split_own
from bot.model import Said, Thread, ThreadId

NOTHING = "0" * 16
"""The fingerprint of a comment that says nothing any more."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be said on a thread, before anything is said. ``text`` is the sealed comment, empty for silence."""

    thread: Thread
    answer: Answer
    text: str = ""
    own: OwnComment | None = None
    own_is_known: bool = False
    before: Said | None = None

    @property
    def context(self) -> Context:
        return self.answer.context if isinstance(self.answer, Speak) else Context()

    @property
    def reason(self) -> str:
        return self.answer.reason if isinstance(self.answer, Silent) else "memory has something to tell"


@dataclass(frozen=True, slots=True)
class Spoken:
    """What happened. ``action`` is created, updated, unchanged, withdrawn, silent, would say, or failed."""

    id: ThreadId
    title: str
    action: str
    reason: str = ""
    context: Context = Context()
    text: str = ""
    comment: OwnComment | None = None
    error: ForgeError | None = None

    @property
    def spoke(self) -> bool:
        return self.action in ("created", "updated", "unchanged")


def speak(plan: Plan, forge: Forge, own: Own, mode: str) -> Spoken:
    """Carry a plan out. What GitHub refuses ends in a reason or an error, never in a second attempt."""
    told = Spoken(plan.thread.id, plan.thread.title, "silent", plan.reason, plan.context, plan.text)
    if mode != "comment":
        if mode == "off":
            return _as(told, "silent", "the mode is off")
        return _as(told, "would say" if plan.text else "silent", plan.reason)
    try:
        return _say(plan, told, forge, own)
    except CannotComment as error:
        return _as(told, "silent", str(error))
    except ForgeError as error:
        return Spoken(told.id, told.title, "failed", str(error), told.context, told.text, error=error)


def _say(plan: Plan, told: Spoken, forge: Forge, own: Own) -> Spoken:
    number = plan.thread.id
    if not isinstance(number, int):
        return _as(told, "silent", "threads from elsewhere have no comments")
    mine = plan.own
    if mine is None and not plan.own_is_known and (plan.text or plan.before):
        mine = _look(number, forge, own)
    if not plan.text:
        return _withdraw(told, mine, forge) if mine else told
    if mine is not None:
        return _update(told, mine, forge)
    if plan.before and plan.before.state in ("said", "removed"):
        return _as(told, "silent", "a person deleted the comment: it is not written again")
    return _create(told, number, forge, own)


def _create(told: Spoken, number: int, forge: Forge, own: Own) -> Spoken:
    try:
        return _as(told, "created", told.reason, forge.create_comment(number, told.text))
    except Unreachable:
        standing = _look(number, forge, own)
        if standing is None:
            raise
        return _as(told, "created", told.reason, standing)


def _update(told: Spoken, mine: OwnComment, forge: Forge) -> Spoken:
    wanted, standing = read_seal(told.text), read_seal(mine.text)
    if standing is None or not standing.untouched:
        return _as(told, "unchanged", "a person edited the comment: it is left as it is", mine)
    if wanted and standing.content == wanted.content:
        return _as(told, "unchanged", "it says that already", mine)
    try:
        return _as(told, "updated", told.reason, forge.update_comment(mine.id, told.text))
    except Gone:
        return _as(told, "silent", "a person deleted the comment: it is not written again")


def _withdraw(told: Spoken, mine: OwnComment, forge: Forge) -> Spoken:
    """Shrink the comment to one line and fold it; what a person edited stays."""
    standing = read_seal(mine.text)
    if standing is None or not standing.untouched or standing.content == NOTHING:
        return _as(told, "silent", told.reason)
    try:
        changed = forge.update_comment(mine.id, seal(withdrawn(own_instance(mine.text)), NOTHING))
    except Gone:
        return told
    if mine.node_id or changed.node_id:
        try:
            forge.minimize(changed.node_id or mine.node_id)
        except ForgeError:
            return _as(told, "withdrawn", f"{told.reason} (it could not be folded)", changed)
    return _as(told, "withdrawn", told.reason, changed)


def own_instance(text: str) -> str:
    """The instance that a comment's marker names."""
    first = text.lstrip().partition("\n")[0]
    return first.partition("id=")[2].partition(" ")[0] or "action"


def _look(number: int, forge: Forge, own: Own) -> OwnComment | None:
    """Our comment on the issue, the oldest one, on whichever page it is."""
    ours = split_own(forge.comments(number), own)[1]
    return ours[0] if ours else None


def _as(told: Spoken, action: str, reason: str, comment: OwnComment | None = None) -> Spoken:
    return Spoken(told.id, told.title, action, reason, told.context, told.text, comment)
