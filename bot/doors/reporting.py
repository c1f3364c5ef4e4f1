"""What one run did and what went wrong, and how that is told: in the log, the job summary and the outputs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.comment.summary import RunReport, log_line, summarise
from bot.doors.runner import Surroundings, append, context_file, outputs, plain, summary_line
from bot.errors import PrecedentError
from bot.github.errors import Gone, RateLimited
from bot.memory.git_errors import Archived
from bot.outfit import Used
from bot.recall.conversation import Past
from bot.voice import Spoken

NEUTRAL = (RateLimited, Gone, Archived)
"""Errors after which a run is no failed one: what is left is made up for, or there is nothing to be done."""


@dataclass(slots=True)
class Report:
    """What one run did and what went wrong, gathered on the way. ``code`` is its exit code: the worst that was met.

    ``notices`` tell of what somebody may want to know and nobody has to mend. ``is_dry``: nothing is written, so
    that no later run goes on from there. ``past`` is what was said on the issue that the outputs are about.
    """

    said: list[Spoken] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    code: int = 0
    is_dry: bool = False
    past: Past | None = None

    def hear(self, said: Iterable[Spoken]) -> None:
        """Take in what was said, and what could not be."""
        for spoken in said:
            self.said.append(spoken)
            if spoken.error:
                self.meet(spoken.error)
            elif spoken.is_refused:
                self.notice(f"Issue {spoken.id}: {spoken.reason}")

    def note(self, line: str) -> None:
        self.notes.append(line)

    def show(self, line: str) -> None:
        """Progress, in the log at once."""
        say(plain(line))

    def spent(self, used: Used) -> None:
        self.note(sent(used))

    def fail(self, line: str, code: int) -> None:
        if line not in self.failures:
            self.failures.append(line)
        self.code = max(self.code, code)

    def meet(self, error: PrecedentError) -> None:
        """Take an error in: what passes by itself, or is meant so, is a notice; all else fails the run."""
        if isinstance(error, NEUTRAL):
            self.notice(error.cause if self.is_dry and isinstance(error, RateLimited) else str(error))
        else:
            self.fail(str(error), error.exit_code)

    def notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)


def tell(around: Surroundings, report: Report) -> None:
    """One line a thread in the log, the job summary, and outputs for the next step."""
    for line in report.failures:
        say(f"::error::{log_line(line)}")
    for line in report.notices:
        say(f"::notice::{log_line(line)}")
    shown = [_told_once(spoken, report) for spoken in report.said]
    for spoken in shown:
        say(plain(f"Issue {spoken.id}: {spoken.action}{f' ({spoken.reason})' if spoken.reason else ''}"))
    for note in report.notes:
        say(plain(note))
    if around.summary:
        lines = tuple(map(summary_line, shown))
        append(around.summary, summarise(RunReport(lines, (*report.notices, *report.notes), tuple(report.failures))))
    if around.output:
        about = report.past.conversations[0].thread if report.past and report.past.conversations else 0
        silence = Spoken(about, "", "silent", next(iter([*report.failures, *report.notices]), "nothing was due"))
        first = next((spoken for spoken in report.said if not spoken.renews), silence)
        append(around.output, outputs(first, context_file(around, first, report.past)))


def _told_once(spoken: Spoken, report: Report) -> Spoken:
    """Without its reason where that is a limit: for that all waits that was to be said, and it is told by itself."""
    is_told = isinstance(spoken.error, RateLimited) or spoken.reason in report.notices
    return replace(spoken, action="waits", reason="") if is_told else spoken


def sent(used: Used) -> str:
    """How often GitHub's API was asked; of GraphQL's requests, which are for history, each is for many issues."""
    counted = [(used.reads, "read"), (used.writes, "write")]
    rest = ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counted)
    graphql = f" GraphQL: {used.graphql:,} request{'' if used.graphql == 1 else 's'}." if used.graphql else ""
    return f"API: {rest}.{graphql}"


def say(line: str) -> None:
    """One line of the log."""
    print(line, flush=True)
