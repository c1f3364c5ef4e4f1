"""Reports what a run did, in the job summary and in lines that are safe to log."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from bot.action.environment import RunnerEnvironment, append, say
from bot.action.outputs import context_file, outputs
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


def summarise(
    said: Iterable[CommentResult] = (),
    notes: Iterable[str] = (),
    problems: Iterable[str] = (),
    digest: Iterable[str] = (),
) -> str:
    """The job summary as Markdown: problems first, then the result for each thread, the digest, and notes.

    At most 1 MB: a longer report ends after a whole entry and says so. ``digest`` is Markdown that is harmless already.
    """
    return _within(_entries(list(said), list(notes), list(problems), list(digest)), MAX_BYTES)


def _entries(said: list[CommentResult], notes: list[str], problems: list[str], digest: list[str]) -> Iterable[str]:
    yield "### Precedent\n"
    if problems:
        yield "\n**Needs attention**\n\n"
        yield from (f"- {inline(problem, _TEXT_CHARS)}\n" for problem in problems)
    if said:
        yield "\n**Threads**\n\n"
        yield from map(_said, said)
    yield from digest
    if notes:
        yield "\n**How it went**\n\n"
        yield from (f"- {inline(note, _NOTE_CHARS)}\n" for note in notes)
    if not (problems or said or notes or digest):
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
    """The nearest issues, shown or not, with their similarity and why they were found."""
    lines = []
    for one in found:
        name = inline(f"{numbered(one.id)}: {one.title}", _TEXT_CHARS)
        why = inline(" · ".join(filter(None, (one.state, ", ".join(one.why)))).replace("`", ""), _TEXT_CHARS)
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
"""Errors that do not fail a run: a later run catches up, or there is nothing to do."""


@dataclass(slots=True)
class ActionReport:
    """Collects what one run did and what went wrong. ``code`` is its exit code, the worst of all faults.

    ``notices`` need no action. ``is_dry``: nothing is written, so no later run continues from here. ``past`` holds the
    recent conversations on the issue in the outputs. ``digest`` is the digest for maintainers, as Markdown.
    """

    said: list[CommentResult] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    code: int = 0
    is_dry: bool = False
    past: RecentConversations | None = None
    digest: list[str] = field(default_factory=list)

    def add_results(self, said: Iterable[CommentResult]) -> None:
        for spoken in said:
            self.said.append(spoken)
            if spoken.error:
                self.report_fault(spoken.error)
            elif spoken.is_refused:
                self.notice(f"Issue {spoken.id}: {spoken.reason}")

    def note(self, line: str) -> None:
        self.notes.append(line)

    def show(self, line: str) -> None:
        """Log progress at once."""
        say(plain_log_line(line))

    def note_api_usage(self, used: ApiUsage) -> None:
        self.note(sent(used))

    def fail(self, line: str, code: int) -> None:
        if line not in self.failures:
            self.failures.append(line)
        self.code = max(self.code, code)

    def report_fault(self, error: PrecedentError) -> None:
        """Add an error: one that passes by itself, or is intended, is a notice; any other fails the run."""
        if isinstance(error, NEUTRAL):
            self.notice(error.cause if self.is_dry and isinstance(error, RateLimited) else str(error))
        else:
            self.fail(str(error), error.exit_code)

    def notice(self, line: str) -> None:
        if line not in self.notices:
            self.notices.append(line)


def write_report(around: RunnerEnvironment, report: ActionReport) -> None:
    """Write a log line per thread, the job summary, and the outputs for the next step."""
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
        append(around.summary, summarise(shown, [*report.notices, *report.notes], report.failures, report.digest))
    if around.output:
        about = report.past.conversations[0].thread if report.past and report.past.conversations else 0
        silence = CommentResult(about, "", "silent", next(iter([*report.failures, *report.notices]), "nothing was due"))
        first = next((spoken for spoken in report.said if not spoken.renews), silence)
        append(around.output, outputs(first, context_file(around, first, report.past)))


def _told_once(spoken: CommentResult, report: ActionReport) -> CommentResult:
    """Without its reason if that is a limit, which is reported once for all threads."""
    is_told = isinstance(spoken.error, RateLimited) or spoken.reason in report.notices
    return replace(spoken, action="waits", reason="") if is_told else spoken


def sent(used: ApiUsage) -> str:
    """How often the run used GitHub's API; each GraphQL request reads many issues of the history."""
    counted = [(used.reads, "read"), (used.writes, "write")]
    rest = ", ".join(f"{count:,} {noun}{'' if count == 1 else 's'}" for count, noun in counted)
    graphql = f" GraphQL: {used.graphql:,} request{'' if used.graphql == 1 else 's'}." if used.graphql else ""
    return f"API: {rest}.{graphql}"
