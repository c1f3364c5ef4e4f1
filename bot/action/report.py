"""What a run did, for the people who watch it: the job summary, and lines that are safe to log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.action.environment import RunnerEnvironment, append, context_file, outputs
from bot.comment.catalogue import numbered
from bot.comment.clean_text import log_line, plain_log_line
from bot.comment.defang import inline, link
from bot.domain.answer import Match
from bot.domain.thread import ThreadId
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


@dataclass(frozen=True, slots=True)
class ThreadReport:
    """What one run did on one thread. ``action``: created, updated, unchanged, withdrawn, replied, silent, would say,
    waits or failed.

    ``text`` is the comment (Markdown of ours, defanged already), shown where it was not posted. ``nearest`` are the
    issues most like it, whether they were shown or not.
    """

    id: ThreadId
    action: str
    title: str = ""
    reason: str = ""
    url: str = ""
    text: str = ""
    nearest: tuple[Match, ...] = ()


@dataclass(frozen=True, slots=True)
class JobReport:
    """What one run did. ``notes`` tell how the stages went, ``problems`` what somebody should look at."""

    said: tuple[ThreadReport, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = field(default=())


def summarise(report: JobReport) -> str:
    """The job summary as Markdown: problems first, then what was said and why not, then the stages; at most 1 MB.

    Too long a report ends at a whole entry and says so.
    """
    return _within(_entries(report), MAX_BYTES)


def _entries(report: JobReport) -> Iterable[str]:
    yield "### Precedent\n"
    if report.problems:
        yield "\n**Needs attention**\n\n"
        yield from (f"- {inline(problem, _TEXT_CHARS)}\n" for problem in report.problems)
    if report.said:
        yield "\n**Threads**\n\n"
        yield from (_said(said) for said in report.said)
    if report.counts:
        yield "\n| what | how many |\n|---|---:|\n"
        yield from (f"| {inline(name, _TEXT_CHARS)} | {number:,} |\n" for name, number in report.counts)
    if report.notes:
        yield "\n**How it went**\n\n"
        yield from (f"- {inline(note, _NOTE_CHARS)}\n" for note in report.notes)
    if not (report.problems or report.said or report.notes or report.counts):
        yield "\nNothing to do.\n"


def _said(said: ThreadReport) -> str:
    name = inline(f"{numbered(said.id)}: {said.title}" if said.title else numbered(said.id), _TEXT_CHARS)
    action = inline(said.action, _TEXT_CHARS)
    shown = link(said.action, said.url) if said.url else action
    line = f"- {name} · {shown}{f' · {inline(said.reason, _TEXT_CHARS)}' if said.reason else ''}\n"
    return f"{line}{_folded_in('What it would have said', said.text)}{_folded_in(NEAREST, _nearest(said.nearest))}"


def _folded_in(title: str, text: str) -> str:
    """Markdown of ours below a line of the list, "" for none."""
    if not text:
        return ""
    indented = "\n".join(f"  {row}".rstrip() for row in text.strip().split("\n"))
    return f"\n  <details><summary>{title}</summary>\n\n{indented}\n\n  </details>\n\n"


def _nearest(found: Iterable[Match]) -> str:
    """Each with its similarity and why, whether it was shown or not: what is less sure is not lost to whoever looks."""
    return "".join(f"- {one.similarity:.2f} · {_called(one)} · {_why(one)}\n" for one in found)


def _called(one: Match) -> str:
    return inline(f"{numbered(one.id)}: {one.title}", _TEXT_CHARS)


def _why(one: Match) -> str:
    return inline(f"{one.state} · {', '.join(one.why)}".replace("`", ""), _TEXT_CHARS)


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
        lines = tuple(map(summary_line, shown))
        append(around.summary, summarise(JobReport(lines, (*report.notices, *report.notes), tuple(report.failures))))
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


def summary_line(spoken: CommentResult) -> ThreadReport:
    url = spoken.comment.url if spoken.comment else ""
    shadow = spoken.text if spoken.action == "would say" else ""
    return ThreadReport(spoken.id, spoken.action, spoken.title, spoken.reason, url, shadow, spoken.nearest)
