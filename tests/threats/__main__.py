"""Writes the threats and their tests into docs/threats.md; `--check` only compares."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tests.threats import table_content, table_process
from tests.threats.threat import Threat

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs" / "threats.md"
OPENING = """# Threats and the tests that try them

For each threat, this page gives the defence and the number of tests that try it, by file.
`tests/threats/table_content.py` and `table_process.py` name each test; `python -m tests.threats` writes this page.
[Security](security.md) explains who is trusted with what.
"""
ROWS = range(1, 41)


def table() -> list[Threat]:
    """All threats in the order of their rows."""
    return sorted((*table_content.ROWS, *table_process.ROWS), key=lambda threat: threat.row)


def check_table(threats: Iterable[Threat]) -> Iterator[str]:
    """What is wrong with a table: missing or repeated rows, claims without test or reason, tests that do not exist."""
    rows = list(threats)
    numbers = [threat.row for threat in rows]
    yield from (f"row {row} is there {numbers.count(row)} times" for row in ROWS if numbers.count(row) != 1)
    yield from (f"row {row} is none of the list" for row in numbers if row not in ROWS)
    for threat in rows:
        if not threat.tests and not threat.not_applicable:
            yield f"row {threat.row} has neither a test nor a reason why it does not apply"
        if threat.tests and (threat.not_applicable or not threat.defence):
            yield f"row {threat.row} has tests, and says that it does not apply or not what stands in the way"
        yield from (f"row {threat.row}: {test} is no test" for test in threat.tests if not is_test(test))


def is_test(node: str) -> bool:
    """Whether a node id names a test function that pytest would collect."""
    file, _, name = node.partition("::")
    return name.startswith("test_") and name in function_names(file)


@cache
def function_names(file: str) -> frozenset[str]:
    """The top-level functions of a test file; none if there is no such file."""
    path = ROOT / file
    if not path.name.startswith("test_") or not path.is_file():
        return frozenset()
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef))


def render_page(threats: Iterable[Threat]) -> str:
    """The page, as Markdown: each threat with its defence, and its tests by file."""
    return "\n".join([OPENING, *(line for threat in threats for line in _lines(threat))])


def _lines(threat: Threat) -> Iterator[str]:
    yield f"## {threat.row}. {_one_line(threat.threat)}\n"
    yield f"{_one_line(threat.defence or f'Does not apply: {threat.not_applicable}.')}\n"
    groups = group_by_file(threat.tests).items()
    files = ", ".join(f"[{file.removeprefix('tests/')}](../{file}) {len(names)}" for file, names in groups)
    if files:
        yield f"Tests: {files}.\n"


def group_by_file(tests: Iterable[str]) -> dict[str, list[str]]:
    """The names of tests by their file."""
    files: dict[str, list[str]] = {}
    for test in tests:
        file, _, name = test.partition("::")
        files.setdefault(file, []).append(name)
    return files


def _one_line(text: str) -> str:
    return text.replace("\n", " ")


def is_stale() -> bool:
    """Whether the page differs from the table."""
    return not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != render_page(table())


def main(arguments: list[str]) -> int:
    errors = list(check_table(table()))
    if "--check" in arguments:
        errors += [f"docs/{PAGE.name}: run python -m tests.threats"] * is_stale()
    elif not errors:
        PAGE.write_text(render_page(table()), encoding="utf-8")
    print("\n".join(errors) or f"{len(table())} threats, {sum(len(threat.tests) for threat in table())} tests")
    return bool(errors)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
