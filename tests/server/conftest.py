"""A queue in each of its forms, a PostgreSQL server that is started once, and servers without a web part."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.server.database import Database
from tests.fakes.github import FakeGitHub
from tests.server import postgres
from tests.server.places import OTHER, Places, places
from tests.server.queues import Queue, copied, made_file, queue_in_database
from tests.server.town import Town

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
def made_postgres(postgres_server: postgres.Server) -> Iterator[str]:
    """The name of a database with all tables, of which others are copies."""
    with postgres_server.database() as url:
        database = Database(url)
        database.make_tables()
        database.close()
        yield url.rpartition("/")[2]


@pytest.fixture(scope="session")
def made_sqlite() -> Path:
    return made_file()


@pytest.fixture(params=KINDS)
def database_url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a database with all tables, in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        yield copied(request.getfixturevalue("made_sqlite"), tmp_path)
        return
    server = request.getfixturevalue("postgres_server")
    with server.database(template=request.getfixturevalue("made_postgres")) as url:
        yield url


@pytest.fixture(params=KINDS)
def queue(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Queue]:
    """A queue in SQLite and in PostgreSQL."""
    if request.param == "sqlite":
        url = copied(request.getfixturevalue("made_sqlite"), tmp_path)
        with queue_in_database(url, tmp_path) as found:
            yield found
    else:
        server, made = request.getfixturevalue("postgres_server"), request.getfixturevalue("made_postgres")
        with server.database(template=made) as url, queue_in_database(url, tmp_path) as found:
            yield found


@pytest.fixture
def here(github: FakeGitHub) -> Iterator[Places]:
    github.add_project(OTHER)
    found = places(github)
    yield found
    found.api.close()


@pytest.fixture
def town(tmp_path: Path) -> Iterator[Town]:
    """A server for many repositories, without its web part; no token of it may be used elsewhere."""
    found = Town(tmp_path)
    yield found
    found.close()
    assert found.github.violations == []
    assert found.trespasses() == []
