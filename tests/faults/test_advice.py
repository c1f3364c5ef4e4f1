"""What a maintainer is told of a red or green run is what the tables of the tests say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.faults.advice import ALL, Advice, faults


@pytest.mark.parametrize("advice", ALL, ids=lambda advice: advice.sees)
def test_advice_is_true_of_every_row_that_it_is_about(advice: Advice) -> None:
    assert list(faults(advice)) == []


def test_advice_that_mixes_red_and_green_is_found() -> None:
    (red,) = (advice for advice in ALL if "branch of another project" in advice.git)
    assert list(faults(replace(red, git=(*red.git, "archived repository"))))


def test_advice_that_shows_another_line_than_the_log_is_found() -> None:
    assert list(faults(replace(ALL[0], sees="`It is over`")))
