"""Names of the code in pages: in the diagrams of docs/design.md and docs/releasing.md, and reasons in docs/faq.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("design.md", "releasing.md"))
PICTURES = re.findall(r"^```mermaid\n(.*?)^```$", PAGES, re.MULTILINE | re.DOTALL)
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "bot").rglob("*.py")))
NAME = re.compile(
    r"\b(?:[a-z]+\.)?_?[a-z]+(?:_[a-z]+)+\b|\b_[a-z]+\b|\b[A-Z][a-z]+(?:[A-Z][A-Za-z]+)+\b|\bmemory\.[a-z]+\b"
)
"""A name of the code: words joined by underscores or capitals, one with an underscore in front, a method of memory."""

NOT_OURS = {"GitHub", "SQLite", "PostgreSQL", "GraphQL"}


def names(picture: str) -> set[str]:
    """The names of the code in a picture, those of a method without what they belong to."""
    told = re.sub(r"<br>|\b[A-Z_]+_PATH\b|issue_comment", " ", picture)
    return {name.rpartition(".")[2] for name in NAME.findall(told)} - NOT_OURS


def test_the_pictures_hold_names_of_the_code() -> None:
    assert len(PICTURES) >= 6
    told = set[str]().union(*map(names, PICTURES))
    assert {"fetch_changes", "_reapply", "BranchStore", "own_cut", "install_model"} <= told
    assert len(told) > 20


@pytest.mark.parametrize("picture", PICTURES, ids=range(len(PICTURES)))
def test_every_name_in_a_picture_is_in_the_code(picture: str) -> None:
    defined = re.compile(r"\b(?:def|class) (\w+)|^ {4}(?:self\.)?(\w+)(?::| =)", re.MULTILINE)
    known = {name for pair in defined.findall(CODE) for name in pair}
    known |= set(re.findall(r"self\.(\w+)\b", CODE))
    assert names(picture) - known == set()


@pytest.mark.parametrize("picture", PICTURES, ids=range(len(PICTURES)))
def test_a_picture_is_of_a_kind_that_was_tried_and_its_quotes_end(picture: str) -> None:
    kind, *lines = picture.splitlines()
    assert kind in {"flowchart LR", "flowchart TB", "sequenceDiagram"}
    for line in lines:
        assert line.count('"') % 2 == 0, line
        assert ";" not in line, line  # it ends a statement
        assert "#" not in line, line  # it begins an entity


def reasons() -> list[str]:
    """The reasons for silence that the page names, as code in the first column."""
    page = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
    rows = page.partition("| reason | what it means |")[2].partition("\n\n")[0].splitlines()
    return [reason for row in rows for reason in re.findall(r"`([^`]+)`", row.split("|")[1] if "|" in row else "")]


def test_the_questions_name_reasons() -> None:
    assert len(reasons()) > 10


@pytest.mark.parametrize("reason", reasons())
def test_a_reason_for_silence_is_said_by_the_code(reason: str) -> None:
    assert f'"{reason}"' in CODE
