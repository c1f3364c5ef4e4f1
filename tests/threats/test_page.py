"""The page of threats is complete: each has a defence, and tests that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "threats.md").read_text(encoding="utf-8")
NUMBERS = tuple(range(1, 48))
NAMED = re.compile(r"^- \[([^\]]+)\]\(\.\./(tests/[\w/]+/test_\w+\.py)\)$", re.MULTILINE)
"""The name of a test, as a sentence, and its file."""


def test_each_threat_has_a_defence_and_tests() -> None:
    sections = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    assert [int(section.partition(".")[0]) for section in sections] == [*NUMBERS]
    for section in sections:
        _, defence, tests = section.strip().split("\n\n")
        assert re.match(r"[\w`]", defence)
        assert len(NAMED.findall(tests)) == len(tests.splitlines()), tests


def test_each_test_of_a_threat_exists() -> None:
    assert [named for named in NAMED.findall(PAGE) if name_of(named[0]) not in names_in(named[1])] == []


def name_of(sentence: str) -> str:
    return "_".join(["test", *re.sub(r"[^\w ]", "", sentence.replace("-", " ")).lower().split()])


@cache
def names_in(file: str) -> frozenset[str]:
    path = ROOT / file
    return frozenset(re.findall(r"(?m)^def (test_\w+)\(", path.read_text(encoding="utf-8")) if path.is_file() else ())
