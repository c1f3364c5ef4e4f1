"""What an ending says once it is known whether the change that it names was merged."""

from __future__ import annotations

from dataclasses import replace

from bot.model import Kind, Outcome, OutcomeKind

_SURE = 0.9
_LONGEST = 12
"""Characters of ``#`` and a number."""


def proven(outcome: Outcome, is_merged: bool | None) -> Outcome:
    """The outcome, knowing whether its ``fix``, or what is ``claimed`` to be one, was merged; None: nobody knows.

    A fix that was not leaves the quote and what is claimed; a claim that was makes a fix.
    """
    told = settled(outcome.kind, outcome.fix or "", outcome.claimed or "", is_merged)
    if told is None:
        return outcome
    kind, fix, claimed = OutcomeKind(told[0]), told[1] or None, told[2] or None
    noun = "pull request" if number_of(fix or claimed) else "commit"
    evidence = (*outcome.evidence, f"the {noun} was merged" if fix else f"names no {noun} that was merged")
    release = outcome.release if fix else None
    confidence = _SURE if fix else 0.0
    return replace(
        outcome, kind=kind, fix=fix, claimed=claimed, release=release, evidence=evidence, confidence=confidence
    )


def settled(kind: str, fix: str, claimed: str, is_merged: bool | None) -> tuple[str, str, str] | None:
    """Kind, fix and claim of an ending, knowing that; None where it makes no difference to them."""
    if is_merged and claimed and kind == OutcomeKind.UNKNOWN:
        return OutcomeKind.FIXED.value, claimed, ""
    if is_merged is False and fix and kind == OutcomeKind.FIXED:
        return OutcomeKind.UNKNOWN.value, "", fix
    return None


def number_of(ref: str | None) -> int | None:
    """The number of this repository in ``#57``; None for a commit and for what stands elsewhere."""
    is_number = ref is not None and ref[:1] == "#" and ref[1:].isdecimal() and len(ref) <= _LONGEST
    return int(ref[1:]) if ref and is_number else None


def is_change(kind: str, state: str, merged_at: object) -> bool | None:
    """Whether a thread is a pull request that was merged; None for what is neither that nor an issue."""
    if kind == Kind.PULL:
        return state == "closed" and bool(merged_at)
    return False if kind == Kind.ISSUE else None
