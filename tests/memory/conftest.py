"""The git server and the stores for the tests of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_http import GitServer
from tests.memory.remotes import HostedRepository
from tests.memory.samples import KINDS, StoredMemory


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[HostedRepository]:
    """An empty repository, served over HTTP to clients with the token."""
    with GitServer(tmp_path / "served") as server:
        yield HostedRepository(server, server.create("octocat/hello"))


@pytest.fixture(params=KINDS)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredMemory]:
    """A memory in a folder, and one on a branch."""
    stored_memory = StoredMemory(tmp_path, request.param)
    yield stored_memory
    stored_memory.close()
