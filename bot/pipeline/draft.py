"""A draft: what should stand on a thread, as one run works it out; and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum, auto
from typing import NamedTuple

from bot.comment.marker import read_seal
from bot.domain.answer import Answer, Context, Match, Silent, Speak, threads_in
from bot.domain.post import COMMENT, Post, PostKey, short_hash
from bot.domain.thread import Thread, ThreadId
from bot.github.errors import ForgeError
from bot.github.threads import OwnComment

WITHDRAWN_FINGERPRINT = "0" * 16
"""The fingerprint of a withdrawn comment."""

EDITED = "a person edited the comment: it is left as it is"
SWITCHED_OFF = "somebody switched it off on this issue"
QUOTE_CHANGED = "it quotes words that their author edited or deleted"
NOT_VISIBLE = "it is not visible now"
DELETED = "a person deleted the comment: it is not posted again"
SAME = "the comment already says that"


@dataclass(frozen=True, slots=True)
class Draft:
    """The text planned for a slot of a thread. ``text`` is empty if nothing should stand there.

    ``before`` is the post as memory has it, ``own`` what stands on GitHub, as far as this run looked. ``is_skipped``:
    the rules leave this thread alone, whatever comment it has. ``waits``: why it is left to a later run; for a comment
    memory keeps a promise, everything else is planned again by its room. ``removed``: a person deleted our post.
    ``fault``: the error that kept us from looking. ``renews``: the post is written again because a thread in it
    changed; none is created. ``quotes`` are the ids of the quoted texts, ``shows_too`` are threads that it shows
    besides those in its context. ``is_false``: what stands quotes something that its author took back, or shows an
    issue of another repository that may no longer be shown here. ``why`` is the reason for the job summary, "" for that
    of the answer.
    """

    thread: Thread
    answer: Answer
    slot: str = COMMENT
    text: str = ""
    question: str = ""
    own: OwnComment | None = None
    before: Post | None = None
    is_skipped: bool = False
    removed: bool = False
    waits: str = ""
    fault: ForgeError | None = None
    renews: bool = False
    quotes: tuple[str, ...] = ()
    shows_too: tuple[ThreadId, ...] = ()
    is_false: bool = False
    why: str = ""

    @property
    def key(self) -> PostKey:
        return PostKey(self.thread.id, self.slot)

    @property
    def context(self) -> Context:
        return self.answer.context if isinstance(self.answer, Speak) else Context()

    @property
    def nearest(self) -> tuple[Match, ...]:
        """The issues most similar to the thread, shown or not."""
        return self.answer.nearest if isinstance(self.answer, Silent) else self.answer.context.nearest

    @property
    def content(self) -> str:
        """The fingerprint of the planned text."""
        return (facts_in(self.text) or short_hash(self.text)) if self.text else WITHDRAWN_FINGERPRINT

    @property
    def reason(self) -> str:
        """What happens or why nothing does, for the job summary."""
        if self.waits or self.why:
            return self.waits or self.why
        return self.answer.reason if isinstance(self.answer, Silent) else "memory has something to show"

    @property
    def is_left(self) -> bool:
        """Whether this run does nothing about it."""
        return self.is_skipped or bool(self.waits) or self.fault is not None

    @property
    def is_new(self) -> bool:
        """Whether it will create a post."""
        return bool(self.text) and not (self.own or self.removed or self.is_skipped or self.waits or self.renews)

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to write, or what stands already says it."""
        if self.own is None:
            return not self.text and not self.waits
        return bool(self.standing_state)

    @property
    def standing_state(self) -> str:
        """``said`` or ``withdrawn`` if what stands needs no change, else ""."""
        if self.own is None or next_step(self).action is not Action.LEAVE:
            return ""
        return "withdrawn" if is_withdrawn(self.own) else "said"

    @property
    def is_left_alone(self) -> bool:
        """Whether it would renew a post that does not exist or that a person edited."""
        is_as_edited = self.own is not None and not is_unedited(self.own) and not self.is_false
        return self.renews and not self.removed and (self.own is None or is_as_edited)

    @property
    def must_match(self) -> bool:
        """Whether the text must be equal, not just the facts, because the words differ or may differ."""
        return self.is_false or (self.before is not None and bool(self.before.shows) and not self.before.quotes)

    @property
    def takes_out(self) -> bool:
        """Whether it removes something that may no longer be shown, which is done in every mode."""
        return self.renews and self.is_false

    @property
    def is_counted(self) -> bool:
        """Whether an earlier run promised this post and counted it."""
        return self.before is not None and self.before.is_promised

    def post(self, state: str, now: datetime) -> Post:
        """The post with this text in this state, composed now."""
        shown = tuple(dict.fromkeys((*threads_in(self.context), *self.shows_too)))
        matches = tuple((match.id, match.similarity) for match in (*self.context.seen_before, *self.context.open_now))
        return Post(
            self.thread.id,
            state,
            now,
            self.slot,
            content=self.content,
            comment_id=self.own.id if self.own else self.before.comment_id if self.before else None,
            shows=shown if self.text else (),
            quotes=self.quotes if self.text else (),
            others=tuple(other.key for other in self.context.organisation),
            pulls=tuple(pull for pull in self.context.pulls if pull.seen_at),
            question=self.question,
            matches=matches if self.key.is_comment else (),
            votes=self.before.votes if self.before else (),
            release=self.before.release if self.before else "",
        )


class Action(Enum):
    CREATE = auto()
    UPDATE = auto()
    WITHDRAW = auto()
    LEAVE = auto()


class NextStep(NamedTuple):
    """What to do so that the draft stands, and why nothing, if that is not the draft's own reason."""

    action: Action
    why: str = ""


def next_step(draft: Draft) -> NextStep:
    """Compare what should stand with what stands. Asks nobody."""
    own = draft.own
    if own is None:
        if draft.removed or draft.renews:
            return NextStep(Action.LEAVE, DELETED)
        return NextStep(Action.CREATE if draft.text else Action.LEAVE)
    if not is_unedited(own):
        # what a person wrote stays, but not what its author took back
        return (
            NextStep(Action.WITHDRAW)
            if draft.is_false
            else NextStep(Action.LEAVE, EDITED if draft.text or draft.renews else "")
        )
    if not draft.text:
        return NextStep(Action.LEAVE if is_withdrawn(own) else Action.WITHDRAW)
    is_same = is_same_text(own, draft.text) if draft.must_match else facts_in(own.text) == facts_in(draft.text)
    return NextStep(Action.LEAVE, SAME) if is_same else NextStep(Action.UPDATE)


def is_unedited(own: OwnComment) -> bool:
    """Whether our comment is as we wrote it."""
    standing = read_seal(own.text)
    return standing is not None and standing.untouched


def is_withdrawn(own: OwnComment) -> bool:
    return is_unedited(own) and facts_in(own.text) == WITHDRAWN_FINGERPRINT


def is_same_text(own: OwnComment, text: str) -> bool:
    return own.text.replace("\r\n", "\n").strip() == text.strip()


def facts_in(text: str) -> str | None:
    """The fingerprint in the seal of a text; None without one."""
    seal = read_seal(text)
    return seal.content if seal else None
