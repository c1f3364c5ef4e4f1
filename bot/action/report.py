"""Reports what a run did, in the job summary and in lines that are safe to log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.action.environment import RunnerEnvironment, append, print_line
from bot.action.outputs import context_file, outputs
from bot.comment.catalogue import count, day, thread_label
from bot.comment.clean_text import log_line, plain_log_line
from bot.comment.defang import inline, link
from bot.domain.answer import Match
from bot.errors import PrecedentError
from bot.evaluation.results import Backtest
from bot.git.errors import Archived
from bot.github.errors import Gone, RateLimited
from bot.pipeline.reconcile import CommentResult
from bot.pipeline.setup import ApiUsage
from bot.questions.context import RecentConversations

MAX_SUMMARY_BYTES = 1_000_000
"""Less than 1 MiB; beyond that, GitHub drops a step's whole summary."""

NEAREST_HEADING = "The nearest issues, with their similarity"
MAX_REPLAYED_COMMENTS = 20
"""Enough to judge by; the page has all."""

_TEXT_CHARS = 300
_NOTE_CHARS = 1_000

_TRUNCATED = "\n*The rest did not fit.*\n"


def summarise(
    results: Iterable[CommentResult] = (),
    notes: Iterable[str] = (),
    problems: Iterable[str] = (),
    findings: Iterable[str] = (),
) -> str:
    """The job summary as Markdown: problems first, then the result for each thread, what was found, and notes.

    At most 1 MB: a longer report ends after a whole entry and says so. ``findings`` is Markdown that is already safe:
    a digest, or the comments of a replay.
    """
    return _truncate(_entries(list(results), list(notes), list(problems), list(findings)), MAX_SUMMARY_BYTES)


def _entries(results: list[CommentResult], notes: list[str], problems: list[str], findings: list[str]) -> Iterable[str]:
    yield "### Precedent\n"
    if problems:
        yield "\n**Needs attention**\n\n"
        yield from (f"- {inline(problem, _TEXT_CHARS)}\n" for problem in problems)
    if results:
        yield "\n**Threads**\n\n"
        yield from map(_result_entry, results)
    yield from findings
    if notes:
        yield "\n**How it went**\n\n"
        yield from (f"- {inline(note, _NOTE_CHARS)}\n" for note in notes)
    if not (problems or results or notes or findings):
        yield "\nNothing to do.\n"


def _result_entry(result: CommentResult) -> str:
    name = inline(
        f"{thread_label(result.id)}: {result.title}" if result.title else thread_label(result.id), _TEXT_CHARS
    )
    url = result.comment.url if result.comment else ""
    nearest = _fold(NEAREST_HEADING, _nearest(result.nearest))
    if result.action == "would say":
        return (
            f"- {name} · would get this comment\n{_fold('What it would have said', result.text, is_open=True)}{nearest}"
        )
    shown = link(result.action, url) if url else inline(result.action, _TEXT_CHARS)
    return f"- {name} · {shown}{f' · {inline(result.reason, _TEXT_CHARS)}' if result.reason else ''}\n{nearest}"


def replayed_comments(backtest: Backtest, home: str) -> Iterable[str]:
    """The comments of a replay as entries of the job summary, newest first, each folded below its issue.

    ``home``: the address of the repository.
    """
    speaking = [issue for issue in reversed(backtest.replayed) if issue.markdown][:MAX_REPLAYED_COMMENTS]
    if speaking:
        yield "\n**What it would have said on the newest issues**\n\n"
    for issue in speaking:
        name = f"{thread_label(issue.id)}: {issue.title}"
        title = link(name, f"{home}/issues/{issue.id}") if isinstance(issue.id, int) else inline(name, _TEXT_CHARS)
        yield f"- {title} · {day(issue.created_at)}\n{_fold('What it would have said', issue.markdown)}"


def _fold(title: str, text: str, *, is_open: bool = False) -> str:
    if not text:
        return ""
    indented = "\n".join(f"  {row}".rstrip() for row in text.strip().split("\n"))
    return f"\n  <details{' open' if is_open else ''}><summary>{title}</summary>\n\n{indented}\n\n  </details>\n\n"


def _nearest(matches: Iterable[Match]) -> str:
    """The nearest issues, shown or not, with their similarity and why they were found."""
    lines = []
    for match in matches:
        name = inline(f"{thread_label(match.id)}: {match.title}", _TEXT_CHARS)
        why = inline(" · ".join(filter(None, (match.state, ", ".join(match.why)))).replace("`", ""), _TEXT_CHARS)
        lines.append(f"- {match.similarity:.2f} · {name} · {why}\n")
    return "".join(lines)


def _truncate(entries: Iterable[str], limit: int) -> str:
    kept: list[str] = []
    left = limit - len(_TRUNCATED.encode())
    for entry in entries:
        left -= len(entry.encode("utf-8", "replace"))
        if left < 0:
            return "".join([*kept, _TRUNCATED])
        kept.append(entry)
    return "".join(kept)


NEUTRAL_ERRORS = (RateLimited, Gone, Archived)
"""Errors that do not fail a run: a later run catches up, or there is nothing to do."""


@dataclass(slots=True)
class ActionReport:
    """Collects what one run did and what went wrong. ``code`` is its exit code, the worst of all faults.

    ``notices`` need no action. ``is_dry``: nothing is written, so no later run continues from here. ``past`` holds the
    recent conversations on the issue in the outputs. ``findings``: what the run was asked for, as Markdown. ``page``:
    the path of the report on a replay.
    """

    results: list[CommentResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    code: int = 0
    is_dry: bool = False
    past: RecentConversations | None = None
    findings: list[str] = field(default_factory=list)
    page: str = ""

    def add_results(self, results: Iterable[CommentResult]) -> None:
        for result in results:
            self.results.append(result)
            if result.error:
                self.report_fault(result.error)
            elif result.is_refused:
                self.notice(f"Issue {result.id}: {result.reason}")

    def note(self, line: str) -> None:
        self.notes.append(line)

    def show(self, line: str) -> None:
        """Log progress at once."""
        print_line(plain_log_line(line))

    def note_api_usage(self, used: ApiUsage) -> None:
        self.note(usage_line(used))

    def fail(self, line: str, code: int) -> None:
        if line not in self.failures:
            self.failures.append(line)
        self.code = max(self.code, code)

    def report_fault(self, error: PrecedentError) -> None:
        """Add an error: if it is expected or passes by itself, it is a notice; any other fails the run."""
        if isinstance(error, NEUTRAL_ERRORS):
            self.notice(error.cause if self.is_dry and isinstance(error, RateLimited) else str(error))
        else:
            self.fail(str(error), error.exit_code)

    def notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)


def write_report(environment: RunnerEnvironment, report: ActionReport) -> None:
    """Write a log line per thread, the job summary, and the outputs for the next step."""
    for line in report.failures:
        print_line(f"::error::{log_line(line)}")
    for line in report.notices:
        print_line(f"::notice::{log_line(line)}")
    logged = [_without_repeated_reason(result, report) for result in report.results]
    for result in logged:
        print_line(
            plain_log_line(f"Issue {result.id}: {result.action}{f' ({result.reason})' if result.reason else ''}")
        )
    for note in report.notes:
        print_line(plain_log_line(note))
    if environment.summary:
        append(
            environment.summary, summarise(logged, [*report.notices, *report.notes], report.failures, report.findings)
        )
    if environment.output:
        about = report.past.conversations[0].thread if report.past and report.past.conversations else 0
        silence = CommentResult(about, "", "silent", next(iter([*report.failures, *report.notices]), "nothing was due"))
        first = next((result for result in report.results if not result.renews), silence)
        append(environment.output, outputs(first, context_file(environment, first, report.past), report.page))


def _without_repeated_reason(result: CommentResult, report: ActionReport) -> CommentResult:
    """The result without its reason if that is a limit, which is reported once for all threads."""
    is_reported = isinstance(result.error, RateLimited) or result.reason in report.notices
    return replace(result, action="waits", reason="") if is_reported else result


def usage_line(used: ApiUsage) -> str:
    """How often the run used GitHub's API; each GraphQL request reads many issues of the history."""
    graphql = f" GraphQL: {count(used.graphql, 'request')}." if used.graphql else ""
    return f"API: {count(used.reads, 'read')}, {count(used.writes, 'write')}.{graphql}"
