"""The advice about a red or green run agrees with the tables of the tests."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.advice import ALL, Advice, check_advice


@pytest.mark.parametrize("advice", ALL, ids=lambda advice: advice.log_line)
def test_advice_agrees_with_every_row_that_it_covers(advice: Advice) -> None:
    assert list(check_advice(advice)) == []


def test_advice_that_mixes_red_and_green_is_reported() -> None:
    (red,) = (advice for advice in ALL if "branch of another project" in advice.git)
    assert list(check_advice(replace(red, git=(*red.git, "archived repository"))))


def test_advice_with_a_line_that_the_log_does_not_have_is_reported() -> None:
    assert list(check_advice(replace(ALL[0], log_line="`It is over`")))
