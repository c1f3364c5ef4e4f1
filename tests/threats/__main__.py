"""Writes the threats into docs/security.md and their tests into docs/threats.md; `--check` compares them only."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.threats import table_content, table_process
from tests.threats.threat import Threat

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "security.md"
TRIED = ROOT / "docs" / "threats.md"
OPENING = """# Threats and the tests that try them

Each row of the [table of threats](security.md#what-others-may-try) has its tests here, or the reason why it does not
apply. This page is written by `python -m tests.threats`; with `--check` that fails where a row has no test, or names
one that does not exist.
"""
BEGIN, END = "<!-- threats: begin -->", "<!-- threats: end -->"
ROWS = range(1, 37)


def table() -> list[Threat]:
    """All threats in the order of their rows."""
    return sorted((*table_content.ROWS, *table_process.ROWS), key=lambda threat: threat.row)


def faults(threats: Iterable[Threat]) -> Iterator[str]:
    """What is wrong with a table: rows that are not there once, claims without test or reason, tests that are none."""
    rows = list(threats)
    numbers = [threat.row for threat in rows]
    yield from (f"row {row} is there {numbers.count(row)} times" for row in ROWS if numbers.count(row) != 1)
    yield from (f"row {row} is none of the list" for row in numbers if row not in ROWS)
    for threat in rows:
        if not threat.tests and not threat.not_applicable:
            yield f"row {threat.row} has neither a test nor a reason why it does not apply"
        if threat.tests and (threat.not_applicable or not threat.stands):
            yield f"row {threat.row} has tests, and says that it does not apply or not what stands in the way"
        yield from (f"row {threat.row}: {test} is no test" for test in threat.tests if not is_test(test))


def is_test(node: str) -> bool:
    """Whether a node id names a test function that pytest would collect."""
    file, _, name = node.partition("::")
    return name.startswith("test_") and name in functions(file)


@cache
def functions(file: str) -> frozenset[str]:
    """The functions at the top of a file of tests; none where there is no such file."""
    path = ROOT / file
    if not path.name.startswith("test_") or not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef))


def rendered(threats: Iterable[Threat]) -> str:
    """The table as Markdown."""
    lines = ["| # | what may be tried | what stands in the way |", "| ---: | --- | --- |"]
    for threat in threats:
        stands = threat.stands or f"Does not apply: {threat.not_applicable}."
        lines.append(f"| {threat.row} | {cell(threat.threat)} | {cell(stands)} |")
    return "\n".join(lines)


def tried(threats: Iterable[Threat]) -> str:
    """The page of the tests, as Markdown: each row's, under the file they are in."""
    return "\n".join([OPENING, *(line for threat in threats for line in _tests_of(threat))])


def _tests_of(threat: Threat) -> Iterator[str]:
    yield f"## {threat.row}. {cell(threat.threat)}\n"
    if threat.not_applicable:
        yield f"Does not apply: {threat.not_applicable}.\n"
    for file, names in grouped(threat.tests).items():
        yield f"[{file}](../{file})\n"
        yield from (f"- `{name}`" for name in names)
        yield ""


def grouped(tests: Iterable[str]) -> dict[str, list[str]]:
    """The names of tests by the file they are in."""
    files: dict[str, list[str]] = {}
    for test in tests:
        file, _, name = test.partition("::")
        files.setdefault(file, []).append(name)
    return files


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def pages() -> dict[Path, str]:
    """Both pages as they are to be: docs/security.md with the table of today, and docs/threats.md."""
    before, _, rest = PAGE.read_text(encoding="utf-8").partition(BEGIN)
    security = f"{before}{BEGIN}\n\n{rendered(table())}\n\n{END}{rest.partition(END)[2]}"
    return {PAGE: security, TRIED: tried(table())}


def stale() -> Iterator[str]:
    """The pages that are not what the table says."""
    for path, text in pages().items():
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            yield f"docs/{path.name}: run python -m tests.threats"


def main(arguments: list[str]) -> int:
    wrong = list(faults(table()))
    if "--check" in arguments:
        wrong += stale()
    elif not wrong:
        for path, text in pages().items():
            path.write_text(text, encoding="utf-8")
    print("\n".join(wrong) or f"{len(table())} threats, {sum(len(threat.tests) for threat in table())} tests")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
