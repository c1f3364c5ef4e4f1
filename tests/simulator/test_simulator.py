"""Histories by seed, a crash at every I/O point, bugs planted on purpose; `python -m tests.simulator` plays more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.examples import share
from tests.simulator.everywhere import SCENARIOS, die_everywhere, squashes
from tests.simulator.planted import BUGS, Bug, hunt
from tests.simulator.program import give_back, ground_here, play_twice
from tests.simulator.scene import Ground

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""A run that dies leaves files open, which in a process of its own would end with it."""

SEEDS = share((3_000, 10, *range(3_001, 3_008)), 3)
"""The first of the thousands is played twice (`play_twice`). `.ci/run` plays more."""


@pytest.fixture(scope="module")
def ground() -> Iterator[Ground]:
    yield ground_here()
    give_back()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_history_breaks_nothing(ground: Ground, seed: int) -> None:
    assert play_twice(ground, seed).broken == ()


@pytest.mark.slow
@pytest.mark.parametrize("scenario", share(SCENARIOS, 2, 1))
def test_a_run_may_die_at_every_point(ground: Ground, scenario: str) -> None:
    deaths = list(die_everywhere(ground, scenario))
    assert len(deaths) > 20
    assert {death.kind for death in deaths} >= {"git fetch", "git push", "git cat-file", "http.client.send"}
    assert [death for death in deaths if death.broken] == []


@pytest.mark.slow
def test_the_squash_happens_where_a_run_dies_in_it(ground: Ground) -> None:
    assert squashes(ground)


@pytest.mark.slow
@pytest.mark.parametrize("bug", share(BUGS), ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    after, told = hunt(bug)
    assert after, "it was not caught"
    assert told
