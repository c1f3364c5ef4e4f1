"""An observer sees each request of both clients, with refusals and retries, and nobody else's."""

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


class RecordingObserver:
    """Records each request: verb, path, and the status or the class of the error."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int | str]] = []
        self.requests_left: list[str] = []

    @contextmanager
    def __call__(self, verb: str, path: str) -> Iterator[TellAnswer]:
        statuses: list[int] = []

        def tell(status: int, headers: Mapping[str, str]) -> None:
            statuses.append(status)
            self.requests_left.append(headers.get("x-ratelimit-remaining", ""))

        try:
            yield tell
        except Exception as error:
            self.requests.append((verb, path, type(error).__name__))
            raise
        self.requests += [(verb, path, status) for status in statuses]


@pytest.fixture
def app(github: FakeGitHub) -> Iterator[App]:
    github.add_app(77, "helper", public_key=key_pair()[1])
    with App(77, key_pair()[0], github.url) as client:
        yield client


def test_the_observer_sees_each_request_with_its_response(github: FakeGitHub, client: GitHubClient) -> None:
    number, recorder = github.open_issue("octocat", "Sesame", "Open."), RecordingObserver()
    with observed_by(recorder):
        client.issue(number)
        with pytest.raises(Gone):
            client.issue(99)
    client.issue(number)
    home = "/repos/octocat/hello-world/issues"
    assert recorder.requests == [("GET", f"{home}/{number}", 200), ("GET", f"{home}/99", 404)]
    assert [int(requests_left) for requests_left in recorder.requests_left] == [999, 998]


def test_the_observer_sees_requests_of_the_app_too(app: App, github: FakeGitHub) -> None:
    recorder = RecordingObserver()
    with observed_by(recorder):
        app.about()
        with pytest.raises(PrecedentError):
            app.create_token(12345, 17)
    assert recorder.requests == [("GET", "/app", 200), ("GET", "/app/installations/12345", 404)]


def test_the_observer_sees_the_error_of_a_failed_request() -> None:
    recorder = RecordingObserver()
    with observed_by(recorder), pytest.raises(Unreachable):
        GitHubClient("http://127.0.0.1:9", "", "octocat/hello-world", write_gap=0).issue(1)
    assert recorder.requests
    assert {(verb, error) for verb, _, error in recorder.requests} == {("GET", "ConnectionError")}


def test_the_callers_context_is_kept_during_requests_of_the_app(app: App, github: FakeGitHub) -> None:
    """So log lines that a library writes meanwhile name the delivery."""
    names: list[str] = []

    class ContextHandler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            names.append(NAME.get())

    handler, logger = ContextHandler(), logging.getLogger("httpx")
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        token = NAME.set("a delivery")
        app.about()
        NAME.reset(token)
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
    assert set(names) == {"a delivery"}


def test_without_an_observer_all_requests_share_one_context() -> None:
    assert observe_request("GET", "/app") is observe_request("POST", "/graphql")
