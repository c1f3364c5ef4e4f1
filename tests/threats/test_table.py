"""The table of threats is complete, and each of its claims has a test that exists."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.threats.__main__ import check_table, group_by_file, is_stale, is_test, render_page, table
from tests.threats.threat import Threat

GOOD = "tests/threats/test_table.py::test_the_table_is_complete"


def test_the_table_is_complete() -> None:
    assert list(check_table(table())) == []


def test_the_page_shows_the_current_table() -> None:
    assert not is_stale()


def test_the_page_counts_the_tests_of_every_row() -> None:
    parts = render_page(table()).split("\n## ")[1:]
    assert [int(part.partition(".")[0]) for part in parts] == [threat.row for threat in table()]
    for part, threat in zip(parts, table(), strict=True):
        assert all(f"](../{file}) {len(names)}" in part for file, names in group_by_file(threat.tests).items())
        assert threat.defence in part
        assert threat.not_applicable in part


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"tests": ()}, "neither a test nor a reason"),
        ({"tests": ("tests/threats/test_table.py::test_absent",)}, "is no test"),
        ({"tests": ("tests/absent.py::test_x",)}, "is no test"),
        ({"tests": ("tests/threats/test_table.py::GOOD",)}, "is no test"),
        ({"defence": ""}, "not what stands in the way"),
        ({"not_applicable": "never"}, "says that it does not apply"),
        ({"row": 2}, "row 1 is there 0 times"),
        ({"row": 41}, "row 41 is none of the list"),
    ],
)
def test_a_faulty_row_is_reported(change: dict[str, object], message: str) -> None:
    first = Threat(1, "A threat", "A wall", (GOOD,))
    rows = [replace(first, row=row) for row in range(2, 41)]
    assert list(check_table([first, *rows])) == []
    assert any(message in fault for fault in check_table([replace(first, **change), *rows]))  # type: ignore[arg-type]


def test_a_test_is_recognised_by_file_and_name() -> None:
    assert is_test(GOOD)
    assert not is_test("tests/threats/table_process.py::ROWS")


def test_a_threat_is_one_heading_and_one_line() -> None:
    page = render_page([Threat(1, "a\nb", "c\nd", (GOOD,))])
    assert "\n## 1. a b\n\nc d\n" in page
