"""The page of dependencies names each that we ask for, with its extra, and no other."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOR_WORK = {"test", "dev", "browser"}
"""Extras of people who work on Precedent, which no user gets."""

_NAME = re.compile(r"[A-Za-z0-9-]+")
_ROW = re.compile(r"^\| ([A-Za-z][A-Za-z0-9-]*) \|(?: `([a-z]+)` \|)?", re.MULTILINE)


def wanted() -> set[tuple[str, str]]:
    """Each library with the extra that brings it, "" for everybody's."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = {"": project["dependencies"], **project["optional-dependencies"]}
    found = {(name(one), extra) for extra, them in asked.items() if extra not in FOR_WORK for one in them}
    return {(library, extra) for library, extra in found if (library, "") not in found or not extra}


def name(requirement: str) -> str:
    found = _NAME.match(requirement)
    assert found
    return found[0].lower()


def test_the_page_names_every_library_with_its_extra() -> None:
    page = (ROOT / "docs" / "dependencies.md").read_text(encoding="utf-8")
    told = {(library.lower(), extra) for library, extra in _ROW.findall(page) if library != "library"}
    assert told == wanted()


def test_a_library_that_is_missing_would_be_seen() -> None:
    assert ("whoosh", "") in wanted()
    assert ("mcp", "mcp") in wanted()
