"""docs/README.md is a map: every page is on it, once, in one line."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
ENTRY = re.compile(r"^- \[[^\]]+\]\(([\w-]+\.md)\): \S.*\.$")


def entries() -> list[str]:
    """What the lines of the map lead to, in their order."""
    lines = (DOCS / "README.md").read_text(encoding="utf-8").splitlines()
    return [found[1] for line in lines if (found := ENTRY.match(line))]


def test_every_page_is_on_the_map_once() -> None:
    pages = sorted(page.name for page in DOCS.glob("*.md") if page.name != "README.md")
    assert sorted(entries()) == pages


def test_every_list_item_of_the_map_is_one_line_about_one_page() -> None:
    lines = (DOCS / "README.md").read_text(encoding="utf-8").splitlines()
    strange = [line for line in lines if line.startswith(("-", " ")) and not ENTRY.match(line)]
    assert all("CONTRIBUTING.md" in line for line in strange)
    assert len(strange) == 1
