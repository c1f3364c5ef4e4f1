"""A project whose pages the tests read."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_http import GitServer
from tests.sources.projects import Project


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    with GitServer(tmp_path / "served") as server:
        opened = Project(tmp_path, server)
        yield opened
        opened.memory.close()
