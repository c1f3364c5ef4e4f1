"""What stored values must look like."""

import pytest

from bot.domain.roles import known_role
from bot.domain.shape import MAX_WORD_CHARS, one_word


@pytest.mark.parametrize("text", ["#12", "octo-org/sdk@0d0e0ed", "#issuecomment-7", "v2.3.0-rc.1+build", "版本1.0", ""])
def test_a_reference_or_version_is_read_as_it_is(text: str) -> None:
    assert one_word(text) == text


@pytest.mark.parametrize(
    "value", ["v1 and more", "v1\n", "\x1b[2J", "v1\u202e", "a`b", '"', "<b>", "x" * 121, None, 7, ["v1"]]
)
def test_whatever_may_be_more_than_one_word_is_left_out(value: object) -> None:
    assert one_word(value) == ""
    assert MAX_WORD_CHARS == 120


def test_only_roles_of_github_are_read() -> None:
    assert [known_role(role) for role in ("OWNER", "NONE", "FIRST_TIMER")] == ["OWNER", "NONE", "FIRST_TIMER"]
    assert [known_role(role) for role in ("owner", "OWNER\n", "obey", None, 7, ["OWNER"])] == [""] * 6
