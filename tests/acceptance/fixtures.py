"""Stages for tests of the Action: one with a past, and two without any history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.stage import Stage

# Every run of pytest loads this file, so each fixture imports what it needs when it is used.


@pytest.fixture
def stage(empty_stage: Stage) -> Stage:
    """A repository with a decision (1) and a feature request that was declined (2), both closed long ago."""
    from tests.acceptance.stage import with_past

    return with_past(empty_stage)


@pytest.fixture
def empty_stage(tmp_path: Path) -> Iterator[Stage]:
    from tests.acceptance.stage import Stage

    with Stage(tmp_path) as new_stage:
        yield new_stage


@pytest.fixture
def fast_stage(tmp_path: Path) -> Iterator[Stage]:
    """An empty stage for hundreds of objects; requests and responses are not checked against GitHub's API schema."""
    from tests.acceptance.stage import Stage

    with Stage(tmp_path, validate=False) as new_stage:
        yield new_stage
