"""Names from the code in the diagrams of docs/design.md, and reasons in docs/troubleshooting.md."""

from __future__ import annotations

import re

import pytest

from tests.docs.pages import ROOT, blocks, text

DIAGRAMS = [diagram for page in ("docs/design.md", "docs/upgrades.md") for diagram in blocks(page, "mermaid")]
NAME = re.compile(
    r"\b(?:[a-z]+\.)?_?[a-z]+(?:_[a-z]+)+\b|\b_[a-z]+\b|\b[A-Z][a-z]+(?:[A-Z][A-Za-z]+)+\b|\bmemory\.[a-z]+\b"
)
"""A name from the code: words joined by underscores or capitals, a word after an underscore, a method of memory."""

NOT_OURS = {"GitHub", "SQLite", "PostgreSQL", "GraphQL"}


@pytest.fixture(scope="module")
def code() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted((ROOT / "bot").rglob("*.py")))


def names(diagram: str) -> set[str]:
    """The names from the code in a diagram; methods without the name of their object."""
    shown = re.sub(r"<br>|\b[A-Z_]+_PATH\b|issue_comment", " ", diagram)
    return {name.rpartition(".")[2] for name in NAME.findall(shown)} - NOT_OURS


def test_every_name_in_a_diagram_is_in_the_code(code: str) -> None:
    found_names = set[str]().union(*map(names, DIAGRAMS))
    assert {"_reapply", "BranchStore", "learn_from_memory", "GraphQLHistory", "SessionIndex"} <= found_names
    defined = re.compile(r"\b(?:def|class) (\w+)|^ {4}(?:self\.)?(\w+)(?::| =)|self\.(\w+)\b", re.MULTILINE)
    assert found_names - {name for found in defined.findall(code) for name in found} == set()


def test_a_diagram_has_a_known_type_and_balanced_quotes() -> None:
    assert len(DIAGRAMS) >= 4
    for kind, *lines in map(str.splitlines, DIAGRAMS):
        assert kind in {"flowchart LR", "flowchart TB", "sequenceDiagram"}
        for line in lines:
            assert line.count('"') % 2 == 0, line
            assert not {";", "#"} & set(line), line  # one ends a statement, the other begins an entity


def test_every_documented_reason_is_in_the_code(code: str) -> None:
    rows = text("docs/troubleshooting.md").partition("| reason | what it means |")[2].partition("\n\n")[0].splitlines()
    reasons = [reason for row in rows for reason in re.findall(r"`([^`]+)`", row.split("|")[1] if "|" in row else "")]
    assert len(reasons) > 10
    assert [reason for reason in reasons if f'"{reason}"' not in code] == []
