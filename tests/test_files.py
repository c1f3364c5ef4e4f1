"""Which paths a pattern matches."""

from __future__ import annotations

import pytest

from bot.files import Globs
from tests.reading.linear_time import assert_linear_time


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("README.md", "README.md", True),
        ("README.md", "Readme.MD", True),
        ("README.md", "docs/README.md", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/a/b.md", False),
        ("docs/**/*.md", "docs/a.md", True),
        ("docs/**/*.md", "docs/a/b/c.md", True),
        ("docs/**/*.md", "docs.md", False),
        ("**/adr-*.md", "adr-1.md", True),
        ("**/adr-*.md", "x/y/adr-1.md", True),
        ("docs/**", "docs/a/b.md", True),
        ("docs/**/adr/**/*.md", "docs/x/adr/y/z/1.md", True),
        ("docs/**/adr/**/*.md", "docs/x/y/z/1.md", False),
        ("docs/[ab].md", "docs/b.md", True),
        ("docs/?.md", "docs/ab.md", False),
    ],
)
def test_single_stars_stay_in_a_folder_and_double_stars_cross_folders(pattern: str, path: str, matches: bool) -> None:
    assert Globs([pattern]).match(path) is matches


@pytest.mark.parametrize(
    ("pattern", "folder", "may_match"),
    [
        ("README.md", "docs", False),
        ("docs/**/*.md", "Docs", True),
        ("docs/**/*.md", "docs/a/b", True),
        ("docs/*.md", "docs", True),
        ("docs/*.md", "docs/a", False),
        ("**/*.md", "anything/at/all", True),
        ("docs/**", "src", False),
    ],
)
def test_a_pattern_may_match_only_below_folders_on_its_way(pattern: str, folder: str, may_match: bool) -> None:
    assert Globs([pattern]).may_match_below(folder) is may_match


def test_many_stars_do_not_slow_matching_down() -> None:
    globs = Globs(["**/" * 7 + "x.md", "*a" * 10])
    assert not globs.match("a/" * 500 + "b" * 100)
    assert_linear_time(lambda path: globs.match(f"{path}b"), "a/", "a")
