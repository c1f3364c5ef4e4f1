"""Whoever observes is told of each request: both clients, refusals and repeats, and nobody else's."""

from __future__ import annotations

import contextvars
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import pytest

from bot.errors import PrecedentError
from bot.github.app import App
from bot.github.client import GitHubClient
from bot.github.errors import Gone, Unreachable
from bot.github.observer import TellAnswer, observe_request, observed_by
from tests.fakes.github import FakeGitHub
from tests.github.keys import key_pair

NAME = contextvars.ContextVar("name", default="")


class Notes:
    """What an observer was told: verb, path, and the status or the class of the error."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, str, int | str]] = []
        self.left: list[str] = []

    @contextmanager
    def __call__(self, verb: str, path: str) -> Iterator[TellAnswer]:
        told: list[int] = []

        def tell(status: int, headers: Mapping[str, str]) -> None:
            told.append(status)
            self.left.append(headers.get("x-ratelimit-remaining", ""))

        try:
            yield tell
        except Exception as error:
            self.heard.append((verb, path, type(error).__name__))
            raise
        self.heard += [(verb, path, status) for status in told]


@pytest.fixture
def app(github: FakeGitHub) -> Iterator[App]:
    github.add_app(77, "helper", public_key=key_pair()[1])
    with App(77, key_pair()[0], github.url) as made:
        yield made


def test_each_request_is_told_with_its_answer(github: FakeGitHub, client: GitHubClient) -> None:
    number, notes = github.open_issue("octocat", "Sesame", "Open."), Notes()
    with observed_by(notes):
        client.issue(number)
        with pytest.raises(Gone):
            client.issue(99)
    client.issue(number)
    home = "/repos/octocat/hello-world/issues"
    assert notes.heard == [("GET", f"{home}/{number}", 200), ("GET", f"{home}/99", 404)]
    assert [int(left) for left in notes.left] == [999, 998]


def test_requests_of_the_app_are_told_too(app: App, github: FakeGitHub) -> None:
    notes = Notes()
    with observed_by(notes):
        app.about()
        with pytest.raises(PrecedentError):
            app.create_token(12345, 17)
    assert notes.heard == [("GET", "/app", 200), ("GET", "/app/installations/12345", 404)]


def test_a_request_without_an_answer_is_told_by_its_error() -> None:
    notes = Notes()
    with observed_by(notes), pytest.raises(Unreachable):
        GitHubClient("http://127.0.0.1:9", "", "octocat/hello-world", write_gap=0).issue(1)
    assert notes.heard
    assert {(verb, error) for verb, _, error in notes.heard} == {("GET", "ConnectionError")}


def test_the_caller_is_known_while_the_app_asks(app: App, github: FakeGitHub) -> None:
    """So lines that a library writes meanwhile name the delivery."""
    seen: list[str] = []

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            seen.append(NAME.get())

    ear, logger = Ear(), logging.getLogger("httpx")
    level = logger.level
    logger.addHandler(ear)
    logger.setLevel(logging.INFO)
    try:
        token = NAME.set("a delivery")
        app.about()
        NAME.reset(token)
    finally:
        logger.removeHandler(ear)
        logger.setLevel(level)
    assert set(seen) == {"a delivery"}


def test_without_an_observer_nothing_is_made() -> None:
    assert observe_request("GET", "/app") is observe_request("POST", "/graphql")
