"""Fixtures: a fresh fake GitHub and a fresh git server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fakes.git_http import GitServer
from tests.fakes.github import FakeGitHub


@pytest.fixture
def github() -> Iterator[FakeGitHub]:
    """A fake GitHub with an empty repository; the test fails if anything violated GitHub's own description."""
    with FakeGitHub() as fake:
        yield fake
        assert not fake.violations, "\n".join(fake.violations)


@pytest.fixture
def git_server(tmp_path: Path) -> Iterator[GitServer]:
    """A git server for an empty folder."""
    with GitServer(tmp_path / "git") as server:
        yield server
