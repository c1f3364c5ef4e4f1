"""Names from the code in the diagrams of docs/design.md and docs/releasing.md, and reasons in docs/faq.md."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = "".join((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("design.md", "releasing.md"))
DIAGRAMS = re.findall(r"^```mermaid\n(.*?)^```$", PAGES, re.MULTILINE | re.DOTALL)
CODE = "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "bot").rglob("*.py")))
NAME = re.compile(
    r"\b(?:[a-z]+\.)?_?[a-z]+(?:_[a-z]+)+\b|\b_[a-z]+\b|\b[A-Z][a-z]+(?:[A-Z][A-Za-z]+)+\b|\bmemory\.[a-z]+\b"
)
"""A name from the code: words joined by underscores or capitals, a word after an underscore, a method of memory."""

NOT_OURS = {"GitHub", "SQLite", "PostgreSQL", "GraphQL"}


def names(diagram: str) -> set[str]:
    """The names from the code in a diagram; methods without the name of their object."""
    text = re.sub(r"<br>|\b[A-Z_]+_PATH\b|issue_comment", " ", diagram)
    return {name.rpartition(".")[2] for name in NAME.findall(text)} - NOT_OURS


def test_the_diagrams_contain_names_of_the_code() -> None:
    assert len(DIAGRAMS) >= 6
    found_names = set[str]().union(*map(names, DIAGRAMS))
    assert {"fetch_changes", "_reapply", "BranchStore", "own_cut", "install_model"} <= found_names
    assert len(found_names) > 20


@pytest.mark.parametrize("diagram", DIAGRAMS, ids=range(len(DIAGRAMS)))
def test_every_name_in_a_diagram_is_in_the_code(diagram: str) -> None:
    defined = re.compile(r"\b(?:def|class) (\w+)|^ {4}(?:self\.)?(\w+)(?::| =)", re.MULTILINE)
    defined_names = {name for pair in defined.findall(CODE) for name in pair}
    defined_names |= set(re.findall(r"self\.(\w+)\b", CODE))
    assert names(diagram) - defined_names == set()


@pytest.mark.parametrize("diagram", DIAGRAMS, ids=range(len(DIAGRAMS)))
def test_a_diagram_has_a_known_type_and_balanced_quotes(diagram: str) -> None:
    kind, *lines = diagram.splitlines()
    assert kind in {"flowchart LR", "flowchart TB", "sequenceDiagram"}
    for line in lines:
        assert line.count('"') % 2 == 0, line
        assert ";" not in line, line  # it ends a statement
        assert "#" not in line, line  # it begins an entity


def reasons() -> list[str]:
    """The reasons for silence on the page, which are code in the first column."""
    page = (ROOT / "docs/faq.md").read_text(encoding="utf-8")
    rows = page.partition("| reason | what it means |")[2].partition("\n\n")[0].splitlines()
    return [reason for row in rows for reason in re.findall(r"`([^`]+)`", row.split("|")[1] if "|" in row else "")]


def test_the_faq_lists_reasons() -> None:
    assert len(reasons()) > 10


@pytest.mark.parametrize("reason", reasons())
def test_every_reason_in_the_faq_is_in_the_code(reason: str) -> None:
    assert f'"{reason}"' in CODE
