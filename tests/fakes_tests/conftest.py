"""The fixtures of the fakes, and the two real clients that the fake must satisfy."""

from collections.abc import Iterator

import httpx
import pytest
from github.Repository import Repository
from githubkit import GitHub, TokenAuthStrategy

from tests.fakes.clients import connect_githubkit, connect_pygithub
from tests.fakes.fixtures import git_server, github
from tests.fakes.github import FakeGitHub

__all__ = ["git_server", "github"]


@pytest.fixture
def repo(github: FakeGitHub) -> Iterator[Repository]:
    """The fake's repository as PyGithub sees it."""
    with connect_pygithub(github) as client:
        yield client.get_repo("octocat/hello-world")


@pytest.fixture
def kit(github: FakeGitHub) -> Iterator[GitHub[TokenAuthStrategy]]:
    with connect_githubkit(github) as client:
        yield client


@pytest.fixture
def http(github: FakeGitHub) -> Iterator[httpx.Client]:
    """Plain requests with the workflow's token; `github.url` is the base URL."""
    with httpx.Client(base_url=github.url, headers={"Authorization": f"Bearer {github.token}"}) as client:
        yield client
