"""Forgetting a thread: its text leaves memory, the history of the branch, and the comments of ours that show it.

Each step done twice is as good as once: whoever finds it unfinished does all of it again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bot.domain.answer import Context
from bot.domain.changes import FORGET, AnswerRecord, Changes, CommentKey, Request, StandingComment
from bot.domain.thread import FORGOTTEN, GHOST, Thread, ThreadId, Tombstone, is_forgotten
from bot.errors import WorldError
from bot.git.errors import RemoteRefused
from bot.github.api import Json
from bot.github.errors import ForgeError, Gone, RateLimited, Unreachable
from bot.memory.shards import WAITING, read_lines
from bot.pipeline.publish import CommentResult, publish_replies
from bot.pipeline.replies import LOOKED, ReplyPlan, may_administer, react
from bot.pipeline.requests import ParsedRequest, new_requests
from bot.pipeline.run_context import RunContext, RunState, is_at_it
from bot.reading.requests import BREAK, Command

BUSY = "another run was writing at that moment: a later one looks for what it wrote"
SHOWN = "it showed an issue that is forgotten: the comment was deleted"

UNREACHED = (
    "Not reached: mail that was sent; what GitHub keeps of texts before they were edited; forks and clones of the"
    " branch, and a developer's copy until it is fetched again; old commits on GitHub's servers until it removes them;"
    " logs, summaries and files of earlier jobs; the artefacts of releases."
)
"""What stays where it is, for whoever started the run."""

TOLD = 20
"""Numbers of issues that one line names at most."""


class HistoryKept(WorldError):
    """The branch still leads to commits that hold a forgotten thread."""


@dataclass(frozen=True, slots=True)
class ForgetResult:
    """What came of it.

    ``deleted``: where the comments of ours stood that were deleted; ``pointing``: the threads that point at it, and may
    quote it. ``refused``: why the history of the branch stays, None where it went. ``left``: why comments may be left;
    where it ``waits`` a later run looks for them.
    """

    deleted: tuple[ThreadId, ...] = ()
    pointing: tuple[ThreadId, ...] = ()
    refused: RemoteRefused | None = None
    left: str = ""
    waits: bool = False


def forget_by_hand(number: int, bot: RunContext) -> None:
    """Forget an issue because somebody started this run for it."""
    bot.memory.open([number])
    _carry_out(Request(number, number, FORGET, "", bot.now), bot)


def forget_on_request(
    requests: Sequence[ParsedRequest], state: RunState, bot: RunContext
) -> tuple[list[ParsedRequest], list[CommentResult]]:
    """Forget what administrators ask to be forgotten, and what earlier runs began to: the other requests, and what was
    replied. It comes before anything is planned, as that could show the thread."""
    if bot.muted:
        return list(requests), []
    told = [told for stored in _unfinished(bot) for told in _carry_out(stored, bot)]
    asked = [*requests, *_asked_again(state, bot)]
    granted = [request for request in asked if request.name == FORGET and _may_forget(request, bot)]
    for request in granted:
        if not request.before:
            react(request, "eyes", bot)
        told += _carry_out(Request(request.thread.id, request.key, FORGET, request.by, request.at), bot)
    gone = {request.thread.id for request in granted}
    return [request for request in asked if request.thread.id not in gone], told


def _unfinished(bot: RunContext) -> list[Request]:
    begun = (stored for stored in bot.memory.state.manifest.requests_since(bot.now - WAITING) if stored.name == FORGET)
    return [stored for stored in begun if stored.state == "pending" and not is_at_it(stored.trying_since, bot.now)]


def _may_forget(request: ParsedRequest, bot: RunContext) -> bool:
    """Whether the API says so now; where it cannot be asked, the request waits like any other."""
    try:
        return may_administer(request, bot)
    except ForgeError:
        return False


def _asked_again(state: RunState, bot: RunContext) -> list[ParsedRequest]:
    """What the event's comment asks on a thread that is forgotten already, as where history could not be given up."""
    number = state.event.number
    record = bot.memory.records([number]).get(number) if number else None
    if not isinstance(record, Tombstone) or not is_forgotten(record):
        return []
    found = new_requests(Thread(record.id, "", "", GHOST, record.at), state.event, bot)
    return [request for request in found if request.name == FORGET]


def _carry_out(stored: Request, bot: RunContext) -> list[CommentResult]:
    """All of it, and what was replied to whom; nothing where another run took this request up first."""
    is_again = stored.trying_since is not None
    stored = replace(stored, trying_since=bot.now)
    said = bot.memory.state.answers([stored.id]).get(stored.id)
    refused = _forget_text(stored, bot)
    if stored.comment_id in bot.memory.taken_requests:
        return []
    erased = replace(_clear(stored, said, bot), refused=refused)
    _tell(stored, erased, bot)
    if refused:
        bot.report_fault(_history_kept(stored, refused, bot))
    told = (
        [] if erased.waits or not stored.by or (is_again and _is_told(stored, bot)) else _replied(stored, erased, bot)
    )
    if not (erased.waits or any(one.error for one in told)):
        bot.memory.stage(Changes(requests=(replace(stored, state="done", trying_since=None),)))
    bot.memory.commit(f"Forget {stored.id}: what showed it")
    return told


def _forget_text(stored: Request, bot: RunContext) -> RemoteRefused | None:
    """Take it out of memory and of the branch's history; why the latter could not be, None where it was."""
    memory = bot.memory
    held = memory.records([stored.id]).get(stored.id)
    at = max(bot.now, held.revised_at) if held else bot.now
    memory.stage(Changes(records=(Tombstone(stored.id, at, FORGOTTEN),), requests=(stored,)))
    try:
        memory.commit(f"Forget {stored.id}", squash=True)
    except RemoteRefused as error:
        memory.commit(f"Forget {stored.id}")
        return error
    return None


def _clear(stored: Request, before: AnswerRecord | None, bot: RunContext) -> ForgetResult:
    """Delete each comment of ours that shows it. Edited, its text would stay in what GitHub keeps of every edit.

    ``before``: what was said on the thread itself until now.
    """
    memory = bot.memory
    pointing, shown = _pointing(stored.id, bot), _shown_in(stored.id, bot)
    where = list(dict.fromkeys([stored.id, *(key for key, _ in shown), *_long_ago(stored.id, pointing, bot)]))
    deleted: list[CommentKey] = []
    is_busy, left = memory.has_moved or _is_spoken(where, before, bot), ""
    try:
        deleted.extend(comment_key for key in where for comment_key in _deleted(key, stored, shown, bot))
    except ForgeError as error:
        left, is_busy = error.cause, is_busy or isinstance(error, (RateLimited, Unreachable))
    memory.stage(_without(deleted, stored.id, bot))
    left = left or (BUSY if is_busy else "")
    return ForgetResult(tuple(key for key, _ in deleted), tuple(pointing), left=left, waits=is_busy)


def _pointing(key: ThreadId, bot: RunContext) -> list[ThreadId]:
    found: list[ThreadId] = []
    for _, shard in bot.memory.state.base.digest_shards():
        found += [other for other, line in read_lines(shard)[0].items() if _points(line, key)]
    return found


def _points(digest: Mapping[str, Any], key: ThreadId) -> bool:
    """Whether a digest, which may be anything, points at this thread."""
    try:
        outcome = digest.get("outcome") or {}
        named = [one.get("number") for one in digest.get("references") or () if not one.get("owner")]
        named += [digest.get("duplicate_of"), outcome.get("duplicate_of")]
        return key in named or outcome.get("fix") == f"#{key}"
    except (AttributeError, TypeError):
        return False


def _shown_in(key: ThreadId, bot: RunContext) -> tuple[CommentKey, ...]:
    linked = bot.memory.state.thread_comments([key]).get(key)
    return linked.shown_in if linked else ()


def _long_ago(key: ThreadId, pointing: Iterable[ThreadId], bot: RunContext) -> list[ThreadId]:
    """The threads on which comments may show it that were written before memory kept what they show."""
    memory, near = bot.memory, set(pointing)
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


def _is_spoken(where: Sequence[ThreadId], before: AnswerRecord | None, bot: RunContext) -> bool:
    """Whether another run may be writing on one of these threads at this moment, by what it knew before."""
    promises: list[AnswerRecord | Request] = [*bot.memory.state.answers(where).values(), *([before] if before else [])]
    promises += [
        stored
        for stored_requests in bot.memory.requests(where).values()
        for stored in stored_requests
        if stored.name != FORGET
    ]
    begun = [one.trying_since for one in promises if one.state == "pending"]
    begun += [
        one.trying_since for linked in bot.memory.state.thread_comments(where).values() for one in linked.comments
    ]
    return any(is_at_it(moment, bot.now) for moment in begun)


def _deleted(key: ThreadId, stored: Request, shown: Sequence[CommentKey], bot: RunContext) -> Iterator[CommentKey]:
    """Delete the comments of ours on this thread that show the forgotten one, or stand on it. Raises ForgeError."""
    linked = bot.memory.state.thread_comments([key]).get(key)
    known = {one.reply for one in linked.comments} if linked else set()
    for comment in _comments(key, bot):
        reply_to = 0 if bot.own.wrote(comment) else bot.own.replied(comment)
        if reply_to is None or (key == stored.id and reply_to == stored.comment_id):
            continue
        is_old = reply_to not in known and _names(str(comment.get("body") or ""), stored.id)
        if key == stored.id or (key, reply_to) in shown or is_old:
            _delete(int(comment["id"]), bot)
            yield key, reply_to


def _comments(key: ThreadId, bot: RunContext) -> list[Json]:
    try:
        return bot.forge.comments(key) if isinstance(key, int) else []
    except Gone:
        return []


def _names(text: str, key: ThreadId) -> bool:
    named = rf"(?:/issues/|/pull/|#|issue |pull request ){re.escape(str(key))}(?![0-9])"
    return re.search(named, text.replace(BREAK, ""), re.IGNORECASE) is not None


def _delete(comment_id: int, bot: RunContext) -> None:
    try:
        if not bot.is_dry:
            bot.forge.delete_comment(comment_id)
    except Gone:
        return


def _without(deleted: Sequence[CommentKey], key: ThreadId, bot: RunContext) -> Changes:
    main = bot.memory.state.answers([thread for thread, reply_to in deleted if not reply_to])
    gone = tuple(StandingComment(thread, bot.now, reply_to) for thread, reply_to in deleted)
    owed = tuple(one for one in bot.memory.state.manifest.owed if one.about == key and one.comment_key in deleted)
    return Changes(answers=tuple(_taken_out(said, key) for said in main.values()), standing=gone, renewed=owed)


def _taken_out(said: AnswerRecord, key: ThreadId) -> AnswerRecord:
    matches = tuple(match for match in said.matches if match[0] != key)
    return replace(
        said, state="silent", reason=SHOWN, text_hash="", comment_id=None, matches=matches, trying_since=None
    )


def _history_kept(stored: Request, why: RemoteRefused, bot: RunContext) -> HistoryKept:
    branch = bot.settings.branch
    told = f"issue {stored.id} is out of memory, but older commits of the branch {branch} still hold it ({why.cause})"
    return HistoryKept(told, f"let this token force pushes to {branch}, then start `run: forget` again")


def _is_told(stored: Request, bot: RunContext) -> bool:
    return any(bot.own.replied(comment) == stored.comment_id for comment in _comments(stored.id, bot))


def _replied(stored: Request, erased: ForgetResult, bot: RunContext) -> list[CommentResult]:
    """The reply to whoever asked, without a word of the thread."""
    names = ["reply_forget", *(["reply_forget_left"] if erased.left else [])]
    names += ["reply_forget_refused" if erased.refused else "reply_forget_history", "reply_forget_unreached"]
    told = "\n\n".join(map(bot.renderer.words.say, names))
    rendered = bot.renderer.reply(
        Context(), asked="", reply_to=stored.comment_id, now=stored.at, searched=0, answer=told
    )
    bare = Thread(stored.id, "", "", stored.by, stored.at)
    request = ParsedRequest(bare, stored.comment_id, stored.by, stored.at, Command(FORGET))
    return publish_replies([ReplyPlan(request, FORGET, text=rendered.text, good=not erased.refused)], bot)


def _tell(stored: Request, erased: ForgetResult, bot: RunContext) -> None:
    are, were = ("would be", "would be") if bot.is_dry else ("is", "were")
    history = "" if erased.refused else ", nor is any older commit"
    bot.note(f"Issue {stored.id} {are} forgotten: none of its text is on the branch {bot.settings.branch}{history}.")
    if erased.deleted:
        bot.note(f"Comments of ours that showed it {were} deleted on: {_listed(erased.deleted)}.")
    if erased.left:
        bot.note(f"Not all comments that may show it were looked at: {erased.left}.")
    if erased.pointing:
        bot.note(f"These issues point at it and may quote it, and stay in memory: {_listed(erased.pointing)}.")
    bot.note(UNREACHED)


def _listed(keys: Sequence[ThreadId]) -> str:
    distinct = list(dict.fromkeys(keys))
    more = f" and {len(distinct) - TOLD:,} more" if len(distinct) > TOLD else ""
    return ", ".join(map(str, distinct[:TOLD])) + more
