"""Findings as lines for a person: a sign, the check, what is so, and below a problem what mends it."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from bot.comment.summary import log_line
from bot.doors.checkup.finding import Finding, Level, exit_code

SIGNS: dict[Level, str] = {"ok": "✓", "note": "·", "warning": "!", "error": "✗"}
PLAIN: dict[Level, str] = {"ok": "+", "note": "-", "warning": "!", "error": "x"}
_COLOURS: dict[Level, str] = {"ok": "32", "note": "2", "warning": "33", "error": "31"}
_WIDTH = 13


@dataclass(frozen=True, slots=True)
class Terminal:
    """What the terminal shows: ``signs`` beyond ASCII, and colours."""

    signs: bool = True
    colours: bool = False


def terminal() -> Terminal:
    """Where stdout leads. No colours where NO_COLOR is set (https://no-color.org), or nobody watches."""
    try:
        "".join(SIGNS.values()).encode(sys.stdout.encoding or "ascii")
        signs = True
    except (UnicodeEncodeError, LookupError):
        signs = False
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return Terminal(signs, wanted and sys.stdout.isatty())


def tell(findings: Iterable[Finding], screen: Terminal, *, verbose: bool = False) -> str:
    """The findings, and in the last line how many problems there are. ``verbose``: what is fine in full too."""
    every = list(findings)
    shown = every if verbose else list(_telling(every))
    lines = [line for finding in shown for line in _lines(finding, screen, verbose=verbose)]
    return "".join(f"{line}\n" for line in [*lines, "", _sum(every)])


def as_data(findings: Iterable[Finding]) -> dict[str, object]:
    """The findings as JSON has them, and whether all is well; what no encoding knows is replaced."""
    every = list(findings)
    told = [{**asdict(each), "says": _encodable(each.says), "remedy": _encodable(each.remedy)} for each in every]
    return {"findings": told, "ok": exit_code(every) == 0}


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def _telling(findings: list[Finding]) -> Iterator[Finding]:
    """Of each check its problems, or else one line: what should be known rather than what is fine."""
    for check in dict.fromkeys(finding.check for finding in findings):
        same = [finding for finding in findings if finding.check == check]
        problems = [finding for finding in same if finding.is_problem]
        notes = [finding for finding in same if finding.level == "note"]
        yield from problems or (notes or same)[:1]


def _lines(finding: Finding, screen: Terminal, *, verbose: bool) -> Iterator[str]:
    sign = (SIGNS if screen.signs else PLAIN)[finding.level]
    if screen.colours:
        sign = f"\033[{_COLOURS[finding.level]}m{sign}\033[0m"
    yield f"{sign} {finding.check:<{_WIDTH}} {_harmless(finding.says, screen)}"
    if finding.remedy and (finding.is_problem or verbose):
        yield f"  {'→' if screen.signs else '->'} {_harmless(finding.remedy, screen)}"


def _harmless(text: str, screen: Terminal) -> str:
    """One line that moves no cursor, and that the log of a runner takes for no command."""
    line = log_line(text).replace("%25", "%")
    return line if screen.signs else line.encode("ascii", "backslashreplace").decode()


def _sum(findings: list[Finding]) -> str:
    errors = sum(finding.level == "error" for finding in findings)
    warnings = sum(finding.level == "warning" for finding in findings)
    if not errors and not warnings:
        return "All is well."
    told = [
        f"{count} {noun}{'s' if count > 1 else ''}"
        for count, noun in ((errors, "error"), (warnings, "warning"))
        if count
    ]
    return f"{' and '.join(told)}."
