"""Forgets a thread: removes its text from memory, from the history of the branch, and from our comments; or remembers
it again.

Every step may be repeated: a run that finds an unfinished one starts over.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Sequence
from dataclasses import dataclass, replace

from bot.domain.answer import Context
from bot.domain.changes import FORGET, Changes, Request
from bot.domain.post import Post, PostKey, reply_slot
from bot.domain.thread import FORGOTTEN, GHOST, Thread, ThreadId, Tombstone, is_forgotten
from bot.errors import UserError, WorldError
from bot.git.errors import RemoteRefused
from bot.github.client import Json
from bot.github.errors import ForgeError, Gone, RateLimited, Unreachable
from bot.github.updates import TOMBSTONE_OFFSET
from bot.memory.merge import PENDING_WINDOW
from bot.pipeline.commands import ReplyPlan, may_administer, react, reply_draft
from bot.pipeline.discussions import read_current
from bot.pipeline.draft import Draft
from bot.pipeline.requests import new_requests
from bot.pipeline.room import Room, Settlement
from bot.pipeline.tools import Facts, ParsedRequest, Tools, is_in_progress
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


def forget_by_hand(number: int, run: Tools) -> None:
    """Forget a thread of memory or GitHub. Raises UserError for any other number: the later thread with it would never
    be remembered."""
    memory = run.memory.open([number])
    if number not in memory.whole_records([number]) and not memory.state.is_damaged(number):
        read_now(number, run, "forgotten")
    stored = Request(number, number, FORGET, "", run.now)
    if (result := _carry_out(stored, run)) and not result.waits:
        memory.stage(Changes(requests=(replace(stored, state="done"),)))
    memory.commit(f"Forget {number}: what showed it")


def remember_by_hand(number: int, run: Tools) -> None:
    """Remember a forgotten thread again, as GitHub has it now; what was known about it before stays forgotten.

    Raises UserError for a thread that is not forgotten, or that GitHub does not have.
    """
    memory = run.memory.open([number])
    record = memory.whole_records([number]).get(number)
    if not (isinstance(record, Tombstone) and is_forgotten(record)):
        raise UserError(f"issue {number} is not forgotten; give the number of an issue that is")
    thread = read_now(number, run, "remembered")
    at = max(run.now, record.at + TOMBSTONE_OFFSET)  # later than what forgot it, wherever the two versions meet
    requests = memory.requests([number]).get(number, ())
    unfinished = (stored for stored in requests if stored.name == FORGET and stored.state == "pending")
    changes = Changes(
        records=(replace(thread, updated_at=max(thread.revised_at, at)),),
        requests=tuple(replace(stored, state="done", trying_since=None) for stored in unfinished),
        remembered=((number, at),),
    )
    memory.stage(changes)
    memory.commit(f"Remember {number} again")
    run.note(f"Issue {number} {'would be' if run.is_dry else 'is'} remembered again, as GitHub has it now.")


def read_now(number: int, run: Tools, purpose: str) -> Thread:
    """The thread as GitHub has it. Raises UserError, that it cannot be ``purpose``, if GitHub has none; ForgeError."""
    try:
        return read_current(number, run)
    except Gone as error:
        cause = f"issue {number} cannot be {purpose}: GitHub does not have it"
        raise UserError(f"{cause}; give the number of an issue of this repository") from error


class Forgetting(Room):
    """Forgets what administrators ask for, and what earlier runs left unfinished, before anything is planned that could
    show the thread."""

    answers_events = True

    def __init__(self, facts: Facts, run: Tools) -> None:
        super().__init__(facts, run)
        self.done: list[tuple[Request, ForgetResult]] = []

    def plan(self) -> list[Draft]:
        facts, run = self.facts, self.run
        if run.permit.waits:
            return []
        replies = [self._forget(stored) for stored in _unfinished(run)]
        requests = [*facts.requests, *_repeated_requests(facts, run)]
        granted = [request for request in requests if request.name == FORGET and _may_forget(request, run)]
        for request in granted:
            if not request.before:
                react(request, "eyes", run)
            replies.append(self._forget(Request(request.thread.id, request.key, FORGET, request.by, request.at)))
        gone = {request.thread.id for request in granted}
        facts.requests = [request for request in facts.requests if request.thread.id not in gone]
        facts.comments |= run.memory.state.comments(facts.comments)  # ours were deleted
        return [reply for reply in replies if reply]

    def _forget(self, stored: Request) -> Draft | None:
        """Forget everywhere. Returns the reply; None if there is none, or another run took this request first."""
        is_again = stored.trying_since is not None
        result = _carry_out(stored, self.run)
        if result is None:
            return None
        self.done.append((stored, result))
        if not stored.by or result.waits or (is_again and _is_replied(stored, self.run)):
            return None
        return _reply(stored, result, self.run)

    def settle(self, settlements: Sequence[Settlement]) -> None:
        results = {draft.key: outcome for draft, _, outcome in settlements}
        for stored, forgotten in self.done:
            reply = results.get(PostKey(stored.id, reply_slot(stored.comment_id)))
            if reply and not reply.is_undone:
                react(_request_of(stored), "confused" if forgotten.refused else "rocket", self.run)
            if not (forgotten.waits or (reply and reply.error)):
                done = replace(stored, state="done", trying_since=None)
                self.run.memory.stage(Changes(requests=(done,)))


def _unfinished(run: Tools) -> list[Request]:
    begun = (
        stored for stored in run.memory.state.manifest.requests_since(run.now - PENDING_WINDOW) if stored.name == FORGET
    )
    return [
        stored for stored in begun if stored.state == "pending" and not is_in_progress(stored.trying_since, run.now)
    ]


def _may_forget(request: ParsedRequest, run: Tools) -> bool:
    """Whether an administrator asks, according to the API now. If it cannot be reached, the request waits."""
    try:
        return may_administer(request, run)
    except ForgeError:
        return False


def _repeated_requests(facts: Facts, run: Tools) -> list[ParsedRequest]:
    """A repeated request in the event's comment on a forgotten thread, for example because the history was kept."""
    number = facts.event.number
    record = run.memory.whole_records([number]).get(number) if number else None
    if not isinstance(record, Tombstone) or not is_forgotten(record):
        return []
    requests = new_requests(Thread(record.id, "", "", GHOST, record.at), facts.event, run)
    return [request for request in requests if request.name == FORGET]


def _carry_out(stored: Request, run: Tools) -> ForgetResult | None:
    """Forget everywhere. None if another run took this request first."""
    stored = replace(stored, trying_since=run.now)
    before = run.memory.state.posts_on(stored.id).posts
    refused = _forget_text(stored, run)
    if stored.comment_id in run.memory.taken_requests:
        return None
    result = replace(_delete_posts(stored, before, run), refused=refused)
    _note_result(stored, result, run)
    return result


def _forget_text(stored: Request, run: Tools) -> RemoteRefused | None:
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


def _delete_posts(stored: Request, before: Sequence[Post], run: Tools) -> ForgetResult:
    """Delete each of our posts that shows it; if they were only edited, GitHub would keep the earlier text.

    ``before`` are the posts on the thread itself, which memory has just forgotten.
    """
    memory, shown_by = run.memory, run.memory.state.posts_on(stored.id).shown_by
    threads = list(dict.fromkeys([stored.id, *(key.thread for key in shown_by)]))
    busy = _keys_being_written(threads, before, run)
    is_busy, left = memory.has_moved or bool(busy) or _are_requests_handled(threads, run), ""
    notes = {key for key in shown_by if key.is_note and key not in busy}
    deleted = list[PostKey]()
    try:
        for key in threads:
            deleted += _delete_on_thread(key, stored, frozenset(shown_by) - busy, run)
    except ForgeError as error:
        left, is_busy = error.cause, is_busy or isinstance(error, (RateLimited, Unreachable))
    memory.stage(_changes_after({*deleted, *notes}, stored.id, run))
    keys = tuple(key.thread for key in deleted)
    pointing = tuple(_find_referring(stored.id, run))
    return ForgetResult(keys, pointing, left=left or (OTHER_RUN_WRITING if is_busy else ""), waits=is_busy)


def _keys_being_written(threads: Iterable[ThreadId], before: Iterable[Post], run: Tools) -> set[PostKey]:
    """The posts on these threads that another run may be writing now, from its older memory."""
    on_threads = (post for thread in run.memory.state.posts(threads).values() for post in thread.posts)
    return {post.key for post in (*on_threads, *before) if is_in_progress(post.trying_since, run.now)}


def _are_requests_handled(threads: Iterable[ThreadId], run: Tools) -> bool:
    """Whether another run may be handling requests on these threads now."""
    requests = (stored for on_thread in run.memory.requests(threads).values() for stored in on_thread)
    return any(
        is_in_progress(stored.trying_since, run.now)
        for stored in requests
        if stored.name != FORGET and stored.state == "pending"
    )


def _find_referring(key: ThreadId, run: Tools) -> list[ThreadId]:
    return [
        card.id
        for card in run.memory.state.cards()
        if key in (*card.references, card.duplicate_of) or card.ending.fix == f"#{key}"
    ]


def _delete_on_thread(key: ThreadId, stored: Request, shown_by: Container[PostKey], run: Tools) -> list[PostKey]:
    """Delete our posts on this thread that show the forgotten one, or that are on it. Raises ForgeError."""
    deleted, asked = list[PostKey](), reply_slot(stored.comment_id)
    for comment in _comments(key, run):
        slot = run.own.slot(comment)
        if slot is None or (key == stored.id and slot == asked):
            continue
        if key == stored.id or PostKey(key, slot) in shown_by:
            _delete(key, int(comment["id"]), run)
            deleted.append(PostKey(key, slot))
    return deleted


def _comments(key: ThreadId, run: Tools) -> list[Json]:
    """The comments on a thread, which may be gone from memory, so it may be an issue or a discussion."""
    if not isinstance(key, int):
        return []
    try:
        return run.comments_on(key).comments(key)
    except Gone:
        if run.memory.state.manifest.discussions is None or run.discussion_comments.has_listed(key):
            return []
    try:
        return run.discussion_comments.comments(key)
    except Gone:
        return []


def _delete(key: ThreadId, comment_id: int, run: Tools) -> None:
    try:
        if run.permit.takes_out:
            run.comments_on(key).delete_comment(comment_id)
    except Gone:
        return


def _changes_after(deleted: Collection[PostKey], key: ThreadId, run: Tools) -> Changes:
    posts = run.memory.state.posts({deleted_key.thread for deleted_key in deleted})
    gone = [post for thread in posts.values() for post in thread.posts if post.key in deleted]
    owed = (
        renewal
        for renewal in run.memory.state.manifest.renewals_due
        if renewal.about == key and renewal.post_key in deleted
    )
    return Changes(posts=tuple(_without_thread(post, key, run) for post in gone), renewals_done=tuple(owed))


def _without_thread(post: Post, key: ThreadId, run: Tools) -> Post:
    """The post as deleted. A comment may be written again without the thread; a note may not."""
    return replace(
        post,
        state="removed" if post.key.is_note else "silent",
        reason=SHOWED_FORGOTTEN,
        content="",
        comment_id=None,
        matches=tuple(match for match in post.matches if match[0] != key),
        trying_since=None,
        revised_at=max(run.now, (post.revised_at or post.at) + TOMBSTONE_OFFSET),
    ).showing(None)


def _is_replied(stored: Request, run: Tools) -> bool:
    slot = reply_slot(stored.comment_id)
    return any(run.own.slot(comment) == slot for comment in _comments(stored.id, run))


def _request_of(stored: Request) -> ParsedRequest:
    """The request without the forgotten text."""
    bare = Thread(stored.id, "", "", stored.by, stored.at)
    return ParsedRequest(bare, stored.comment_id, stored.by, stored.at, Command(FORGET))


def _reply(stored: Request, result: ForgetResult, run: Tools) -> Draft:
    """Reply to whoever asked, without quoting the thread."""
    names = ["reply_forget", *(["reply_forget_left"] if result.left else [])]
    names += ["reply_forget_refused" if result.refused else "reply_forget_history", "reply_forget_unreached"]
    text = "\n\n".join(map(run.renderer.words.say, names))
    rendered = run.renderer.reply(
        Context(), asked="", reply_to=stored.comment_id, now=stored.at, searched=0, answer=text
    )
    return reply_draft(ReplyPlan(_request_of(stored), FORGET, text=rendered.text), run)


def _note_result(stored: Request, result: ForgetResult, run: Tools) -> None:
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
