"""Renders the tables, and the page of the documentation about them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tests.faults import advice, git_faults, rebuilds
from tests.faults.calls import CALLS, FAULTS
from tests.faults.table import SAME, Rule, rules

PAGE = Path(__file__).resolve().parents[2] / "docs" / "troubleshooting.md"
TABLES = Path(__file__).with_name("README.md")
WHEN = {"now": "this run", "later": "next run", "never": "never"}
REBUILT = {"now": "this run", "later": "next runs"}
REBUILD = """## A rebuild

A manual `rebuild` has read fifty issues when the fault occurs.

| trouble | exit | finished by | why |"""
GIT = """## Git

A new issue mentions a decision.

| trouble | exit | comment posted by | why |"""
NOTE = {"now": "", "later": " n", "never": " ×"}
ADVICE = re.compile(r"(?<=<!-- faults -->\n).*?(?=<!-- /faults -->)", re.DOTALL)
"""The advice for users, between two comments of that page."""

OPENING = """# What a run does about every fault

Tests simulate every cell of these tables: one run meets the fault, and the next one does not. Afterwards the issue has
at most one comment by Precedent, memory matches GitHub, and the cursor has reached the newest change. No comment is
posted twice. `tests/faults/table.py` has the reason for each cell and whether the first run already remembered the
issue.
`python -m tests.faults --write` writes this page and [the advice to
users](../../docs/troubleshooting.md#faults).

After a 401, a run sends no more requests. After a rate limit, it sends no request that the limit covers: REST and
GraphQL have separate hourly limits, and a secondary limit covers both.
"""


def pages() -> dict[Path, str]:
    """The pages as Markdown: the advice for users, and the tables."""
    rebuild_rows = [(row.name, f"{row.code}", REBUILT[row.done], row.why) for row in rebuilds.ROWS]
    git_rows = [(row.name, f"{row.outcome.code}", WHEN[row.outcome.done], row.why) for row in git_faults.ROWS]
    tables = [OPENING, *_matrix(), *_table(REBUILD, rebuild_rows), "", *_table(GIT, git_rows), ""]
    table = "\n".join(advice.chapter())
    page = ADVICE.sub(lambda _: f"\n{table}\n", PAGE.read_text(encoding="utf-8"))
    return {PAGE: page, TABLES: "\n".join(tables)}


def _table(heading: str, rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    """A table in which troubles with the same outcome and reason share a row."""
    yield f"{heading}\n|---|---|---|---|"
    groups: dict[tuple[str, ...], list[str]] = {}
    for name, *cells in rows:
        groups.setdefault(tuple(cells), []).append(name)
    yield from (f"| {', '.join(names)} | {' | '.join(cells)} |" for cells, names in groups.items())


def _matrix() -> Iterator[str]:
    """Every pair of a call and a fault; calls and faults with the same results share a column or a row."""
    rules_by_pair = {pair: rule for _, rule in rules() for pair in rule.pairs}
    signs = {(call, fault): _sign(rules_by_pair, call, fault) for call in CALLS for fault in FAULTS}
    columns = _group_by_pattern(CALLS, lambda call: tuple(signs[call, fault] for fault in FAULTS))
    rows = _group_by_pattern(FAULTS, lambda fault: tuple(signs[call, fault] for call in CALLS))
    yield "## Requests to the API\n"
    yield (
        "The letters are requests. Columns: the exit code of the run that meets the fault; **n** if the next run\n"
        "posts what was due, **×** if it is never posted. A request that a row omits cannot meet the fault.\n"
    )
    for letter, calls in zip(LETTERS, columns, strict=False):
        yield f"- {letter}: {', '.join(calls)}"
    yield ""
    yield "| fault | " + " | ".join(SIGNS) + " |"
    yield "|---|" + "---|" * len(SIGNS)
    for faults in rows:
        group_signs = [signs[calls[0], faults[0]] for calls in columns]
        cells = (
            "".join(letter for letter, sign in zip(LETTERS, group_signs, strict=False) if sign == each)
            for each in SIGNS
        )
        yield f"| {', '.join(faults)} | " + " | ".join(cells) + " |"
    yield ""


SIGNS = [f"{code}{note}" for code in (0, 1) for note in NOTE.values()]
LETTERS = "ABCDEFGHIJKLMNOPQRSTUV"


def _group_by_pattern(names: Iterable[str], pattern: Callable[[str], tuple[str, ...]]) -> list[list[str]]:
    """The names grouped by pattern, in order of first appearance."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for name in names:
        groups.setdefault(pattern(name), []).append(name)
    return list(groups.values())


def _sign(rules_by_pair: dict[tuple[str, str], Rule], call: str, fault: str) -> str:
    rule = rules_by_pair[call, fault]
    if rule.like == SAME:
        return "0"
    if rule.like:
        return _sign(rules_by_pair, call, rule.like)
    return "" if rule.outcome is None else f"{rule.outcome.code}{NOTE[rule.outcome.done]}"
