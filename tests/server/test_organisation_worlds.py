"""In random organisations nothing of a repository is shown where some reader may not read it."""

from __future__ import annotations

import pytest

from tests.examples import examples
from tests.organisation_worlds import explore


def test_nothing_leaks_in_some_random_organisations() -> None:
    explore(examples(25))


@pytest.mark.slow
def test_nothing_leaks_in_many_random_organisations() -> None:
    explore(examples(1_000))
