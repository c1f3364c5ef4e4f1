"""Clients that ask for large pages and do not read them: they lose their places, and nobody waits for them."""

from __future__ import annotations

import contextlib
import select
import socket
import threading
import time
from collections.abc import Iterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from bot.server.receive import connections
from tests.ports import free_port

PATIENCE = 0.5
PAGE = b"a" * 4_000_000
PLACES = 20


async def page(_: Request) -> PlainTextResponse:
    return PlainTextResponse(PAGE)


async def note(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


@pytest.fixture
def patience() -> float:
    return PATIENCE


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch, patience: float) -> Iterator[int]:
    """A web server with few places and little patience."""
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", PLACES)
    number, stop = free_port(), threading.Event()
    app = Starlette(routes=[Route("/page", page), Route("/note", note)])
    thread = threading.Thread(target=connections.serve_http, args=(app, "127.0.0.1", number, stop.is_set, patience))
    thread.start()
    until = time.monotonic() + 20
    while time.monotonic() < until:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", number), 1):
            break
    yield number
    stop.set()
    thread.join(20)


def ask(
    port: int, path: str = "/page", *, source: str = "127.0.0.1", times: int = 1, buffer: int = 1024
) -> socket.socket:
    """Ask for a page, usually with a receive buffer as small as possible."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
    connection.bind((source, 0))
    connection.settimeout(10)
    connection.connect(("127.0.0.1", port))
    connection.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode() * times)
    return connection


def is_cut(connection: socket.socket, seconds: float = 0) -> bool:
    """Whether the other side ends the connection within this time. Reads nothing."""
    poll = select.poll()
    poll.register(connection, 0)
    return bool(poll.poll(seconds * 1000))


def status(port: int, source: str = "127.0.0.1") -> int:
    """The status of the answer to an honest request, 0 without one."""
    with contextlib.suppress(OSError), contextlib.closing(ask(port, "/note", source=source)) as connection:
        return int(connection.recv(4096).split()[1])
    return 0


@pytest.mark.parametrize("times", [1, 5], ids=["once", "five times at once"])
def test_a_client_that_never_reads_an_answer_is_cut(port: int, times: int) -> None:
    with contextlib.closing(ask(port, times=times)) as connection:
        assert is_cut(connection, 4 * PATIENCE)


def test_a_client_that_reads_too_slowly_is_cut(port: int) -> None:
    with contextlib.closing(ask(port)) as connection:
        until = time.monotonic() + (connections.ANSWER_FACTOR + 4) * PATIENCE
        while not is_cut(connection) and time.monotonic() < until:
            connection.recv(2_000)
            time.sleep(PATIENCE / 10)
        assert is_cut(connection)


def test_a_client_that_reads_steadily_gets_the_whole_answer(port: int) -> None:
    with contextlib.closing(ask(port, buffer=200_000)) as connection:
        received, began = 0, time.monotonic()
        while received < len(PAGE) and (part := connection.recv(100_000)):
            received += len(part)
            if time.monotonic() - began < 3 * PATIENCE:
                time.sleep(PATIENCE / 100)
    assert received > len(PAGE)


@pytest.mark.parametrize("patience", [4.0])
def test_clients_that_never_read_keep_nobody_out(port: int, patience: float) -> None:
    control = [status(port) for _ in range(5)]
    sources = [f"127.0.5.{number}" for number in range(1, 5)]
    with contextlib.ExitStack() as stack:
        readers = [
            stack.enter_context(contextlib.closing(ask(port, source=sources[number % 4])))
            for number in range(2 * PLACES)
        ]
        time.sleep(patience / 4)  # until the answers fill what the clients do not read
        assert [status(port) for _ in range(5)] == [status(port, sources[0]) for _ in range(5)] == control == [200] * 5
        assert not all(map(is_cut, readers)), "some of them still had a place meanwhile"
        assert all(is_cut(reader, 4 * patience) for reader in readers)
