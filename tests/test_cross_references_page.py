"""The bot finds in each text of the table in docs/endings.md what the table says."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from bot.reading.references import find_references

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "endings.md"
SPAN = re.compile(r"(`+) ?(.+?) ?\1")
REPO, NUMBER = "octo-org/linkbarn", 7
"""The issue in which the texts are, according to the page."""


def rows() -> list[tuple[str, str]]:
    """The text and the references found in it, for each row of the page's first table."""
    below = PAGE.read_text(encoding="utf-8").partition("| text | found |\n|---|---|\n")[2]
    cells = [line.strip("|").rsplit("|", 1) for line in below.partition("\n\n")[0].splitlines()]
    texts = [(SPAN.fullmatch(text.strip()), found_text.strip()) for text, found_text in cells]
    shown = [(span[2], found_text) for span, found_text in texts if span]
    assert len({text for text, _ in shown}) == len(cells) > 20
    return shown


def format_references(references: Sequence[Mapping[str, Any]]) -> str:
    """References, written as on the page."""
    names = [f"{each['owner']}/{each['repo']}#" if each["owner"] else "" for each in references]
    pairs = zip(names, references, strict=True)
    return ", ".join(f"{name}{each['number']} {each['action'] or ''}".strip() for name, each in pairs) or "nothing"


@pytest.mark.parametrize(("text", "shown"), rows(), ids=lambda cell: cell)
def test_the_bot_finds_in_a_text_what_the_page_says(text: str, shown: str) -> None:
    assert format_references([asdict(each) for each in find_references(text, repo=REPO, number=NUMBER)]) == shown


def test_the_command_on_the_page_finds_the_same() -> None:
    text, shown = next(row for row in rows() if "duplicate, " in row[1])
    command = [sys.executable, "-m", "bot", "references", "--repo", REPO, "--number", str(NUMBER)]
    done = subprocess.run(command, input=text, cwd=ROOT, capture_output=True, text=True, check=True)
    assert format_references(json.loads(done.stdout)) == shown
