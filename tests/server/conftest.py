"""A queue in each database, a PostgreSQL server that is started once, and servers without a web part."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.storage.database import Database
from tests.fakes.github import FakeGitHub
from tests.fakes.payloads import EventfulProject
from tests.server import postgres
from tests.server.app_environment import OTHER, AppEnvironment, make_environment
from tests.server.client import OPERATOR
from tests.server.harness import ServerHarness
from tests.server.queues import Queue, copy_database, queue_in_database, template_file
from tests.server.web_process import web_process

KINDS = ["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)]


@pytest.fixture(scope="session")
def postgres_server() -> Iterator[postgres.Server]:
    server = postgres.start()
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture
def postgres_url(postgres_server: postgres.Server) -> Iterator[str]:
    """The URL of an empty database."""
    with postgres_server.database() as url:
        yield url


@pytest.fixture(scope="session")
def postgres_template(postgres_server: postgres.Server) -> Iterator[str]:
    """The name of a database with all tables, from which others are copied."""
    with postgres_server.database() as url:
        database = Database(url)
        database.make_tables()
        database.close()
        yield url.rpartition("/")[2]


@pytest.fixture(scope="session")
def sqlite_template() -> Path:
    return template_file()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with all tables, in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        yield copy_database(request.getfixturevalue("sqlite_template"), tmp_path)
        return
    server = request.getfixturevalue("postgres_server")
    with server.database(template=request.getfixturevalue("postgres_template")) as url:
        yield url


@pytest.fixture(params=KINDS)
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queue]:
    """A queue in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        url = copy_database(request.getfixturevalue("sqlite_template"), tmp_path)
        with queue_in_database(url, tmp_path) as inbox_queue:
            yield inbox_queue
    else:
        server, template = request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_template")
        with server.database(template=template) as url, queue_in_database(url, tmp_path) as inbox_queue:
            yield inbox_queue


@pytest.fixture(scope="session")
def web_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[int, int]]:
    """Port and process id of a web server with both passwords."""
    with web_process(tmp_path_factory.mktemp("web"), "--operator", OPERATOR) as (port, process):
        yield port, process.pid


@pytest.fixture
def own_log() -> Iterator[None]:
    """Restores the log handlers and levels of this process afterwards."""
    root, ours = logging.getLogger(), logging.getLogger("bot")
    before = (list(root.handlers), root.level, ours.level)
    yield
    logging.captureWarnings(capture=False)
    root.handlers[:] = before[0]
    root.setLevel(before[1])
    ours.setLevel(before[2])


@pytest.fixture
def env(github: FakeGitHub, request: pytest.FixtureRequest) -> Iterator[AppEnvironment]:
    """An inbox in a file; for a test that uses `queue` too, in SQLite and in PostgreSQL."""
    github.add_project(OTHER)
    inbox = request.getfixturevalue("queue").inbox if "queue" in request.fixturenames else None
    environment = make_environment(github, inbox)
    environment.inbox.now = environment.inbox.queue.now = environment.clock
    yield environment
    environment.api.close()


@pytest.fixture
def harness(tmp_path: Path) -> Iterator[ServerHarness]:
    """A server for many repositories, without its web part; checks that each token is used only where it may be."""
    server = ServerHarness(tmp_path)
    yield server
    server.close()
    assert server.github.violations == []
    assert server.token_misuses() == []


@pytest.fixture
def project(harness: ServerHarness) -> EventfulProject:
    """The repository octo-org/app, with the App installed and a decision on PostgreSQL in its past."""
    app = harness.project("octo-org/app", "PostgreSQL")
    harness.github.tenants.install("octo-org", ["octo-org/app"])
    return app
