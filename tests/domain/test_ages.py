"""Ages are said in one way."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.domain.ages import age, days_ago


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (-5, "0 seconds"),
        (1, "1 second"),
        (60, "60 seconds"),
        (7_199, "119 minutes"),
        (7_300, "2 hours"),
        (47 * 3_600, "47 hours"),
        (86_400 * 1_200, "1,200 days"),
    ],
)
def test_an_age_is_given_in_the_largest_unit_that_fits_twice(seconds: int, expected: str) -> None:
    assert age(timedelta(seconds=seconds)) == expected


def test_one_day_is_singular() -> None:
    assert [days_ago(days) for days in (1, 2)] == ["1 day ago", "2 days ago"]
