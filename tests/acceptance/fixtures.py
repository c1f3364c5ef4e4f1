"""Stages for tests of the Action: one with a past, and two without any history."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.acceptance.stage import Stage, with_past


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    """A repository with a decision (1) and a wish that was declined (2), both long closed."""
    with Stage(tmp_path) as made:
        yield with_past(made)


@pytest.fixture
def empty_stage(tmp_path: Path) -> Iterator[Stage]:
    with Stage(tmp_path) as made:
        yield made


@pytest.fixture
def fast_stage(tmp_path: Path) -> Iterator[Stage]:
    """An empty stage for hundreds of objects: requests and responses are not checked against GitHub's description."""
    with Stage(tmp_path, validate=False) as made:
        yield made
