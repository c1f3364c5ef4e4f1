"""The git server of this room's tests."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_http import GitServer
from tests.memory.remotes import Hosted


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    """An empty repository, served over HTTP to whoever knows the token."""
    with GitServer(tmp_path / "served") as server:
        yield Hosted(server, server.create("octocat/hello"))
