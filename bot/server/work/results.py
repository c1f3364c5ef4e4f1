"""What a run says of a comment: the issues that it showed, and those that were near."""

from __future__ import annotations

from collections.abc import Iterable

from bot.domain.thread import Kind
from bot.github.threads import OwnComment
from bot.memory.memory import Memory
from bot.pipeline.comments import OTHER_RUN_POSTING
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.site import RepositorySite

REASON_KINDS = ("same text", "same error", "same file", "both name", "both speak of")
"""How reasons begin (see `bot.recall.similar`); words of issues follow."""


def result_for(results: Iterable[CommentResult], number: int) -> CommentResult | None:
    """Return the result for an issue: a comment or a reply rather than silence."""
    return min((each for each in results if each.id == number), key=lambda each: not each.spoke, default=None)


def earlier_result(memory: Memory, number: int, site: RepositorySite) -> CommentResult | None:
    """Return an earlier comment from memory, whose run may have died before it could report it."""
    post = memory.state.comments([number]).get(number)
    if post and post.state == "pending" and post.trying_since:
        return CommentResult(number, "", "silent", OTHER_RUN_POSTING, is_owed=True)
    if post is None or post.state not in ("said", "silent", "removed", "withdrawn"):
        return None
    if post.state != "said":
        return CommentResult(number, "", "silent", post.reason)
    entry = memory.entries([number]).get(number)
    traits = (entry.kind if entry else Kind.ISSUE).traits
    url = f"{site.server_url}/{site.repository}/{traits.path}/{number}{traits.comment_path}{post.comment_id}"
    comment = OwnComment(post.comment_id, "", url) if post.comment_id else None
    return CommentResult(number, "", "unchanged", "the comment was already posted", comment=comment)


def nearest(spoken: CommentResult) -> tuple[tuple[int, float, str], ...]:
    """Return the most similar issues, shown or not, with similarity in 0..1 and the kinds of reasons."""
    return tuple((m.id, m.similarity, _kinds(m.why)) for m in spoken.nearest if isinstance(m.id, int))


def _kinds(why: Iterable[str]) -> str:
    """The kinds of reasons: words of issues are not stored in the inbox."""
    return ", ".join(kind for kind in REASON_KINDS if any(f"{reason} ".startswith(f"{kind} ") for reason in why))


def matches(spoken: CommentResult) -> tuple[tuple[int, float], ...]:
    """Return the issues that were shown, with similarity in 0..1."""
    shown = (*spoken.context.seen_before, *spoken.context.open_now)
    return tuple((match.id, match.similarity) for match in shown if isinstance(match.id, int))
