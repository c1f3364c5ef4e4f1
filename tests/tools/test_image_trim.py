"""Files that the image does not need are removed from the libraries, for some only if they are installed."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tools.image_trim import UNUSED, UNUSED_OF, cut

OF_SOME = tuple(chain.from_iterable(UNUSED_OF.values()))


def create_files(folder: Path, *patterns: str) -> None:
    """Create a file for each of these patterns."""
    for pattern in patterns:
        file = folder / pattern.replace("[a-z]", "a").replace("*", "1")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def test_unused_files_are_removed_and_the_rest_stays(tmp_path: Path) -> None:
    create_files(tmp_path, *UNUSED, *OF_SOME, "pyarrow/libarrow.so.1", "bot/tests/test_it.py", "bot/files.pyi")
    cut(tmp_path)
    assert [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()] == [
        "pyarrow/libarrow.so.1"
    ]


def test_patterns_of_a_library_that_is_not_installed_are_skipped(tmp_path: Path) -> None:
    create_files(tmp_path, *UNUSED)
    cut(tmp_path)
    assert not any(each.is_file() for each in tmp_path.rglob("*"))


def test_a_pattern_that_matches_nothing_in_a_new_version_fails_the_build(tmp_path: Path) -> None:
    create_files(tmp_path, *UNUSED, *OF_SOME[:-1])
    with pytest.raises(SystemExit, match=r"pyarrow/_s3fs\*.so fits nothing"):
        cut(tmp_path)
