"""The table of dependencies names every library that we require, with its extra, and no other."""

import re
import tomllib
from pathlib import Path

from tests.docs.pages import section

ROOT = Path(__file__).resolve().parents[2]
FOR_WORK = {"test", "dev", "browser"}
"""Extras for people who work on Precedent; no user gets them."""

_NAME = re.compile(r"[A-Za-z0-9-]+")
_ROW = re.compile(r"^\| ([A-Za-z][A-Za-z0-9-]*) \|(?: `([a-z]+)` \|)?", re.MULTILINE)


def required_libraries() -> set[tuple[str, str]]:
    """Each library with the extra that installs it ("" for libraries that everybody gets)."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = {"": project["dependencies"], **project["optional-dependencies"]}
    libraries = {
        (name(requirement), extra)
        for extra, requirements in extras.items()
        if extra not in FOR_WORK
        for requirement in requirements
    }
    return {(library, extra) for library, extra in libraries if (library, "") not in libraries or not extra}


def name(requirement: str) -> str:
    matched = _NAME.match(requirement)
    assert matched
    return matched[0].lower()


def test_the_table_names_every_library_with_its_extra() -> None:
    page = section("CONTRIBUTING.md", "Dependencies")
    assert {("whoosh", ""), ("mcp", "mcp")} <= required_libraries()
    documented = {(library.lower(), extra) for library, extra in _ROW.findall(page) if library != "library"}
    assert documented == required_libraries()
