"""What became of each delivery of a run, in the inbox's words: what was written, what was near, and what failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from bot.domain.post import COMMENT
from bot.domain.reason import Reason
from bot.domain.thread import Kind, ThreadId
from bot.errors import PrecedentError, WorldError
from bot.github.errors import Gone, app_remedy
from bot.github.events import CATCH_UP_EVENT, ORGANISATION_EVENT
from bot.github.threads import OwnComment
from bot.memory.memory import Memory
from bot.pipeline.comments import OTHER_RUN_POSTING, RUN_LIMIT_REACHED
from bot.pipeline.draft import NOT_VISIBLE
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.setup import INVALID_SETTINGS
from bot.pipeline.site import RepositorySite
from bot.server.model import Delivery, Instant, Result
from bot.server.work.policy import COMMENT_EVENT, PROMISE_DELAY, DeliveryGroup, is_history_limit, judge_all

EVENT_PROCESSED = "the event was processed"
HANDLED_TOGETHER = "it was handled together with a later delivery"


@dataclass(slots=True)
class Outcomes:
    """What became of the ``deliveries`` of a run so far, of which each has at most ``most`` tries.

    ``errors`` is what failed, by delivery; ``comments`` the result for each thread.
    """

    deliveries: Sequence[Delivery]
    now: Callable[[], Instant]
    most: int
    errors: dict[int, PrecedentError] = field(default_factory=dict)
    comments: dict[ThreadId, CommentResult] = field(default_factory=dict)
    _results: dict[int, Result] = field(default_factory=dict)

    @property
    def results(self) -> list[Result]:
        return list(self._results.values())

    @property
    def unfinished(self) -> list[Delivery]:
        """The deliveries that have no result yet."""
        return [each for each in self.deliveries if each.seq not in self._results]

    def store(self, results: Iterable[Result]) -> None:
        self._results |= {each.seq: replace(each, reason=app_remedy(each.reason)) for each in results}

    def fail(self, deliveries: Iterable[Delivery], error: PrecedentError) -> None:
        """Judge deliveries by the error that stopped them."""
        failed = list(deliveries)
        self.errors |= {each.seq: error for each in failed}
        self.store(judge_all(error, failed, self.now(), self.most))

    def add(self, results: Iterable[CommentResult], number: int) -> CommentResult | None:
        """Add what an event came to. Returns the result for its own issue: a comment or a reply rather than silence."""
        own = [result for result in results if not result.renews]
        for result in own:
            earlier = self.comments.get(result.id)
            if earlier is None or not earlier.spoke:
                self.comments[result.id] = result
        return min((each for each in own if each.id == number), key=lambda each: not each.spoke, default=None)

    def is_done(self, group: DeliveryGroup) -> bool:
        """Whether an earlier event of this run already did the work for this one; then it is recorded."""
        earlier = self.comments.get(group.number)
        if group.event.name == CATCH_UP_EVENT:
            is_done = any(each.state == "done" for each in self._results.values())
        else:
            asks_again = group.event.name in (COMMENT_EVENT, ORGANISATION_EVENT) or group.event.forgets
            is_done = bool(earlier and not earlier.error) and not asks_again
        if is_done:
            self.record(group, earlier, EVENT_PROCESSED)
        return is_done

    def record(self, group: DeliveryGroup, own: CommentResult | None, default: str) -> None:
        """Store the outcome under the last delivery that led to it. If another run is working on it, look again later,
        as that run may have been killed."""
        *others, last = group.deliveries
        self.store(Result(each.seq, "done", HANDLED_TOGETHER) for each in others)
        if own is None:
            result = Result(last.seq, "done", default, said="silent")
        elif own.is_owed and own.reason in (OTHER_RUN_POSTING, RUN_LIMIT_REACHED):
            later = self.now() + (PROMISE_DELAY if own.reason == OTHER_RUN_POSTING else 0)
            result = Result(last.seq, "waiting", own.reason, later, counts=False)
        else:
            url = own.comment.url if own.comment else ""
            reason = default if own.is_owed and own.reason == INVALID_SETTINGS else own.reason
            shown, near = matches(own), nearest(own)
            result = Result(last.seq, "done", reason, said=own.action, url=url, matches=shown, nearest=near)
            if own.is_owed and own.reason.startswith(NOT_VISIBLE):
                self.errors[last.seq] = Gone(own.reason, certain=False)
        self.store([result])


def undone_renewals(results: Iterable[CommentResult], group: DeliveryGroup) -> dict[int, PrecedentError]:
    """The issues of an event whose comments still show what must be withdrawn, with what stopped that."""
    undone = (each for each in results if each.renews and each.is_undone and each.slot == COMMENT)
    return {
        each.id: each.error or WorldError(each.reason)
        for each in undone
        if isinstance(each.id, int) and each.id in group.event.numbers
    }


def without(group: DeliveryGroup, numbers: Iterable[int]) -> DeliveryGroup:
    """The group without the deliveries of these issues."""
    left_out = frozenset(numbers)
    return replace(group, deliveries=tuple(each for each in group.deliveries if each.event.number not in left_out))


def fault_of(
    own: CommentResult | None, error: PrecedentError | None, met: Iterable[PrecedentError]
) -> PrecedentError | None:
    """What stopped an event: what stopped its own comment, else the ``error`` of a feature, else a fault that the run
    ``met`` meanwhile, if its issue has no result."""
    if own and own.error and not own.is_refused:
        return own.error
    if error or (own and not own.is_owed):
        return error
    return next((each for each in met if not is_history_limit(each)), None)


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
    return ", ".join(kind.rstrip(": ") for kind in Reason if any(reason.startswith(kind) for reason in why))


def matches(spoken: CommentResult) -> tuple[tuple[int, float], ...]:
    """Return the issues that were shown, with similarity in 0..1."""
    shown = (*spoken.context.seen_before, *spoken.context.open_now)
    return tuple((match.id, match.similarity) for match in shown if isinstance(match.id, int))
