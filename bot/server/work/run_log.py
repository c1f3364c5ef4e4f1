"""Collects the report of a run: notes, faults, the time of each stage, and the comments."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field

from bot.domain.thread import Kind
from bot.errors import PrecedentError
from bot.github.threads import OwnComment
from bot.memory.memory import Memory
from bot.pipeline.comments import OTHER_RUN_POSTING
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.setup import ApiUsage
from bot.pipeline.site import RepositorySite
from bot.server.spans import span

MAX_NOTES = 20
MAX_NOTE_CHARS = 300
REASON_KINDS = ("same text", "same error", "same file", "both name", "both speak of")
"""How reasons begin (see `bot.recall.similar`); words of issues follow."""

log = logging.getLogger(__name__)


@dataclass(slots=True)
class RunLog:
    """The `RunListener` of one run. ``clock`` is in seconds.

    ``met`` are faults after which the run continued; ``failed`` is what the repository has to fix.
    """

    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)
    met: list[PrecedentError] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    used: ApiUsage = field(default_factory=lambda: ApiUsage(0, 0, 0))
    seconds: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _since: float = 0.0
    _span: ExitStack = field(default_factory=ExitStack)

    def note(self, line: str) -> None:
        line = " ".join(line.split())[:MAX_NOTE_CHARS]
        if line not in self.notes:
            log.info("%s", line)
            self.notes = [*self.notes, line][:MAX_NOTES]

    def show(self, line: str) -> None:
        """Show nothing."""

    def report_fault(self, error: PrecedentError) -> None:
        self.met.append(error)
        self.note(str(error))

    def fail(self, line: str, code: int) -> None:  # noqa: ARG002 - a server goes on
        self.failed.append(line)
        self.note(line)

    def note_api_usage(self, used: ApiUsage) -> None:
        self.used = used

    def on_stage(self, stage: str) -> None:
        """End the current stage and its span, and start another; "" for none."""
        now = self.clock()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now
        self._span.close()
        if stage:
            self._span.enter_context(span(stage))


def result_for(results: Iterable[CommentResult], number: int) -> CommentResult | None:
    """Return the result for an issue: a comment or a reply rather than silence."""
    return min((each for each in results if each.id == number), key=lambda each: not each.spoke, default=None)


def earlier_result(memory: Memory, number: int, site: RepositorySite) -> CommentResult | None:
    """Return an earlier answer from memory, whose run may have died before it could report it."""
    answer = memory.state.comments([number]).get(number)
    if answer and answer.state == "pending" and answer.trying_since:
        return CommentResult(number, "", "silent", OTHER_RUN_POSTING, is_owed=True)
    if answer is None or answer.state not in ("said", "silent", "removed", "withdrawn"):
        return None
    if answer.state != "said":
        return CommentResult(number, "", "silent", answer.reason)
    entry = memory.entries([number]).get(number)
    traits = (entry.kind if entry else Kind.ISSUE).traits
    url = f"{site.server_url}/{site.repository}/{traits.path}/{number}{traits.comment_path}{answer.comment_id}"
    comment = OwnComment(answer.comment_id, "", url) if answer.comment_id else None
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
