"""What an image has no use for is taken out of the libraries, and of some only where they are."""

from __future__ import annotations

from itertools import chain
from pathlib import Path

import pytest

from tools.image_cut import UNUSED, UNUSED_OF, cut

OF_SOME = tuple(chain.from_iterable(UNUSED_OF.values()))


def installed(folder: Path, *patterns: str) -> None:
    """A file for each of these patterns."""
    for pattern in patterns:
        file = folder / pattern.replace("[a-z]", "a").replace("*", "1")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()


def test_what_is_unused_goes_and_the_rest_stays(tmp_path: Path) -> None:
    installed(tmp_path, *UNUSED, *OF_SOME, "pyarrow/libarrow.so.1", "bot/tests/test_it.py", "bot/files.pyi")
    cut(tmp_path)
    assert [str(each.relative_to(tmp_path)) for each in tmp_path.rglob("*") if each.is_file()] == [
        "pyarrow/libarrow.so.1"
    ]


def test_of_a_library_that_is_not_there_nothing_is_looked_for(tmp_path: Path) -> None:
    installed(tmp_path, *UNUSED)
    cut(tmp_path)
    assert not any(each.is_file() for each in tmp_path.rglob("*"))


def test_a_part_that_a_new_version_has_elsewhere_fails_the_build(tmp_path: Path) -> None:
    installed(tmp_path, *UNUSED, *OF_SOME[:-1])
    with pytest.raises(SystemExit, match=r"pyarrow/_s3fs\*.so fits nothing"):
        cut(tmp_path)
