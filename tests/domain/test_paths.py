"""Paths of files are compared in one way, however people write them."""

from __future__ import annotations

import pytest

from bot.domain.paths import end_alike, path_parts


@pytest.mark.parametrize(
    ("path", "other", "is_alike"),
    [
        ("auth/cookie.py", "cookie.py", True),
        ("C:\\src\\Auth\\Cookie.py", "./auth/cookie.py", True),
        ("/app//auth/cookie.py", "auth/../auth/cookie.py", False),
        ("auth/cookie.py", "web/cookie.py", False),
        ("mycookie.py", "cookie.py", False),
        ("", "cookie.py", False),
        ("/", "", False),
    ],
)
def test_two_paths_may_be_of_one_file_if_one_is_the_end_of_the_other(path: str, other: str, is_alike: bool) -> None:
    assert end_alike(path_parts(path), path_parts(other)) is is_alike
    assert end_alike(path_parts(other), path_parts(path)) is is_alike
