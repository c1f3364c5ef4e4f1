"""What an ending becomes once it is known whether the change that it names was merged, and closed the thread.

Quick to import, as every search from a shell needs it.
"""

from __future__ import annotations

from collections.abc import Container
from typing import NamedTuple, Protocol

from bot.domain.kinds import Kind, OutcomeKind

_MAX_REF_CHARS = 12
"""Maximum number of characters of a thread's number with its ``#``."""


class NamedChange(NamedTuple):
    """The change (``#57`` or a SHA) that an ending names as the fix.

    A claim counts only if GitHub, or the text of the merged change itself, says that it closed the thread.
    """

    ref: str
    is_claim: bool = False

    @property
    def number(self) -> int | None:
        """The number of the pull request; None for a commit or a change of another repository."""
        return number_of(self.ref)


class ChangeState(NamedTuple):
    """What is known about a named change.

    ``is_merged`` is None if that is not known. ``closed_by`` is the change that closed the thread, according to GitHub
    or to its own text; "" if none is known to. It may be another one than the claimed one.
    """

    is_merged: bool | None = None
    closed_by: str = ""


class _ChangeThread(Protocol):
    @property
    def kind(self) -> Kind: ...
    @property
    def state(self) -> str: ...
    @property
    def merged_at(self) -> object: ...
    @property
    def closes(self) -> Container[object]: ...


class LookedUpFix(Protocol):
    @property
    def ref(self) -> str: ...
    @property
    def commit(self) -> str | None: ...
    @property
    def refuted(self) -> bool: ...
    @property
    def closed_by(self) -> str: ...


def named_change(fix: str | None, claimed: str | None) -> NamedChange | None:
    """What to look up about an ending; None if it names no change."""
    ref = fix or claimed
    return NamedChange(ref, not fix) if ref else None


def number_of(ref: str | None) -> int | None:
    """The number in ``#57``; None for a commit or a change of another repository."""
    is_number = ref is not None and ref[:1] == "#" and ref[1:].isdecimal() and len(ref) <= _MAX_REF_CHARS
    return int(ref[1:]) if ref and is_number else None


def is_change(kind: Kind, state: str, merged_at: object) -> bool | None:
    """Whether a thread is a merged pull request; None for a page or session."""
    if kind.traits.is_change:
        return state == "closed" and bool(merged_at)
    return False if kind.is_on_github else None


def change_state(key: object, named: NamedChange, thread: _ChangeThread | None, fix: LookedUpFix | None) -> ChangeState:
    """What memory and the forge know about the change that the ending of thread ``key`` names.

    ``thread`` is the pull request in memory, which says what it ``closes``. Both it and the answer of the forge, the
    ``fix``, may be older than the merge.
    """
    is_merged = is_change(thread.kind, thread.state, thread.merged_at) if thread else None
    closed_by = named.ref if thread and is_merged and key in thread.closes else ""
    is_settled = is_merged and (closed_by or not named.is_claim)
    if fix and fix.ref == named.ref and (fix.commit or fix.refuted) and not is_settled:
        return ChangeState(not fix.refuted, fix.closed_by)
    return ChangeState(is_merged, closed_by)


def revise_ending(kind: str, fix: str, claimed: str, change: ChangeState) -> tuple[str, str, str] | None:
    """The kind, fix and claim of an ending, given what is known about its change; None if that changes nothing."""
    if claimed and kind == OutcomeKind.UNKNOWN and change.is_merged and change.closed_by:
        return OutcomeKind.FIXED, change.closed_by, ""
    if fix and kind == OutcomeKind.FIXED and change.is_merged is False:
        return OutcomeKind.UNKNOWN, "", fix
    return None
