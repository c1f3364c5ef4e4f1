"""Where the fixes of threads are, as far as it was looked up, and what that says about the version of a question."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from bot.answer import Context, Match, Mention
from bot.kept import Fix
from bot.model import Outcome, ThreadId
from bot.reading.versions import stands
from bot.recall.library import Library


def fix_refs(context: Context) -> dict[ThreadId, str]:
    """What fixed the threads that are told of in full, by thread: ``#57`` or a SHA. What is mentioned comes first."""
    hits: tuple[Mention | Match, ...] = (*context.mentioned, *context.seen_before)
    refs = {
        hit.id: _ref(hit.id, hit.outcome, is_merged=isinstance(hit, Mention) and bool(hit.merged_at)) for hit in hits
    }
    return {key: ref for key, ref in refs.items() if ref}


def with_fixes(context: Context, library: Library, before: datetime | None) -> Context:
    """The context with the fixes that are known, as they were known at ``before`` (None: now)."""
    refs = fix_refs(context)
    held = library.fixes(refs) if refs else {}
    known = {key: told for key, fix in held.items() if fix.ref == refs[key] and (told := as_of(fix, before))}
    return replace(
        context,
        mentioned=tuple(replace(one, fix=known.get(one.id)) for one in context.mentioned),
        seen_before=tuple(replace(one, fix=known.get(one.id)) for one in context.seen_before),
    )


def with_version(context: Context, asked: str) -> Context:
    """The context with how the version that the question names stands to the releases with the fixes."""
    return replace(context, seen_before=tuple(_compared(match, asked) for match in context.seen_before))


def as_of(fix: Fix, before: datetime | None) -> Fix | None:
    """The fix as it was known at ``before`` (None: now); None where nothing was merged then."""
    if fix.commit is None or (before and (fix.merged_at is None or fix.merged_at > before)):
        return None
    if before and (fix.released_at is None or fix.released_at > before):
        return replace(fix, release=None, released_at=None, unreleased=False)
    return fix


def _ref(key: ThreadId, outcome: Outcome, *, is_merged: bool) -> str:
    """A pull request that was merged is its own fix."""
    return f"#{key}" if is_merged else outcome.fix or ""


def _compared(match: Match, asked: str) -> Match:
    fix = match.fix
    release = (fix.release if fix else None) or match.outcome.release
    if not (asked and release):
        return match
    standing = stands(asked, release, fix.released_at if fix else None, fix.merged_at if fix else None)
    return match if standing is None else replace(match, asked_on=asked, may_be_back=standing == "same or newer")


def number_of(ref: str) -> int | None:
    """The pull request of a reference such as ``#57``, None for a commit."""
    digits = ref.removeprefix("#")
    return int(digits) if len(digits) < min(len(ref), 16) and digits.isascii() and digits.isdecimal() else None
