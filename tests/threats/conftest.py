"""A git server for these tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_http import GitServer
from tests.memory.remotes import HostedRepository


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[HostedRepository]:
    """An empty repository, served over HTTP to anyone with the token."""
    with GitServer(tmp_path / "served") as server:
        yield HostedRepository(server, server.create("octocat/hello"))
