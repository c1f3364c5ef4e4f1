"""Stages for tests of the Action: one with a past, and two without any history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.stage import Stage

# Every run of pytest loads this file, so each fixture imports what it needs when it is used.


@pytest.fixture(scope="session")
def shared_stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """The stage that the tests of a process share; each begins with a saved state."""
    from tests.acceptance.stage import Stage

    with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


@pytest.fixture
def empty_stage(shared_stage: Stage, tmp_path: Path) -> Iterator[Stage]:
    """A repository without issues. A module's own fixture can `begin` with more; the runner's folder is empty.

    A request or response that does not match GitHub's API description fails the test.
    """
    shared_stage.validate, shared_stage.folder = True, tmp_path
    yield shared_stage.begin()
    assert shared_stage.github.violations == []


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A repository with a decision (1) and a feature request that was declined (2), both closed long ago."""
    from tests.acceptance.stage import with_past

    return empty_stage.begin(with_past)


@pytest.fixture
def fast_stage(empty_stage: Stage) -> Stage:
    """An empty stage for hundreds of objects; requests and responses are not checked against GitHub's API schema."""
    empty_stage.validate = empty_stage.github.validate = False
    return empty_stage
