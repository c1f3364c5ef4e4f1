"""The listening socket: uvicorn, patient for ten seconds with each request's headers. The only importer of uvicorn."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Callable, Generator
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.errors import UserError
from bot.server.peers import Shares, peer_of

HEADERS = 10.0
"""Seconds within which a request has to arrive, headers and all, on a new connection as on one that is kept."""

DRAIN = 3
"""Seconds that requests have to end in, once the server stops."""

AT_ONCE = 500
"""Connections, half of which one peer may have. For one more, one that waits for its sender is closed; where none does,
it is answered with 503."""

WATCH = 0.2
"""Seconds between two looks whether to stop."""


class Patient(H11Protocol):
    """A connection that is closed when a request takes longer than ``HEADERS`` to arrive, however slowly it drips."""

    patience = HEADERS
    places: Shares
    """Of all connections of a server."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._share = self.places.open(peer_of(self.client), self._give_way)
        self.places.take(self._share, 1)
        self._wait()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._late.cancel()
        self.places.renew(self._share)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._late.cancel()
        self.places.close(self._share)
        super().connection_lost(exc)

    def _wait(self) -> None:
        self._late = self.loop.call_later(self.patience, self._too_late)

    def _too_late(self) -> None:
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()

    def _give_way(self) -> bool:
        """Close it where all that it does is wait for the rest of a request."""
        waits = self._is_idle() or self.cycle.more_body
        if waits:
            self.transport.close()
        return waits

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are not its own: whoever runs it decides when it stops."""
        yield


def bound(host: str, port: int) -> socket.socket:
    """A socket of our own there. Raises UserError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}): choose another --port") from error
    return found


def serve(app: Any, host: str, port: int, stopping: Callable[[], bool], patience: float = HEADERS) -> None:
    """Answer requests until ``stopping``, which is asked five times a second; returns once those under way have ended.

    ``patience``: how many seconds a request's headers may take. Raises UserError where it cannot listen there.
    """
    door = bound(host, port)
    config = uvicorn.Config(
        app,
        http=type("Patient", (Patient,), {"patience": patience, "places": Shares(AT_ONCE, AT_ONCE // 2)}),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=AT_ONCE + 1,  # one above that nobody gave way to
        backlog=2048,
        timeout_graceful_shutdown=DRAIN,
        h11_max_incomplete_event_size=16_384,
    )
    asyncio.run(_served(_Server(config), door, stopping))


async def _served(server: uvicorn.Server, door: socket.socket, stopping: Callable[[], bool]) -> None:
    running = asyncio.create_task(server.serve(sockets=[door]))
    while not running.done() and not stopping():
        await asyncio.wait([running], timeout=WATCH)
    server.should_exit = True
    await running
