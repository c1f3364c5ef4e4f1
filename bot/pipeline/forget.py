"""Forgets a thread: removes its text from memory, from the history of the branch, and from our comments.

Every step may be repeated: a run that finds it unfinished does all of it again.
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
from bot.memory.merge import WAITING
from bot.memory.shards import read_lines
from bot.pipeline.publish import CommentResult, publish_replies
from bot.pipeline.replies import LOOKED, ReplyPlan, may_administer, react
from bot.pipeline.requests import ParsedRequest, new_requests
from bot.pipeline.run_context import RunContext, RunState, is_at_it
from bot.reading.requests import BREAK, Command

BUSY = "another run was writing at that moment; a later run looks for its comments"
SHOWN = "it showed an issue that is forgotten: the comment was deleted"

UNREACHED = (
    "Not reached: mail that was sent; what GitHub keeps of texts before they were edited; forks and clones of the"
    " branch, and a developer's copy until it is fetched again; old commits on GitHub's servers until it removes them;"
    " logs, summaries and files of earlier jobs; the artefacts of releases."
)
"""The copies that Precedent cannot delete, for the person who started the run."""

TOLD = 20
"""Most issue numbers in one line."""


class HistoryKept(WorldError):
    """Older commits of the branch still hold a forgotten thread."""


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """The result of forgetting a thread.

    ``deleted`` lists the threads on which our comments were deleted, ``pointing`` those that refer to the forgotten
    thread and may quote it. ``refused``: why the history of the branch stays, None if it was replaced. ``left``: why
    some comments may remain; if it ``waits``, a later run looks for them.
    """

    deleted: tuple[ThreadId, ...] = ()
    pointing: tuple[ThreadId, ...] = ()
    refused: RemoteRefused | None = None
    left: str = ""
    waits: bool = False


def forget_by_hand(number: int, run: RunContext) -> None:
    run.memory.open([number])
    _carry_out(Request(number, number, FORGET, "", run.now), run)


def forget_on_request(
    requests: Sequence[ParsedRequest], state: RunState, run: RunContext
) -> tuple[list[ParsedRequest], list[CommentResult]]:
    """Forget what administrators ask for, and what earlier runs left unfinished. Returns the other requests and the
    replies. This comes before anything is planned, as a plan could show the thread."""
    if run.muted:
        return list(requests), []
    replies = [reply for stored in _unfinished(run) for reply in _carry_out(stored, run)]
    requests = [*requests, *_asked_again(state, run)]
    granted = [request for request in requests if request.name == FORGET and _may_forget(request, run)]
    for request in granted:
        if not request.before:
            react(request, "eyes", run)
        replies += _carry_out(Request(request.thread.id, request.key, FORGET, request.by, request.at), run)
    gone = {request.thread.id for request in granted}
    return [request for request in requests if request.thread.id not in gone], replies


def _unfinished(run: RunContext) -> list[Request]:
    begun = (stored for stored in run.memory.state.manifest.requests_since(run.now - WAITING) if stored.name == FORGET)
    return [stored for stored in begun if stored.state == "pending" and not is_at_it(stored.trying_since, run.now)]


def _may_forget(request: ParsedRequest, run: RunContext) -> bool:
    """Whether an administrator asks, as the API says now. If it cannot be reached, the request waits like others."""
    try:
        return may_administer(request, run)
    except ForgeError:
        return False


def _asked_again(state: RunState, run: RunContext) -> list[ParsedRequest]:
    """A repeated request in the event's comment on a forgotten thread, such as one whose history was kept."""
    number = state.event.number
    record = run.memory.records([number]).get(number) if number else None
    if not isinstance(record, Tombstone) or not is_forgotten(record):
        return []
    found = new_requests(Thread(record.id, "", "", GHOST, record.at), state.event, run)
    return [request for request in found if request.name == FORGET]


def _carry_out(stored: Request, run: RunContext) -> list[CommentResult]:
    """Forget everywhere, and reply; returns nothing if another run took this request first."""
    is_again = stored.trying_since is not None
    stored = replace(stored, trying_since=run.now)
    said = run.memory.state.answers([stored.id]).get(stored.id)
    refused = _forget_text(stored, run)
    if stored.comment_id in run.memory.taken_requests:
        return []
    erased = replace(_clear(stored, said, run), refused=refused)
    _note(stored, erased, run)
    replies: list[CommentResult] = []
    if stored.by and not erased.waits and not (is_again and _is_replied(stored, run)):
        replies = _reply(stored, erased, run)
    if not (erased.waits or any(one.error for one in replies)):
        run.memory.stage(Changes(requests=(replace(stored, state="done", trying_since=None),)))
    run.memory.commit(f"Forget {stored.id}: what showed it")
    return replies


def _forget_text(stored: Request, run: RunContext) -> RemoteRefused | None:
    """Remove it from memory and from the branch's history; returns why the history was kept, None if it was not."""
    memory = run.memory
    held = memory.records([stored.id]).get(stored.id)
    at = max(run.now, held.revised_at) if held else run.now
    memory.stage(Changes(records=(Tombstone(stored.id, at, FORGOTTEN),), requests=(stored,)))
    try:
        memory.commit(f"Forget {stored.id}", squash=True)
    except RemoteRefused as error:
        memory.commit(f"Forget {stored.id}")
        return error
    return None


def _clear(stored: Request, before: AnswerRecord | None, run: RunContext) -> ForgetResult:
    """Delete each of our comments that shows it: after an edit, GitHub would keep the earlier text.

    ``before`` is the answer on the thread itself until now.
    """
    memory = run.memory
    pointing, shown = _pointing(stored.id, run), _shown_in(stored.id, run)
    where = list(dict.fromkeys([stored.id, *(key for key, _ in shown), *_long_ago(stored.id, pointing, run)]))
    deleted, taken_back = list[CommentKey](), list[ThreadId]()
    told = _told_of(stored.id, run)
    is_busy, left = memory.has_moved or _is_spoken(where, before, told, run), ""
    try:
        deleted.extend(comment_key for key in where for comment_key in _deleted(key, stored, shown, run))
        for notice in told:
            if not is_at_it(notice.trying_since, run.now):  # else a later run deletes it, once it stands
                taken_back += [notice.id] if _take_back(notice, run) else []
    except ForgeError as error:
        left, is_busy = error.cause, is_busy or isinstance(error, (RateLimited, Unreachable))
    memory.stage(_without(deleted, stored.id, run))
    keys = (*(key for key, _ in deleted), *taken_back)
    return ForgetResult(keys, tuple(pointing), left=left or (BUSY if is_busy else ""), waits=is_busy)


def _pointing(key: ThreadId, run: RunContext) -> list[ThreadId]:
    found: list[ThreadId] = []
    for _, shard in run.memory.state.base.digest_shards():
        found += [other for other, line in read_lines(shard)[0].items() if _points(line, key)]
    return found


def _points(digest: Mapping[str, Any], key: ThreadId) -> bool:
    """Whether a digest (any JSON) refers to this thread."""
    try:
        outcome = digest.get("outcome") or {}
        named = [one.get("number") for one in digest.get("references") or () if not one.get("owner")]
        named += [digest.get("duplicate_of"), outcome.get("duplicate_of")]
        return key in named or outcome.get("fix") == f"#{key}"
    except (AttributeError, TypeError):
        return False


def _shown_in(key: ThreadId, run: RunContext) -> tuple[CommentKey, ...]:
    linked = run.memory.state.thread_comments([key]).get(key)
    return linked.shown_in if linked else ()


def _long_ago(key: ThreadId, pointing: Iterable[ThreadId], run: RunContext) -> list[ThreadId]:
    """The threads with comments that may show it, written before memory kept what comments show."""
    memory, near = run.memory, set(pointing)
    stands = (said for said in memory.state.every_answer() if said.comment_id or said.state == "pending")
    may_show = [(said.id, 0) for said in stands if said.id in near or key in dict(said.matches)]
    replied = (
        stored
        for stored in memory.state.every_request()
        if stored.name in LOOKED and (stored.reply_id or stored.trying_since)
    )
    may_show += [(stored.id, stored.comment_id) for stored in replied]
    linked = memory.state.thread_comments(thread for thread, _ in may_show).values()
    known = {one.comment_key for each in linked for one in each.comments}
    return [comment_key[0] for comment_key in may_show if comment_key not in known]


def _told_of(key: ThreadId, run: RunContext) -> list[ReleaseNotice]:
    """The release notices on duplicates that call this thread the original."""
    every = run.memory.state.every_thread_comments()
    return [notice for linked in every for notice in linked.notices if notice.original == key]


def _take_back(notice: ReleaseNotice, run: RunContext) -> bool:
    """Delete a release notice, and keep that none is to be written. Returns whether it stood. Raises ForgeError."""
    wanted = notice_mark(notice.ref)
    standing = [comment for comment in _comments(notice.id, run) if run.own.noticed(comment) == wanted]
    for comment in standing:
        _delete(notice.id, int(comment["id"]), run)
    gone = replace(notice, original=None, state="removed", comment_id=None, trying_since=None)
    run.memory.stage(Changes(notices=(gone,)))
    return bool(standing)


def _is_spoken(
    where: Sequence[ThreadId], before: AnswerRecord | None, told: Sequence[ReleaseNotice], run: RunContext
) -> bool:
    """Whether another run may be writing on one of these threads now, with what it knew before."""
    promises: list[AnswerRecord | Request] = [*run.memory.state.answers(where).values(), *([before] if before else [])]
    requests = (stored for found in run.memory.requests(where).values() for stored in found)
    promises += [stored for stored in requests if stored.name != FORGET]
    begun = [one.trying_since for one in (*promises, *told) if one.state == "pending"]
    begun += [
        one.trying_since for linked in run.memory.state.thread_comments(where).values() for one in linked.comments
    ]
    return any(is_at_it(moment, run.now) for moment in begun)


def _deleted(key: ThreadId, stored: Request, shown: Sequence[CommentKey], run: RunContext) -> Iterator[CommentKey]:
    """Delete our comments on this thread that show the forgotten one, or stand on it. Raises ForgeError."""
    linked = run.memory.state.thread_comments([key]).get(key)
    known = {one.reply for one in linked.comments} if linked else set()
    for comment in _comments(key, run):
        if key == stored.id and run.own.noticed(comment):
            _delete(key, int(comment["id"]), run)
        reply_to = 0 if run.own.wrote(comment) else run.own.replied(comment)
        if reply_to is None or (key == stored.id and reply_to == stored.comment_id):
            continue
        is_old = reply_to not in known and _names(str(comment.get("body") or ""), stored.id)
        if key == stored.id or (key, reply_to) in shown or is_old:
            _delete(key, int(comment["id"]), run)
            yield key, reply_to


def _comments(key: ThreadId, run: RunContext) -> list[Json]:
    """The comments on a thread, which may be gone from memory: what is no issue may be a discussion."""
    if not isinstance(key, int):
        return []
    try:
        return run.comments_on(key).comments(key)
    except Gone:
        is_known = run.talks is None or run.memory.state.manifest.discussions is None or run.talks.has_met(key)
    try:
        return [] if is_known or run.talks is None else run.talks.comments(key)
    except Gone:
        return []


def _names(text: str, key: ThreadId) -> bool:
    named = rf"(?:/issues/|/pull/|#|issue |pull request ){re.escape(str(key))}(?![0-9])"
    return re.search(named, text.replace(BREAK, ""), re.IGNORECASE) is not None


def _delete(key: ThreadId, comment_id: int, run: RunContext) -> None:
    try:
        if not run.is_dry:
            run.comments_on(key).delete_comment(comment_id)
    except Gone:
        return


def _without(deleted: Sequence[CommentKey], key: ThreadId, run: RunContext) -> Changes:
    main = run.memory.state.answers([thread for thread, reply_to in deleted if not reply_to])
    gone = tuple(StandingComment(thread, run.now, reply_to) for thread, reply_to in deleted)
    owed = tuple(one for one in run.memory.state.manifest.owed if one.about == key and one.comment_key in deleted)
    return Changes(answers=tuple(_taken_out(said, key) for said in main.values()), standing=gone, renewed=owed)


def _taken_out(said: AnswerRecord, key: ThreadId) -> AnswerRecord:
    matches = tuple(match for match in said.matches if match[0] != key)
    return replace(
        said, state="silent", reason=SHOWN, text_hash="", comment_id=None, matches=matches, trying_since=None
    )


def _is_replied(stored: Request, run: RunContext) -> bool:
    return any(run.own.replied(comment) == stored.comment_id for comment in _comments(stored.id, run))


def _reply(stored: Request, erased: ForgetResult, run: RunContext) -> list[CommentResult]:
    """Reply to whoever asked, without a word from the thread."""
    names = ["reply_forget", *(["reply_forget_left"] if erased.left else [])]
    names += ["reply_forget_refused" if erased.refused else "reply_forget_history", "reply_forget_unreached"]
    text = "\n\n".join(map(run.renderer.words.say, names))
    rendered = run.renderer.reply(
        Context(), asked="", reply_to=stored.comment_id, now=stored.at, searched=0, answer=text
    )
    bare = Thread(stored.id, "", "", stored.by, stored.at)
    request = ParsedRequest(bare, stored.comment_id, stored.by, stored.at, Command(FORGET))
    return publish_replies([ReplyPlan(request, FORGET, text=rendered.text, good=not erased.refused)], run)


def _note(stored: Request, erased: ForgetResult, run: RunContext) -> None:
    branch = run.settings.branch
    if erased.refused:
        cause = f"issue {stored.id} is out of memory, but older commits of the branch {branch} still hold it"
        remedy = f"let this token force pushes to {branch}, then start `run: forget` again"
        run.report_fault(HistoryKept(f"{cause} ({erased.refused.cause})", remedy))
    are, were = ("would be", "would be") if run.is_dry else ("is", "were")
    history = "" if erased.refused else ", nor is any older commit"
    run.note(f"Issue {stored.id} {are} forgotten: none of its text is on the branch {branch}{history}.")
    if erased.deleted:
        run.note(f"Our comments that showed it {were} deleted on: {_listed(erased.deleted)}.")
    if erased.left:
        run.note(f"Not all comments that may show it were checked: {erased.left}.")
    if erased.pointing:
        run.note(f"These issues refer to it, may quote it, and stay in memory: {_listed(erased.pointing)}.")
    run.note(UNREACHED)


def _listed(keys: Sequence[ThreadId]) -> str:
    distinct = list(dict.fromkeys(keys))
    more = f" and {len(distinct) - TOLD:,} more" if len(distinct) > TOLD else ""
    return ", ".join(map(str, distinct[:TOLD])) + more
