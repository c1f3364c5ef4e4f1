"""Forgets a thread: removes its text from memory, from the history of the branch, and from our comments.

Every step may be repeated: a run that finds an unfinished one starts over.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.comment.marker import notice_mark
from bot.domain.answer import Context
from bot.domain.changes import FORGET, AnswerRecord, Changes, CommentKey, ReleaseNotice, Request, StandingComment
from bot.domain.thread import FORGOTTEN, GHOST, Thread, ThreadId, Tombstone, is_forgotten
from bot.errors import WorldError
from bot.git.errors import RemoteRefused
from bot.github.client import Json
from bot.github.errors import ForgeError, Gone, RateLimited, Unreachable
from bot.github.updates import TOMBSTONE_OFFSET
from bot.memory.merge import PENDING_WINDOW
from bot.memory.shards import read_lines
from bot.pipeline.publish import CommentResult, publish_replies
from bot.pipeline.remember import read_now
from bot.pipeline.replies import SEARCH_REQUESTS, ReplyPlan, may_administer, react
from bot.pipeline.requests import ParsedRequest, new_requests
from bot.pipeline.run_context import RunContext, RunState, is_in_progress
from bot.reading.lookalikes import ZERO_WIDTH_SPACE
from bot.reading.requests import Command

OTHER_RUN_WRITING = "another run was writing at that moment; a later run looks for its comments"
SHOWED_FORGOTTEN = "it showed an issue that was forgotten: the comment was deleted"

REMAINING_COPIES = (
    "Not reached: email already sent; the edit history that GitHub keeps; forks and clones of the branch, and a"
    " developer's copy until the next fetch; old commits on GitHub's servers until it removes them;"
    " logs, summaries and files of earlier jobs; the artefacts of releases."
)
"""The copies that Precedent cannot delete, as told to the person who started the run."""

MAX_LISTED = 20
"""Maximum number of issue numbers in one line."""


class HistoryKept(WorldError):
    """Older commits of the branch still hold a forgotten thread."""


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The result of forgetting a thread.

    ``deleted`` lists the threads on which our comments were deleted, ``pointing`` those that refer to the forgotten
    thread and may quote it. ``refused``: why the history of the branch stays, None if it was replaced. ``left``: why
    some comments may remain; if ``waits``, a later run looks for them.
    """

    deleted: tuple[ThreadId, ...] = ()
    pointing: tuple[ThreadId, ...] = ()
    refused: RemoteRefused | None = None
    left: str = ""
    waits: bool = False


def forget_by_hand(number: int, run: RunContext) -> None:
    """Forget a thread of memory or GitHub. Raises UserError for any other number: the later thread with it would never
    be remembered."""
    memory = run.memory.open([number])
    if number not in memory.whole_records([number]) and not memory.state.is_damaged(number):
        read_now(number, run, "forgotten")
    _carry_out(Request(number, number, FORGET, "", run.now), run)


def forget_on_request(
    requests: Sequence[ParsedRequest], state: RunState, run: RunContext
) -> tuple[list[ParsedRequest], list[CommentResult]]:
    """Forget what administrators ask for, and what earlier runs left unfinished. Returns the other requests and the
    replies. Runs before anything is planned, as a plan could show the thread."""
    if run.muted:
        return list(requests), []
    replies = [reply for stored in _unfinished(run) for reply in _carry_out(stored, run)]
    requests = [*requests, *_repeated_requests(state, run)]
    granted = [request for request in requests if request.name == FORGET and _may_forget(request, run)]
    for request in granted:
        if not request.before:
            react(request, "eyes", run)
        replies += _carry_out(Request(request.thread.id, request.key, FORGET, request.by, request.at), run)
    gone = {request.thread.id for request in granted}
    return [request for request in requests if request.thread.id not in gone], replies


def _unfinished(run: RunContext) -> list[Request]:
    begun = (
        stored for stored in run.memory.state.manifest.requests_since(run.now - PENDING_WINDOW) if stored.name == FORGET
    )
    return [
        stored for stored in begun if stored.state == "pending" and not is_in_progress(stored.trying_since, run.now)
    ]


def _may_forget(request: ParsedRequest, run: RunContext) -> bool:
    """Whether an administrator asks, according to the API now. If it cannot be reached, the request waits."""
    try:
        return may_administer(request, run)
    except ForgeError:
        return False


def _repeated_requests(state: RunState, run: RunContext) -> list[ParsedRequest]:
    """A repeated request in the event's comment on a forgotten thread, for example because the history was kept."""
    number = state.event.number
    record = run.memory.whole_records([number]).get(number) if number else None
    if not isinstance(record, Tombstone) or not is_forgotten(record):
        return []
    requests = new_requests(Thread(record.id, "", "", GHOST, record.at), state.event, run)
    return [request for request in requests if request.name == FORGET]


def _carry_out(stored: Request, run: RunContext) -> list[CommentResult]:
    """Forget everywhere, and reply. Returns no reply if another run took this request first."""
    is_again = stored.trying_since is not None
    stored = replace(stored, trying_since=run.now)
    answer = run.memory.state.answers([stored.id]).get(stored.id)
    refused = _forget_text(stored, run)
    if stored.comment_id in run.memory.taken_requests:
        return []
    result = replace(_delete_comments(stored, answer, run), refused=refused)
    _note_result(stored, result, run)
    replies: list[CommentResult] = []
    if stored.by and not result.waits and not (is_again and _is_replied(stored, run)):
        replies = _reply(stored, result, run)
    if not (result.waits or any(reply.error for reply in replies)):
        run.memory.stage(Changes(requests=(replace(stored, state="done", trying_since=None),)))
    run.memory.commit(f"Forget {stored.id}: what showed it")
    return replies


def _forget_text(stored: Request, run: RunContext) -> RemoteRefused | None:
    """Remove it from memory and from the branch's history. Returns why the history was kept, None if it was not."""
    memory = run.memory
    record = memory.whole_records([stored.id]).get(stored.id)
    at = max(run.now, record.revised_at + TOMBSTONE_OFFSET) if record else run.now
    memory.stage(Changes(records=(Tombstone(stored.id, at, FORGOTTEN),), requests=(stored,)))
    try:
        memory.commit(f"Forget {stored.id}", squash=True)
    except RemoteRefused as error:
        memory.commit(f"Forget {stored.id}")
        return error
    return None


def _delete_comments(stored: Request, before: AnswerRecord | None, run: RunContext) -> ForgetResult:
    """Delete each of our comments that shows it; if they were only edited, GitHub would keep the earlier text.

    ``before`` is the current answer on the thread itself.
    """
    memory = run.memory
    pointing, shown = _find_referring(stored.id, run), _comments_showing(stored.id, run)
    threads = list(dict.fromkeys([stored.id, *(key for key, _ in shown), *_older_threads(stored.id, pointing, run)]))
    deleted, notified = list[CommentKey](), list[ThreadId]()
    notices = _notices_naming(stored.id, run)
    is_busy, left = memory.has_moved or _may_be_written(threads, before, notices, run), ""
    try:
        deleted.extend(comment_key for key in threads for comment_key in _delete_on_thread(key, stored, shown, run))
        for notice in notices:
            if not is_in_progress(notice.trying_since, run.now):  # else a later run deletes it, once it stands
                notified += [notice.id] if _delete_notice(notice, run) else []
    except ForgeError as error:
        left, is_busy = error.cause, is_busy or isinstance(error, (RateLimited, Unreachable))
    memory.stage(_changes_after(deleted, stored.id, run))
    keys = (*(key for key, _ in deleted), *notified)
    return ForgetResult(keys, tuple(pointing), left=left or (OTHER_RUN_WRITING if is_busy else ""), waits=is_busy)


def _find_referring(key: ThreadId, run: RunContext) -> list[ThreadId]:
    referring: list[ThreadId] = []
    for _, shard in run.memory.state.base.digest_shards():
        referring += [other for other, line in read_lines(shard)[0].items() if _refers_to(line, key)]
    return referring


def _refers_to(digest: Mapping[str, Any], key: ThreadId) -> bool:
    """Whether a digest (any JSON) refers to this thread."""
    try:
        outcome = digest.get("outcome") or {}
        numbers = [
            reference.get("number") for reference in digest.get("references") or () if not reference.get("owner")
        ]
        numbers += [digest.get("duplicate_of"), outcome.get("duplicate_of")]
        return key in numbers or outcome.get("fix") == f"#{key}"
    except (AttributeError, TypeError):
        return False


def _comments_showing(key: ThreadId, run: RunContext) -> tuple[CommentKey, ...]:
    linked = run.memory.state.thread_comments([key]).get(key)
    return linked.shown_in if linked else ()


def _older_threads(key: ThreadId, pointing: Iterable[ThreadId], run: RunContext) -> list[ThreadId]:
    """The threads with comments that may show it, from the time before memory recorded what comments show."""
    memory, referring = run.memory, set(pointing)
    answers = (answer for answer in memory.state.every_answer() if answer.comment_id or answer.state == "pending")
    may_show = [(answer.id, 0) for answer in answers if answer.id in referring or key in dict(answer.matches)]
    searches = (
        stored
        for stored in memory.state.every_request()
        if stored.name in SEARCH_REQUESTS and (stored.reply_id or stored.trying_since)
    )
    may_show += [(stored.id, stored.comment_id) for stored in searches]
    linked = memory.state.thread_comments(thread for thread, _ in may_show).values()
    recorded = {comment.comment_key for linked_comments in linked for comment in linked_comments.comments}
    return [comment_key[0] for comment_key in may_show if comment_key not in recorded]


def _notices_naming(key: ThreadId, run: RunContext) -> list[ReleaseNotice]:
    """The release notices on duplicates that call this thread the original."""
    commented = run.memory.state.every_thread_comments()
    return [notice for linked in commented for notice in linked.notices if notice.original == key]


def _delete_notice(notice: ReleaseNotice, run: RunContext) -> bool:
    """Delete a release notice, and record that none may be written. Returns whether it existed. Raises ForgeError."""
    mark = notice_mark(notice.ref)
    standing = [comment for comment in _comments(notice.id, run) if run.own.notice_key(comment) == mark]
    for comment in standing:
        _delete(notice.id, int(comment["id"]), run)
    gone = replace(notice, original=None, state="removed", comment_id=None, trying_since=None)
    run.memory.stage(Changes(notices=(gone,)))
    return bool(standing)


def _may_be_written(
    threads: Sequence[ThreadId], before: AnswerRecord | None, notices: Sequence[ReleaseNotice], run: RunContext
) -> bool:
    """Whether another run may be writing on one of these threads now, from its older memory."""
    promises: list[AnswerRecord | Request] = [
        *run.memory.state.answers(threads).values(),
        *([before] if before else []),
    ]
    requests = (stored for stored_requests in run.memory.requests(threads).values() for stored in stored_requests)
    promises += [stored for stored in requests if stored.name != FORGET]
    begun = [entry.trying_since for entry in (*promises, *notices) if entry.state == "pending"]
    begun += [
        entry.trying_since for linked in run.memory.state.thread_comments(threads).values() for entry in linked.comments
    ]
    return any(is_in_progress(moment, run.now) for moment in begun)


def _delete_on_thread(
    key: ThreadId, stored: Request, shown: Sequence[CommentKey], run: RunContext
) -> Iterator[CommentKey]:
    """Delete our comments on this thread that show the forgotten one, or that are on it. Raises ForgeError."""
    linked = run.memory.state.thread_comments([key]).get(key)
    recorded = {entry.reply for entry in linked.comments} if linked else set()
    for comment in _comments(key, run):
        if key == stored.id and run.own.notice_key(comment):
            _delete(key, int(comment["id"]), run)
        reply_to = 0 if run.own.is_answer(comment) else run.own.reply_target(comment)
        if reply_to is None or (key == stored.id and reply_to == stored.comment_id):
            continue
        is_old = reply_to not in recorded and _mentions(str(comment.get("body") or ""), stored.id)
        if key == stored.id or (key, reply_to) in shown or is_old:
            _delete(key, int(comment["id"]), run)
            yield key, reply_to


def _comments(key: ThreadId, run: RunContext) -> list[Json]:
    """The comments on a thread, which may be gone from memory, so it may be an issue or a discussion."""
    if not isinstance(key, int):
        return []
    try:
        return run.comments_on(key).comments(key)
    except Gone:
        is_final = (
            run.discussion_comments is None
            or run.memory.state.manifest.discussions is None
            or run.discussion_comments.has_listed(key)
        )
    try:
        return [] if is_final or run.discussion_comments is None else run.discussion_comments.comments(key)
    except Gone:
        return []


def _mentions(text: str, key: ThreadId) -> bool:
    pattern = rf"(?:/issues/|/pull/|#|issue |pull request ){re.escape(str(key))}(?![0-9])"
    return re.search(pattern, text.replace(ZERO_WIDTH_SPACE, ""), re.IGNORECASE) is not None


def _delete(key: ThreadId, comment_id: int, run: RunContext) -> None:
    try:
        if not run.is_dry:
            run.comments_on(key).delete_comment(comment_id)
    except Gone:
        return


def _changes_after(deleted: Sequence[CommentKey], key: ThreadId, run: RunContext) -> Changes:
    answers = run.memory.state.answers([thread for thread, reply_to in deleted if not reply_to])
    gone = tuple(StandingComment(thread, run.now, reply_to) for thread, reply_to in deleted)
    owed = tuple(
        renewal for renewal in run.memory.state.manifest.owed if renewal.about == key and renewal.comment_key in deleted
    )
    silent = tuple(replace(_without_match(answer, key), revised_at=run.now) for answer in answers.values())
    return Changes(answers=silent, standing=gone, renewed=owed)


def _without_match(answer: AnswerRecord, key: ThreadId) -> AnswerRecord:
    matches = tuple(match for match in answer.matches if match[0] != key)
    return replace(
        answer,
        state="silent",
        reason=SHOWED_FORGOTTEN,
        text_hash="",
        comment_id=None,
        matches=matches,
        trying_since=None,
    )


def _is_replied(stored: Request, run: RunContext) -> bool:
    return any(run.own.reply_target(comment) == stored.comment_id for comment in _comments(stored.id, run))


def _reply(stored: Request, result: ForgetResult, run: RunContext) -> list[CommentResult]:
    """Reply to whoever asked, without quoting the thread."""
    names = ["reply_forget", *(["reply_forget_left"] if result.left else [])]
    names += ["reply_forget_refused" if result.refused else "reply_forget_history", "reply_forget_unreached"]
    text = "\n\n".join(map(run.renderer.words.say, names))
    rendered = run.renderer.reply(
        Context(), asked="", reply_to=stored.comment_id, now=stored.at, searched=0, answer=text
    )
    bare = Thread(stored.id, "", "", stored.by, stored.at)
    request = ParsedRequest(bare, stored.comment_id, stored.by, stored.at, Command(FORGET))
    return publish_replies([ReplyPlan(request, FORGET, text=rendered.text, good=not result.refused)], run)


def _note_result(stored: Request, result: ForgetResult, run: RunContext) -> None:
    branch = run.settings.branch
    if result.refused:
        cause = f"issue {stored.id} was removed from memory, but older commits of the branch {branch} still contain it"
        remedy = f"allow this token to force-push to {branch}, then start `run: forget` again"
        run.report_fault(HistoryKept(f"{cause} ({result.refused.cause})", remedy))
    are, were = ("would be", "would be") if run.is_dry else ("is", "were")
    history = "" if result.refused else ", and its older commits are gone"
    run.note(f"Issue {stored.id} {are} forgotten: none of its text is on the branch {branch}{history}.")
    if result.deleted:
        run.note(f"Our comments that showed it {were} deleted on: {_list_keys(result.deleted)}.")
    if result.left:
        run.note(f"Not all comments that may show it were checked: {result.left}.")
    if result.pointing:
        run.note(f"These issues refer to it, may quote it, and stay in memory: {_list_keys(result.pointing)}.")
    run.note(REMAINING_COPIES)


def _list_keys(keys: Sequence[ThreadId]) -> str:
    distinct = list(dict.fromkeys(keys))
    more = f" and {len(distinct) - MAX_LISTED:,} more" if len(distinct) > MAX_LISTED else ""
    return ", ".join(map(str, distinct[:MAX_LISTED])) + more
