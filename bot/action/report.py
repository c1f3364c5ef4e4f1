"""What a run did, for the people who watch it: the job summary, and lines that are safe to log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.action.environment import RunnerEnvironment, append, context_file, outputs
from bot.comment.catalogue import numbered
from bot.comment.clean_text import log_line, plain_log_line
from bot.comment.defang import inline, link
from bot.domain.answer import Match
from bot.errors import PrecedentError
from bot.git.errors import Archived
from bot.github.errors import Gone, RateLimited
from bot.pipeline.publish import CommentResult
from bot.pipeline.setup import ApiUsage
from bot.questions.context import RecentConversations

MAX_BYTES = 1_000_000
"""Below the 1 MiB above which GitHub drops the whole summary of a step."""

NEAREST = "The nearest issues, with their similarity"
_TEXT_CHARS = 300
_NOTE_CHARS = 1_000

_CUT = "\n*The rest did not fit.*\n"


def summarise(said: Iterable[CommentResult] = (), notes: Iterable[str] = (), problems: Iterable[str] = ()) -> str:
    """The job summary as Markdown: problems first, then what was said and why not, then how the stages went.

    At most 1 MB: too long a report ends at a whole entry and says so.
    """
    return _within(_entries(list(said), list(notes), list(problems)), MAX_BYTES)


def _entries(said: list[CommentResult], notes: list[str], problems: list[str]) -> Iterable[str]:
    yield "### Precedent\n"
    if problems:
        yield "\n**Needs attention**\n\n"
        yield from (f"- {inline(problem, _TEXT_CHARS)}\n" for problem in problems)
    if said:
        yield "\n**Threads**\n\n"
        yield from map(_said, said)
    if notes:
        yield "\n**How it went**\n\n"
        yield from (f"- {inline(note, _NOTE_CHARS)}\n" for note in notes)
    if not (problems or said or notes):
        yield "\nNothing to do.\n"


def _said(spoken: CommentResult) -> str:
    name = inline(f"{numbered(spoken.id)}: {spoken.title}" if spoken.title else numbered(spoken.id), _TEXT_CHARS)
    url = spoken.comment.url if spoken.comment else ""
    shown = link(spoken.action, url) if url else inline(spoken.action, _TEXT_CHARS)
    line = f"- {name} · {shown}{f' · {inline(spoken.reason, _TEXT_CHARS)}' if spoken.reason else ''}\n"
    shadow = spoken.text if spoken.action == "would say" else ""
    return f"{line}{_folded_in('What it would have said', shadow)}{_folded_in(NEAREST, _nearest(spoken.nearest))}"


def _folded_in(title: str, text: str) -> str:
    if not text:
        return ""
    indented = "\n".join(f"  {row}".rstrip() for row in text.strip().split("\n"))
    return f"\n  <details><summary>{title}</summary>\n\n{indented}\n\n  </details>\n\n"


def _nearest(found: Iterable[Match]) -> str:
    """Each with its similarity and why, whether it was shown or not: what is less sure is not lost to whoever looks."""
    lines = []
    for one in found:
        name = inline(f"{numbered(one.id)}: {one.title}", _TEXT_CHARS)
        why = inline(f"{one.state} · {', '.join(one.why)}".replace("`", ""), _TEXT_CHARS)
        lines.append(f"- {one.similarity:.2f} · {name} · {why}\n")
    return "".join(lines)


def _within(entries: Iterable[str], limit: int) -> str:
    kept: list[str] = []
    left = limit - len(_CUT.encode())
    for entry in entries:
        left -= len(entry.encode("utf-8", "replace"))
        if left < 0:
            return "".join([*kept, _CUT])
        kept.append(entry)
    return "".join(kept)


NEUTRAL = (RateLimited, Gone, Archived)
"""Errors after which a run is no failed one: what is left is made up for, or there is nothing to be done."""


@dataclass(slots=True)
class ActionReport:
    """What one run did and what went wrong, gathered on the way. ``code`` is its exit code: the worst that was met.

    ``notices`` tell of what somebody may want to know and nobody has to mend. ``is_dry``: nothing is written, so
    that no later run goes on from there. ``past`` is what was said on the issue that the outputs are about.
    """

    said: list[CommentResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    code: int = 0
    is_dry: bool = False
    past: RecentConversations | None = None

    def add_results(self, said: Iterable[CommentResult]) -> None:
        """Take in what was said, and what could not be."""
        for spoken in said:
            self.said.append(spoken)
            if spoken.error:
                self.report_fault(spoken.error)
            elif spoken.is_refused:
                self.notice(f"Issue {spoken.id}: {spoken.reason}")

    def note(self, line: str) -> None:
        self.notes.append(line)

    def show(self, line: str) -> None:
        """Progress, in the log at once."""
        say(plain_log_line(line))

    def note_api_usage(self, used: ApiUsage) -> None:
        self.note(sent(used))

    def fail(self, line: str, code: int) -> None:
        if line not in self.failures:
            self.failures.append(line)
        self.code = max(self.code, code)

    def report_fault(self, error: PrecedentError) -> None:
        """Take an error in: what passes by itself, or is meant so, is a notice; all else fails the run."""
        if isinstance(error, NEUTRAL):
            self.notice(error.cause if self.is_dry and isinstance(error, RateLimited) else str(error))
        else:
            self.fail(str(error), error.exit_code)

    def notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)


def write_report(around: RunnerEnvironment, report: ActionReport) -> None:
    """One line a thread in the log, the job summary, and outputs for the next step."""
    for line in report.failures:
        say(f"::error::{log_line(line)}")
    for line in report.notices:
        say(f"::notice::{log_line(line)}")
    shown = [_told_once(spoken, report) for spoken in report.said]
    for spoken in shown:
        say(plain_log_line(f"Issue {spoken.id}: {spoken.action}{f' ({spoken.reason})' if spoken.reason else ''}"))
    for note in report.notes:
        say(plain_log_line(note))
    if around.summary:
        append(around.summary, summarise(shown, [*report.notices, *report.notes], report.failures))
    if around.output:
        about = report.past.conversations[0].thread if report.past and report.past.conversations else 0
        silence = CommentResult(about, "", "silent", next(iter([*report.failures, *report.notices]), "nothing was due"))
        first = next((spoken for spoken in report.said if not spoken.renews), silence)
        append(around.output, outputs(first, context_file(around, first, report.past)))


def _told_once(spoken: CommentResult, report: ActionReport) -> CommentResult:
    """Without its reason where that is a limit: for that all waits that was to be said, and it is told by itself."""
    is_told = isinstance(spoken.error, RateLimited) or spoken.reason in report.notices
    return replace(spoken, action="waits", reason="") if is_told else spoken


def sent(used: ApiUsage) -> str:
    """How often GitHub's API was asked; of GraphQL's requests, which are for history, each is for many issues."""
    counted = [(used.reads, "read"), (used.writes, "write")]
    rest = ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counted)
    graphql = f" GraphQL: {used.graphql:,} request{'' if used.graphql == 1 else 's'}." if used.graphql else ""
    return f"API: {rest}.{graphql}"


def say(line: str) -> None:
    """One line of the log."""
    print(line, flush=True)
