"""Random histories by seed, a crash at every I/O point, and planted bugs; `python -m tests.simulator` plays more."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.examples import share
from tests.simulator.crash_points import SCENARIOS, crash_everywhere, is_squashed
from tests.simulator.planted import BUGS, ROOT, Bug, hunt
from tests.simulator.runner import get_scene, play_twice, remove_scene
from tests.simulator.scene import Scene

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
"""A run that crashes leaves files open, which would be closed with its process in real life."""

SEEDS = share((3_000, 10, *range(3_001, 3_008)), 3)
"""The first of the thousands is played twice (`play_twice`). `.ci/run` plays more."""


@pytest.fixture(scope="module")
def scene() -> Iterator[Scene]:
    yield get_scene()
    remove_scene()


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_history_breaks_no_invariant(scene: Scene, seed: int) -> None:
    assert play_twice(scene, seed).broken == ()


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("scenario", share(SCENARIOS, 4, 1))
def test_the_next_run_recovers_from_a_crash_at_any_point(scene: Scene, scenario: str) -> None:
    crashes = list(crash_everywhere(scene, scenario))
    assert len(crashes) >= 20
    assert {crash.kind for crash in crashes} >= {"git fetch", "git push", "git cat-file", "http.client.send"}
    assert [crash for crash in crashes if crash.broken] == []


@pytest.mark.slow
def test_the_squash_scenario_really_squashes_the_branch(scene: Scene) -> None:
    assert is_squashed(scene)


def test_every_bug_can_be_planted() -> None:
    assert [bug.name for bug in BUGS if (ROOT / bug.path).read_text(encoding="utf-8").count(bug.old) != 1] == []


@pytest.mark.night
@pytest.mark.slow
@pytest.mark.parametrize("bug", share(BUGS), ids=lambda bug: bug.name)
def test_a_planted_bug_is_caught(bug: Bug) -> None:
    after, fault = hunt(bug)
    assert after, "it was not caught"
    assert fault
