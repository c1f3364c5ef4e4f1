"""A sample repository with the memory that all of them begin with."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.github import FakeGitHub
from tests.pipeline.sample_repository import REPO, SampleRepository


@pytest.fixture(scope="module")
def memory_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the memory that every sample repository begins with."""
    with FakeGitHub(REPO, validate=False) as github:
        return SampleRepository(github, tmp_path_factory.mktemp("opened")).folder


@pytest.fixture
def sample(memory_folder: Path, tmp_path: Path) -> Iterator[SampleRepository]:
    with FakeGitHub(REPO, validate=False) as github:
        yield SampleRepository(github, tmp_path, memory_folder)
