"""The fake GitHub and a client for it."""

from collections.abc import Iterator

import pytest

from bot.comment.marker import marker
from bot.github.client import GitHubClient
from bot.github.threads import OwnCommentRule
from tests.fakes.fixtures import github
from tests.fakes.github import FakeGitHub
from tests.fakes.httpd import Listener
from tests.fakes.service import SentReply

__all__ = ["github"]

REPOSITORY = "octocat/hello-world"


@pytest.fixture
def client(github: FakeGitHub) -> GitHubClient:
    """A client with the workflow's token, without the pause between writes."""
    return GitHubClient(github.url, github.token, REPOSITORY, write_gap=0)


@pytest.fixture
def number(github: FakeGitHub) -> int:
    """The number of an issue."""
    return github.open_issue("octocat", "Crash", "It crashes.")


class ScriptedServer:
    """A server that answers with ``answers`` in turn, the last one again and again; ``requests`` has their headers."""

    def __init__(self) -> None:
        self.answers: list[SentReply] = []
        self.requests: list[dict[str, str]] = []
        self.listener = Listener(self._answer)
        self.url = self.listener.url

    def client(self) -> GitHubClient:
        return GitHubClient(self.url, "token", REPOSITORY, write_gap=0)

    def _answer(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        self.requests.append(headers)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


@pytest.fixture
def scripted_server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.listener.stop()


@pytest.fixture
def own() -> OwnCommentRule:
    return OwnCommentRule("github-actions[bot]", marker())
