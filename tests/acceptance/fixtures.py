"""Stages for tests of the Action: one with a past, and two without any history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.stage import Stage

# Every run of pytest loads this file, so what the stages need is imported by whoever uses one.


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A repository with a decision (1) and a wish that was declined (2), both long closed."""
    from tests.acceptance.stage import with_past

    return with_past(empty_stage)


@pytest.fixture
def empty_stage(tmp_path: Path) -> Iterator[Stage]:
    from tests.acceptance.stage import Stage

    with Stage(tmp_path) as made:
        yield made


@pytest.fixture
def fast_stage(tmp_path: Path) -> Iterator[Stage]:
    """An empty stage for hundreds of objects: requests and responses are not checked against GitHub's description."""
    from tests.acceptance.stage import Stage

    with Stage(tmp_path, validate=False) as made:
        yield made
