"""What memory stores about a draft: before it is posted, so that no crash repeats or loses it, and afterwards."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from bot.domain.post import Post
from bot.domain.thread import Kind, ThreadId
from bot.github.threads import OwnComment
from bot.pipeline.draft import DELETED, EDITED, WITHDRAWN_FINGERPRINT, Draft, facts_in, is_unedited
from bot.pipeline.permit import Permit
from bot.pipeline.reconcile import CommentResult


def promised_post(draft: Draft, now: datetime, permit: Permit, since: datetime | None = None) -> Post | None:
    """The post to store before a draft is carried out; None if there is nothing to store.

    ``now`` is when the run began. Other runs leave a notice to this one for a while from ``since`` on, the present
    moment (None: ``now``), as a run may post many.
    """
    if not draft.key.is_comment:
        return _promised_other(draft, now, permit, since or now)
    before, post = draft.before, _promised_comment(draft, now, permit)
    if before is None:
        return post
    if draft.is_skipped and before.state != "pending":
        return before
    if draft.is_skipped and before.is_promised:
        # it may have been posted, and deleted by a person before any run saw it
        return replace(post, content=before.content, at=before.at, revised_at=now)
    kept = replace(post, at=before.at, revised_at=before.revised_at)
    if kept == before:
        return before
    return replace(kept, revised_at=now) if before.state == post.state == "pending" else post


def _promised_comment(draft: Draft, now: datetime, permit: Permit) -> Post:
    before = draft.before
    if before and draft.is_left_alone:
        return before
    bare = replace(draft.post("silent", now), content="", matches=()).showing(before)
    if draft.waits:
        if before and before.state == "pending":
            bare = replace(bare, content=before.content, trying_since=before.trying_since)
        return replace(bare, state="pending", reason=draft.waits, question="")
    if draft.is_skipped:
        return replace(bare, reason=draft.reason, question="")
    if draft.removed:
        return deleted_post(bare)
    if not permit.allows(draft) or not (draft.text or draft.own):
        return replace(bare, reason="it was shown in the job summary only" if draft.text else draft.reason)
    state = draft.standing_state
    post = draft.post(state or "pending", now)
    if state:
        return post.showing(before) if before and before.content == post.content else post
    return replace(_showing_both(post, draft), trying_since=now)


def _showing_both(post: Post, draft: Draft) -> Post:
    """The promised post. Until it is written it counts as showing what stands as well, so that a false quote is still
    found after a crash."""
    before = draft.before
    if before is None or not draft.renews or (draft.text and not draft.is_false):
        return post
    return replace(
        post,
        shows=tuple(dict.fromkeys((*post.shows, *before.shows))),
        quotes=tuple(sorted({*post.quotes, *before.quotes})),
        others=tuple(dict.fromkeys((*before.others, *post.others))),
    )


def _promised_other(draft: Draft, now: datetime, permit: Permit, since: datetime) -> Post | None:
    before = draft.before
    if draft.is_left or not permit.writes:
        return None
    if draft.renews:
        return before and replace(before, state="said", at=now, revised_at=now, trying_since=now)
    if not draft.text:
        return None
    post = draft.post("pending", before.at if before else now)
    since = since if post.key.is_note else now
    return replace(post, trying_since=since, revised_at=since if before else None)


def settled_post(draft: Draft, promised: Post, result: CommentResult, now: datetime) -> Post | None:
    """The post to store once the result is known; None if it adds nothing to the promise, or a later run finds out.

    Comments on issues and replies are not stored again, as that would cost a push for each event: the next run sees
    them. GitHub does not say which comments of a discussion were deleted, so a missing one is noticed only if its id is
    known.
    """
    is_comment = draft.key.is_comment
    if result.is_refused and draft.renews and not is_comment:
        return replace(promised, trying_since=None)
    if result.is_refused:
        post = replace(promised, state="silent", reason=result.reason, trying_since=None, revised_at=now)
        return post if post.comment_id else post.showing(None)
    if result.error:
        tried = replace(promised, reason=result.reason, trying_since=None)
        return replace(tried, revised_at=now) if is_comment and tried != promised else None
    is_seen_later = draft.key.is_reply or (is_comment and draft.thread.kind is not Kind.DISCUSSION)
    return written_post(draft, promised, result) if draft.renews or not is_seen_later else None


def written_post(draft: Draft, promised: Post, result: CommentResult) -> Post | None:
    """The post as it was written; None if that adds nothing to the promise."""
    if result.error or result.is_undone or promised.state in ("silent", "removed"):
        return None
    if result.reason == EDITED:
        return replace(promised, state="said", trying_since=None)
    if result.reason == DELETED:
        return deleted_post(promised)
    written = replace(
        draft.post("said" if draft.text else "withdrawn", promised.at),
        comment_id=result.comment.id if result.comment else promised.comment_id,
        revised_at=promised.revised_at,
    )
    is_settled = promised.state != "pending" and draft.key.is_comment
    return None if is_settled and written.shows == promised.shows else written


def deleted_post(post: Post) -> Post:
    """The post after a person deleted it: it shows nothing, and is not posted again."""
    return replace(post, state="removed", reason=DELETED, trying_since=None).showing(None)


def seen_comments(
    comments: Mapping[ThreadId, Post], standing: Mapping[ThreadId, OwnComment | None], oldest: datetime
) -> dict[ThreadId, Post]:
    """Update earlier comments, given what was seen of them: promises kept or expired, comments deleted. Returns the
    changes.

    A promise from before ``oldest`` is given up.
    """
    seen: dict[ThreadId, Post] = {}
    for key, post in comments.items():
        own = standing.get(key)
        state = _seen_state(own, post.content) if own and post.state == "pending" else ""
        if own and state:
            seen[key] = replace(post, state=state, comment_id=own.id, reason="", trying_since=None)
        elif own is None and key in standing and post.comment_id and post.state in ("pending", "said", "withdrawn"):
            seen[key] = deleted_post(post)
        elif post.state == "pending" and post.at <= oldest:
            seen[key] = replace(post, state="silent", reason="it is too late for an answer", trying_since=None)
    return seen


def _seen_state(own: OwnComment, content: str) -> str:
    """``said`` or ``withdrawn`` if what stands is what was promised, or a person edited it, else ""."""
    if not is_unedited(own):
        return "said"
    if facts_in(own.text) != content:
        return ""
    return "withdrawn" if content == WITHDRAWN_FINGERPRINT else "said"
