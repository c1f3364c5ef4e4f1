"""What a run reports: notes, faults, the time of each stage, and what was said on an issue."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from bot.errors import PrecedentError
from bot.github.threads import OwnComment
from bot.memory.memory import Memory
from bot.pipeline.plan import BUSY
from bot.pipeline.publish import CommentResult
from bot.pipeline.setup import ApiUsage, RepositorySite

MOST_NOTES = 20
MOST_CHARACTERS = 300
KINDS = ("same text", "same error", "same file", "both name", "both speak of")
"""How reasons begin, see `bot.recall.similar`; what follows are words of issues."""


@dataclass(slots=True)
class RunLog:
    """The `RunListener` of one run. ``clock`` is in seconds.

    ``met`` are faults that the run went on after, ``failed`` what the repository has to mend.
    """

    clock: Callable[[], float] = time.monotonic
    notes: list[str] = field(default_factory=list)
    met: list[PrecedentError] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    used: ApiUsage = field(default_factory=lambda: ApiUsage(0, 0, 0))
    seconds: dict[str, float] = field(default_factory=dict)
    _stage: str = ""
    _since: float = 0.0

    def note(self, line: str) -> None:
        line = " ".join(line.split())[:MOST_CHARACTERS]
        if line not in self.notes and len(self.notes) < MOST_NOTES:
            self.notes.append(line)

    def show(self, line: str) -> None:
        """Nobody watches."""

    def report_fault(self, error: PrecedentError) -> None:
        self.met.append(error)
        self.note(str(error))

    def fail(self, line: str, code: int) -> None:  # noqa: ARG002 - a server goes on
        self.failed.append(line)
        self.note(line)

    def note_api_usage(self, used: ApiUsage) -> None:
        self.used = used

    def watch(self, stage: str) -> None:
        """A stage begins, and the one before it is over; "" for none."""
        now = self.clock()
        if self._stage:
            self.seconds[self._stage] = self.seconds.get(self._stage, 0.0) + now - self._since
        self._stage, self._since = stage, now


def about(results: Iterable[CommentResult], number: int) -> CommentResult | None:
    """What was said on an issue: a comment or a reply before silence."""
    return min((each for each in results if each.id == number), key=lambda each: not each.spoke, default=None)


def standing(memory: Memory, number: int, site: RepositorySite) -> CommentResult | None:
    """What memory has of an earlier answer, which a run gave, or was about to give and did not live to report."""
    said = memory.state.answers([number]).get(number)
    if said and said.state == "pending" and said.trying_since:
        return CommentResult(number, "", "silent", BUSY, is_owed=True)
    if said is None or said.state not in ("said", "silent", "removed", "withdrawn"):
        return None
    if said.state != "said":
        return CommentResult(number, "", "silent", said.reason)
    url = f"{site.server_url}/{site.repository}/issues/{number}#issuecomment-{said.comment_id}"
    comment = OwnComment(said.comment_id, "", url) if said.comment_id else None
    return CommentResult(number, "", "unchanged", "it was said before", comment=comment)


def nearest(spoken: CommentResult) -> tuple[tuple[int, float, str], ...]:
    """The issues most like it, shown or not, each with its similarity in 0..1 and the kinds of reasons."""
    return tuple((m.id, m.similarity, _kinds(m.why)) for m in spoken.nearest if isinstance(m.id, int))


def _kinds(why: Iterable[str]) -> str:
    """Which kinds of reasons: no word of an issue goes into the inbox."""
    return ", ".join(kind for kind in KINDS if any(f"{reason} ".startswith(f"{kind} ") for reason in why))


def matches(spoken: CommentResult) -> tuple[tuple[int, float], ...]:
    """The issues that were shown, each with its similarity in 0..1."""
    shown = (*spoken.context.seen_before, *spoken.context.open_now)
    return tuple((match.id, match.similarity) for match in shown if isinstance(match.id, int))
