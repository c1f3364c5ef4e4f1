"""What an ending says once it is known whether the change that it names was merged.

Plain values and no import of ours: a search from a shell begins with it.
"""

from __future__ import annotations

_LONGEST = 12
"""Characters of ``#`` and a number."""


def settled(kind: str, fix: str, claimed: str, is_merged: bool | None) -> tuple[str, str, str] | None:
    """Kind, fix and claim of an ending, knowing that; None where it makes no difference to them."""
    if is_merged and claimed and kind == "unknown":
        return "fixed", claimed, ""
    if is_merged is False and fix and kind == "fixed":
        return "unknown", "", fix
    return None


def number_of(ref: str | None) -> int | None:
    """The number of this repository in ``#57``; None for a commit and for what stands elsewhere."""
    is_number = ref is not None and ref[:1] == "#" and ref[1:].isdecimal() and len(ref) <= _LONGEST
    return int(ref[1:]) if ref and is_number else None


def is_change(kind: str, state: str, merged_at: object) -> bool | None:
    """Whether a thread is a pull request that was merged; None for what is neither that nor an issue."""
    if kind == "pull":
        return state == "closed" and bool(merged_at)
    return False if kind == "issue" else None
