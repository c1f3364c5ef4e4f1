"""Serves HTTP, and closes connections that are too slow, or whose place another one needs."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.errors import UserError
from bot.server.peers import Network, PeerShares, client_of, peer_of

HEADERS_TIMEOUT = 10.0
"""Seconds within which the headers of a request must arrive, on new and on kept connections."""

ANSWER_FACTOR = 6
"""How many times as long as the headers an answer may take in all. Within that time, ``HEADERS_TIMEOUT``, the client
has to read at least some of it."""

DRAIN_SECONDS = 3
"""Seconds for requests to end after the server was told to stop."""

MAX_CONNECTIONS = 500
"""One peer may have half of them. To make room for one more, a connection that waits for its client is closed; if
there is none, the new one is answered with 503."""

RETRY_AFTER = "60"
"""Value of Retry-After, in seconds. GitHub does not retry, but our resync does."""

CHECK_INTERVAL = 0.2
"""Seconds between two checks whether to stop."""


NO_PLACE = PlainTextResponse("too many connections\n", 503, {"Connection": "close", "Retry-After": RETRY_AFTER})


class TimedConnection(asyncio.Protocol):
    """A connection that closes when a request takes longer than ``patience`` to arrive, even byte by byte, or when the
    client does not read an answer.

    It stands between asyncio and ``http``, which reads requests, and between that and the application: so
    it sees what it needs by their public interfaces. All connections share the ``places``; ``proxies`` are believed who
    their client is.
    """

    def __init__(
        self, http: asyncio.Protocol, places: PeerShares, patience: float, proxies: tuple[Network, ...]
    ) -> None:
        self._http = http
        self._places, self._patience, self._proxies = places, patience, proxies
        self._loop = asyncio.get_running_loop()
        self._unread: asyncio.TimerHandle | None = None
        self._is_answering = self._awaits_body = self._is_unread = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._http.connection_made(transport)
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` is called whenever something is left
        peer = transport.get_extra_info("peername")
        self._client = (str(peer[0]), int(peer[1])) if isinstance(peer, tuple) else None
        self._share = self._places.open(peer_of(self._client), self._give_way)
        self._places.take(self._share, 1)
        self._start_timer()

    def data_received(self, data: bytes) -> None:
        token = _connection.set(self)  # the task that answers the request inherits it
        try:
            self._http.data_received(data)
        finally:
            _connection.reset(token)

    def eof_received(self) -> bool | None:
        return self._http.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._stop_watching()
        self._places.close(self._share)
        self._http.connection_lost(exc)

    def pause_writing(self) -> None:
        """Watch whether the client reads what is left of an answer."""
        self._is_unread = True
        self._http.pause_writing()
        until = self._loop.time() + ANSWER_FACTOR * self._patience
        self._watch(self._transport.get_write_buffer_size(), until)

    def resume_writing(self) -> None:
        self._is_unread = False
        self._http.resume_writing()
        self._stop_watching()

    async def answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer a request under the name of its client, who takes the place meanwhile."""
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        scope["client"] = client_of(self._client, forwarded.decode("latin-1"), self._proxies)
        has_place = self._places.move(self._share, peer_of(scope["client"]))
        self._is_answering, is_whole = True, False

        async def receive_part() -> Message:
            nonlocal is_whole
            self._awaits_body = not is_whole
            try:
                message = await receive()
            finally:
                self._awaits_body = False
            is_whole = not message.get("more_body")
            return message

        async def send_part(message: Message) -> None:
            await send(message)
            if message["type"] == "http.response.body" and not message.get("more_body"):
                self._end_answer()

        try:
            await (app if has_place else NO_PLACE)(scope, receive_part, send_part)
        except BaseException:
            self._end_answer()
            raise

    def _end_answer(self) -> None:
        self._is_answering = False
        if not self._places.move(self._share, peer_of(self._client)):
            self._transport.close()
        self._timer.cancel()
        self._places.renew(self._share)
        if not self._transport.is_closing():
            self._start_timer()

    def _watch(self, size: int, until: float) -> None:
        self._unread = self._loop.call_later(self._patience, self._check_reader, size, until)

    def _stop_watching(self) -> None:
        if self._unread:
            self._unread.cancel()

    def _check_reader(self, before: int, until: float) -> None:
        """Cut a client that read nothing of an answer since the last check, or not all of it by ``until``."""
        size = self._transport.get_write_buffer_size()
        if size >= before or self._loop.time() >= until:
            self._reset()
        else:
            self._watch(size, until)

    def _reset(self) -> None:
        """End the connection and forget what is left of an answer, for which a close would wait, here or in the
        kernel."""
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def _start_timer(self) -> None:
        self._timer = self._loop.call_later(self._patience, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if not self._is_answering and not self._transport.is_closing():
            self._transport.close()

    def _give_way(self) -> bool:
        """Close it if it only waits for the rest of a request, or for the client to read an answer."""
        if self._is_unread:
            self._reset()
        elif is_waiting := self._awaits_body or not self._is_answering:
            self._transport.close()
        return self._is_unread or is_waiting


_connection: ContextVar[TimedConnection] = ContextVar("connection")
"""The connection that a request came on."""


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A server that leaves signals to its caller."""
        yield


def open_listener(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises UserError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}): choose another --port") from error
    return listener


def serve_http(
    app: ASGIApp,
    host: str,
    port: int,
    stopping: Callable[[], bool],
    patience: float = HEADERS_TIMEOUT,
    proxies: tuple[Network, ...] = (),
) -> None:
    """Answer requests until ``stopping``, which is called five times a second, and wait for those in progress.

    ``patience`` is the time in seconds for a request's headers; ``proxies`` are believed who their client is. Raises
    UserError if it cannot listen there.
    """
    listener = open_listener(host, port)
    places = PeerShares(MAX_CONNECTIONS, MAX_CONNECTIONS // 2)

    def connect(**arguments: Any) -> TimedConnection:
        return TimedConnection(H11Protocol(**arguments), places, patience, proxies)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await _connection.get().answer(app, scope, receive, send)

    config = uvicorn.Config(
        answer,
        http=connect,  # type: ignore[arg-type]  # uvicorn only calls it
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_CONNECTIONS + 1,  # one too many, for which no other gave way
        backlog=2048,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=16_384,
    )
    asyncio.run(_serve_until(_Server(config), listener, stopping))


async def _serve_until(server: uvicorn.Server, listener: socket.socket, stopping: Callable[[], bool]) -> None:
    task = asyncio.create_task(server.serve(sockets=[listener]))
    while not task.done() and not stopping():
        await asyncio.wait([task], timeout=CHECK_INTERVAL)
    server.should_exit = True
    await task
