"""What a run did, for the people who watch it: the job summary, and lines that are safe to log."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from bot.answer import Match
from bot.comment.defang import inline, link
from bot.comment.wording import numbered
from bot.model import ThreadId

MAX_BYTES = 1_000_000
"""Below the 1 MiB above which GitHub drops the whole summary of a step."""

NEAREST = "The nearest issues, with their similarity"
_TEXT_CHARS = 300
_NOTE_CHARS = 1_000
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")
_CUT = "\n*The rest did not fit.*\n"


@dataclass(frozen=True, slots=True)
class Said:
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
class RunReport:
    """What one run did. ``notes`` tell how the stages went, ``problems`` what somebody should look at."""

    said: tuple[Said, ...] = ()
    notes: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()
    counts: tuple[tuple[str, int], ...] = field(default=())


def summarise(report: RunReport) -> str:
    """The job summary as Markdown: problems first, then what was said and why not, then the stages; at most 1 MB.

    Too long a report ends at a whole entry and says so.
    """
    return _within(_entries(report), MAX_BYTES)


def log_line(text: str) -> str:
    """One line that a runner takes for text, never for a command: ``%``, line ends, ``::``, ``##[`` lose their power.

    Other control and direction characters become U+FFFD, so that a terminal shows what is there. Source of the rules:
    https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
    """
    line = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A").replace("\t", " ")
    line = _CONTROLS.sub("\ufffd", line)
    return line.replace("::", ": :").replace("::", ": :").replace("##[", "# #[")


def _entries(report: RunReport) -> Iterable[str]:
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


def _said(said: Said) -> str:
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
