"""The table of threats is complete: each has a defence on the page of security, and tests that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
TESTS = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
NUMBERS = tuple(range(1, 48))
ROW = re.compile(r"^\| (\d+) \| (\w.*) \| ([\w`].*\.) \|$", re.MULTILINE)
"""An attack: its number, its name and the defence."""

NAMED = re.compile(r"^- \[([^\]]+)\]\((?:\.\./)?([\w/]*test_\w+\.py)\)$", re.MULTILINE)
"""The name of a test, as a sentence, and its file."""


def test_each_threat_has_a_defence_and_tests() -> None:
    rows = ROW.findall(PAGE.partition("## Threats\n")[2])
    assert [int(number) for number, *_ in rows] == [*NUMBERS]
    sections = re.split(r"^## ", TESTS, flags=re.MULTILINE)[1:]
    assert [section.partition("\n")[0] for section in sections] == [f"{number}. {name}" for number, name, _ in rows]
    for section in sections:
        _, tests = section.strip().split("\n\n")
        assert len(NAMED.findall(tests)) == len(tests.splitlines()), tests


def test_each_test_of_a_threat_exists() -> None:
    assert [named for named in NAMED.findall(TESTS) if name_of(named[0]) not in names_in(named[1])] == []


def name_of(sentence: str) -> str:
    return "_".join(["test", *re.sub(r"[^\w ]", "", sentence.replace("-", " ")).lower().split()])


@cache
def names_in(file: str) -> frozenset[str]:
    """The tests of a file beside the page (`test_x.py`) or in another folder of tests (`acceptance/test_x.py`)."""
    path = ROOT / "tests" / (file if "/" in file else f"threats/{file}")
    return frozenset(re.findall(r"(?m)^def (test_\w+)\(", path.read_text(encoding="utf-8")) if path.is_file() else ())
