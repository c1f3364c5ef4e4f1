"""The git server and the stores for the tests of memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_http import GitServer
from tests.memory.remotes import HostedRepository
from tests.memory.samples import StoredMemory


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[HostedRepository]:
    """An empty repository, served over HTTP to clients with the token."""
    with GitServer(tmp_path / "served") as server:
        yield HostedRepository(server, server.create("octocat/hello"))


@pytest.fixture
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StoredMemory]:
    """A memory in a folder, or on a branch if the test has the parameter "branch"."""
    is_on_branch = getattr(request, "param", "") == "branch"
    memory = StoredMemory(tmp_path / "store", request.getfixturevalue("hosted") if is_on_branch else None)
    yield memory
    memory.close()
