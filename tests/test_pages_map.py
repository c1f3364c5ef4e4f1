"""docs/README.md is a map that lists every page once, in one line."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
ENTRY = re.compile(r"^- \[[^\]]+\]\(([\w-]+\.md)\): \S.*\.$")


def entries() -> list[str]:
    """The pages to which the lines of the map link, in order."""
    lines = (DOCS / "README.md").read_text(encoding="utf-8").splitlines()
    return [entry[1] for line in lines if (entry := ENTRY.match(line))]


def test_every_page_is_on_the_map_once() -> None:
    pages = sorted(page.name for page in DOCS.glob("*.md") if page.name != "README.md")
    assert sorted(entries()) == pages


def test_every_list_item_of_the_map_is_one_line_about_one_page() -> None:
    lines = (DOCS / "README.md").read_text(encoding="utf-8").splitlines()
    strange = [line for line in lines if line.startswith(("-", " ")) and not ENTRY.match(line)]
    assert all("CONTRIBUTING.md" in line for line in strange)
    assert len(strange) == 1
