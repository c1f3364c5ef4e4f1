"""The fake GitHub and a client for it."""

import pytest

from bot.comment.marker import marker
from bot.github.client import GitHubClient
from bot.github.threads import OwnCommentRule
from tests.fakes.fixtures import github
from tests.fakes.github import FakeGitHub

__all__ = ["github"]

REPOSITORY = "octocat/hello-world"


@pytest.fixture
def client(github: FakeGitHub) -> GitHubClient:
    """A client with the workflow's token, without the pause between writes."""
    return GitHubClient(github.url, github.token, REPOSITORY, write_gap=0)


@pytest.fixture
def own() -> OwnCommentRule:
    return OwnCommentRule("github-actions[bot]", marker())
