"""The table as a page of the documentation."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.faults import advice, exchanges, rebuilds
from tests.faults.calls import CALLS, FAULTS
from tests.faults.cells import Outcome
from tests.faults.table import BESIDE, FIXES, PARTS, READS, REST, REST_WRITES, SAME, Rule, rules

PAGE = Path(__file__).resolve().parents[2] / "docs" / "faults.md"
NAMES = {
    READS: "all reads by REST",
    BESIDE: "all reads but the list and the comments of one issue",
    REST: "all by REST",
    REST_WRITES: "all writes by REST",
    FIXES: "all reads of fixes",
}
OPENING = """# Faults

What a run of the Action says when GitHub or git does not do what was asked, and what you do then; for the App,
[running it](self-hosting.md#when-something-is-odd) has a table of its own. Memory loses nothing by any of it: each run
asks for what changed since the last one that went well. A red run is one that somebody should look at; a green one may
carry a notice of why something waits.

{advice}
An answer that is due is tried for a day. [When something is odd](getting-started.md#when-something-is-odd) has what is
no fault of GitHub's, and [`precedent doctor`](command-line.md#to-install-it) finds what is wrong with the setup.

## For contributors

Each row of the tables below is played by a test: a repository is brought to the moment, one run of the Action meets the
fault, and the next one meets none. After that next run, whatever the fault was: at most one comment of ours stands on
an issue, memory holds what GitHub shows, and the cursor has reached the newest change. No comment is ever posted twice.

With a dead token no run asks for anything more, and after a limit for nothing more that it covers: the hourly limits of
REST and of GraphQL are counted apart, a secondary limit holds for both. A rebuild by hand waits for a limit that is
over within 90 seconds, and goes on.

This page is written by `python -m tests.faults --write` from the tables that the tests read; `tests/faults/advice.py`
has the table above, which is held to the others.

- **exit**: 0 for a run that is green, also where a notice tells why something waits; 1 for one that somebody should
  look at.
- **what was due**: the comment, its change, the reply or the count that the scene is about. It comes about in *this*
  run, in the *next* one, or *never*, where GitHub or a person does not want it.
- **remembered**: whether this run already wrote the event's issue into memory.
"""


def render() -> str:
    """The page, as Markdown."""
    opening = OPENING.format(advice="\n".join(advice.chapter()))
    return "\n".join([opening, *_matrix(), *_parts(), *rebuilds.chapter(), *exchanges.chapter(), ""])


def _matrix() -> Iterator[str]:
    """All pairs at a glance."""
    found = {pair: rule for _, rule in rules() for pair in rule.pairs}
    yield "### At a glance\n"
    yield (
        "`0` or `1` is the exit code, **n** that what was due comes about in the next run, **×** that it never does, "
        "and *·* that the two cannot meet.\n"
    )
    short = [f"{number}" for number in range(1, len(CALLS) + 1)]
    yield "| fault | " + " | ".join(short) + " |"
    yield "|---|" + "---|" * len(short)
    for fault in FAULTS:
        yield f"| {fault} | " + " | ".join(_sign(found, call, fault) for call in CALLS) + " |"
    yield ""
    yield "; ".join(f"{number} {call}" for number, call in zip(short, CALLS, strict=True)) + ".\n"


def _sign(found: dict[tuple[str, str], Rule], call: str, fault: str) -> str:
    rule = found[call, fault]
    if rule.like == SAME:
        return "0"
    if rule.like:
        return _sign(found, call, rule.like)
    if rule.outcome is None:
        return "·"
    return f"{rule.outcome.code}{ {'now': '', 'later': ' n', 'never': ' ×'}[rule.outcome.done] }"


def _parts() -> Iterator[str]:
    for part in PARTS:
        yield f"### {part.title}\n"
        yield "| calls | faults | exit | what was due | remembered | why |"
        yield "|---|---|---|---|---|---|"
        for rule in part.rules:
            if not rule.outcome and not rule.like:  # a dot at a glance
                continue
            calls = NAMES.get(rule.calls) or ", ".join(rule.calls)
            yield f"| {calls} | {', '.join(rule.faults)} | {_told(rule)} | {rule.why} |"
        yield ""


def _told(rule: Rule) -> str:
    return outcome(rule.outcome) if rule.outcome else f"as {rule.like} | |"


def outcome(of: Outcome) -> str:
    """Three cells: exit code, when, whether it is remembered."""
    when = {"now": "this run", "later": "next run", "never": "never"}[of.done]
    remembered = "yes" if of.remembers else "as a tombstone" if of.buried else "next run"
    return f"{of.code} | {when} | {remembered}"
