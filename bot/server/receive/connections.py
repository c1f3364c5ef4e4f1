"""Serves HTTP: who is at the other end, how much each of these peers may hold, and which connections end."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import re
import socket
import struct
from collections.abc import Callable, Generator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import Any

import uvicorn
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.errors import UserError

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

IPV6_HOST_BITS = 64
"""Last bits of an IPv6 address, which one customer chooses freely: a customer has a /64 network."""

LOCAL_PEER = "local"
"""The peer of a connection without an address, such as a Unix socket."""

Network = IPv4Network | IPv6Network


def client_of(peer: tuple[str, int] | None, forwarded: str, proxies: Sequence[Network]) -> tuple[str, int] | None:
    """Return who sent a request: the other end of its connection, or the last address in ``forwarded``
    (``X-Forwarded-For``) that is not one of the ``proxies``, if the other end is one of them.

    Anybody may have written what stands before that address. A proxy that names no address counts as the client.
    """
    for text in reversed(forwarded.split(",")):
        address = _address(peer[0]) if peer else None
        named = _address(re.sub(r"^\[(.*)\](?::\d+)?$|^([\d.]+):\d+$", r"\1\2", text.strip()))
        if address is None or named is None or not any(address in network for network in proxies):
            break
        peer = str(named), 0
    return peer


def peer_of(client: tuple[str, int] | None) -> str:
    """Return the peer that a client counts as: an IPv4 address, or the first 64 bits of an IPv6 one."""
    address = _address(client[0]) if client else None
    if isinstance(address, IPv6Address) and not address.is_loopback:
        address = IPv6Address(int(address) >> IPV6_HOST_BITS << IPV6_HOST_BITS)
    return str(address) if address else LOCAL_PEER


def _address(text: str) -> IPv4Address | IPv6Address | None:
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return address.ipv4_mapped or address if isinstance(address, IPv6Address) else address


@dataclass(slots=True, eq=False)
class PeerShare:
    """The share of one holder. ``give_way`` ends the holder and returns True, or False if that is impossible now."""

    peer: str
    give_way: Callable[[], bool]
    since: int
    held: int = 0


class PeerShares:
    """Divides ``size`` units among peers, of which each may have ``most``. For one event loop.

    Without room, the holder that has waited longest gives way: one of the same peer if that has its ``most``, else one
    of the peer with the largest share. So slow senders do not keep quick ones out, whether they come from one address,
    from hundreds, or through one proxy.
    """

    def __init__(self, size: int, most: int) -> None:
        self._size = size
        self._most = most
        self._open: set[PeerShare] = set()
        self._total = 0
        self._held_by_peer: dict[str, int] = {}
        self._order = itertools.count()

    def open(self, peer: str, give_way: Callable[[], bool]) -> PeerShare:
        """Return an empty share."""
        share = PeerShare(peer, give_way, next(self._order))
        self._open.add(share)
        return share

    def take(self, share: PeerShare, amount: int) -> bool:
        """Add to a share. Returns False, and closes the share, if there is no room."""
        while share in self._open and not self._fits(share.peer, amount):
            if not self._make_room(share.peer, amount):
                self.close(share)
        if share not in self._open:
            return False
        share.held += amount
        self._count(share.peer, amount)
        return True

    def move(self, share: PeerShare, peer: str) -> bool:
        """Give a share to another peer. Returns False, and closes the share, if there is no room."""
        if share.peer == peer:
            return True
        held, is_open = share.held, share in self._open
        if is_open:
            self._count(share.peer, -held)
            share.peer, share.held = peer, 0
        return is_open and self.take(share, held)

    def renew(self, share: PeerShare) -> None:
        """Restart the waiting time of a share."""
        share.since = next(self._order)

    def close(self, share: PeerShare) -> None:
        """Free a share. May be repeated."""
        if share in self._open:
            self._open.remove(share)
            self._count(share.peer, -share.held)

    def _count(self, peer: str, amount: int) -> None:
        self._total += amount
        self._held_by_peer[peer] = self._held_by_peer.get(peer, 0) + amount
        if not self._held_by_peer[peer]:
            del self._held_by_peer[peer]

    def _fits(self, peer: str, amount: int) -> bool:
        return self._held_by_peer.get(peer, 0) + amount <= self._most and self._total + amount <= self._size

    def _make_room(self, peer: str, amount: int) -> bool:
        is_own = self._held_by_peer.get(peer, 0) + amount > self._most
        holders = [share for share in self._open if share.held and (share.peer == peer or not is_own)]
        for share in sorted(holders, key=lambda each: (-self._held_by_peer[each.peer], each.since)):
            if share.give_way():
                self.close(share)
                return True
        return False


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
