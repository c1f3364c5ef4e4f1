"""The web server: receives deliveries, and shows health, metrics and the status page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import struct
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import get_args
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.errors import UserError, WorldError
from bot.server.delivery_context import trace_receipt
from bot.server.log import log_fields
from bot.server.model import Arrival, DroppedDelivery, Instant, ReceiveQueueFull, Refused, RepositoryKey, State
from bot.server.options import ServerOptions
from bot.server.pages import metrics
from bot.server.pages.access import Access, AccessDenied, Role
from bot.server.pages.dead_page import DeadView, dead_page, parse_operation
from bot.server.pages.health import CachedChecks, readiness_checks
from bot.server.pages.status_page import DEAD_PATH, DIGESTS_PATH, delivery_page, policy, server_digest_page, status_page
from bot.server.peers import Network, PeerShares, client_of, peer_of
from bot.server.receive.webhook import EVENTS, MAX_SMALL_BODY, BodyBudget, WebhookRules, check_headers, guid, receive
from bot.server.receive.writer import GroupCommitWriter
from bot.server.scope import EXCLUDED
from bot.server.spans import annotate, span
from bot.server.storage.delivery_filter import DeliveryFilter
from bot.server.storage.digests import Digests
from bot.server.storage.inbox import Inbox
from bot.server.storage.installations import Installations
from bot.server.storage.operations import replay_or_drop

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


class TimedConnection(H11Protocol):
    """A connection that closes when a request takes longer than ``HEADERS_TIMEOUT`` to arrive, even byte by byte, or
    when the client does not read an answer."""

    patience = HEADERS_TIMEOUT
    places: PeerShares
    """Shared by all connections of a server."""

    proxies: tuple[Network, ...] = ()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app = partial(self._answer, self.app)
        transport.set_write_buffer_limits(high=0)  # so that `pause_writing` is called whenever something is left
        self._unread: asyncio.TimerHandle | None = None
        self._share = self.places.open(peer_of(self.client), self._give_way)
        self.places.take(self._share, 1)
        self._start_timer()

    async def _answer(self, app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
        """Have the application answer a request under the name of its client, who takes the place meanwhile."""
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        scope["client"] = client_of(self.client, forwarded.decode("latin-1"), self.proxies)
        has_place = self.places.move(self._share, peer_of(scope["client"]))
        await (app if has_place else NO_PLACE)(scope, receive, send)

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if not self.places.move(self._share, peer_of(self.client)):
            self.transport.close()
        self._timer.cancel()
        self.places.renew(self._share)
        self._start_timer()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._stop_watching()
        self.places.close(self._share)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Watch whether the client reads what is left of an answer."""
        super().pause_writing()
        until = self.loop.time() + ANSWER_FACTOR * self.patience
        self._watch(self.transport.get_write_buffer_size(), until)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_watching()

    def _watch(self, size: int, until: float) -> None:
        self._unread = self.loop.call_later(self.patience, self._check_reader, size, until)

    def _stop_watching(self) -> None:
        if self._unread:
            self._unread.cancel()

    def _check_reader(self, before: int, until: float) -> None:
        """Cut a client that read nothing of an answer since the last check, or not all of it by ``until``."""
        size = self.transport.get_write_buffer_size()
        if size >= before or self.loop.time() >= until:
            self._reset()
        else:
            self._watch(size, until)

    def _reset(self) -> None:
        """End the connection and forget what is left of an answer, for which a close would wait, here or in the
        kernel."""
        connection = self.transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def _start_timer(self) -> None:
        self._timer = self.loop.call_later(self.patience, self._close_if_idle)

    def _close_if_idle(self) -> None:
        if self._is_idle() and not self.transport.is_closing():
            self.transport.close()

    def _give_way(self) -> bool:
        """Close it if it only waits for the rest of a request, or for the client to read an answer."""
        is_unread = self.flow.write_paused
        if is_unread:
            self._reset()
        elif is_waiting := self._is_idle() or self.cycle.more_body:
            self.transport.close()
        return is_unread or is_waiting

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]


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
    config = uvicorn.Config(
        app,
        http=type(
            "TimedConnection",
            (TimedConnection,),
            {"patience": patience, "places": places, "proxies": proxies},
        ),
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


CLOSING_STATUSES = frozenset({408, 411, 413, 503})
"""Answers after which the connection is closed, since the rest of a body may follow."""

MAX_FORM_BYTES = 65_536
"""Largest form body that is read."""

STORAGE_CHECKS = ("queue", "disk")
"""Checks that must pass to store deliveries."""

PRIVATE_HEADERS = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send "Origin: null" with our own forms
}

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WebContext:
    """The parts of the web server. ``clock`` gives milliseconds since 1970.

    ``is_leader``: whether this is the one web process per database that exports the metrics of all.
    """

    rules: WebhookRules
    writer: GroupCommitWriter
    inbox: Inbox
    options: ServerOptions
    clock: Callable[[], Instant]
    is_leader: Callable[[], bool] = lambda: True
    answered: metrics.ReceiveHistogram = field(default_factory=metrics.ReceiveHistogram)

    def use_secrets(self, options: ServerOptions) -> None:
        """Use the secrets of these options, from the next request on."""
        self.options = options
        self.rules = replace(self.rules, secrets=options.secrets)


def create_app(door: WebContext) -> Starlette:
    pages = StatusRoutes(door)
    routes = [
        Route("/webhook", endpoint=Webhook(door)),
        Route("/healthz", endpoint=_healthz),
        Route("/readyz", endpoint=pages.readyz),
        Route("/status.json", endpoint=pages.state),
        Route("/metrics", endpoint=pages.for_readers(pages.metrics)),
        Route("/", endpoint=pages.for_readers(pages.status)),
        Route("/deliveries/{seq}", endpoint=pages.for_readers(pages.delivery)),
        Route(f"{DIGESTS_PATH}/{{key}}", endpoint=pages.for_readers(pages.digest)),
        Route("/operate", endpoint=pages.operate),
        Route(DEAD_PATH, endpoint=pages.for_readers(pages.dead), methods=["GET"]),
        Route(DEAD_PATH, endpoint=pages.change_dead, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={WorldError: _database_unavailable})
    app.router.redirect_slashes = False
    return app


class Webhook:
    """`POST /webhook`: check, store, then answer 202. A separate application, so that nothing else reads the body."""

    def __init__(self, door: WebContext) -> None:
        self._door = door
        self._budget = BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, since, request = time.perf_counter(), time.time_ns(), uuid.uuid4().hex[:16]
        headers = dict(scope["headers"])
        with log_fields(request=request, delivery=guid(headers)):
            received = await self._receive_delivery(scope, headers, receive, request)
            with trace_receipt(received, since) if isinstance(received, Arrival) else nullcontext(received) as traced:
                status, outcome = await self._store_outcome(traced)
                self._count_request(headers, status, outcome)
                annotate({"http.response.status_code": status, "precedent.result": outcome})
                log.info("%s %s", status, outcome, extra=_arrival_fields(received))
            await _json_response(status, outcome, request)(scope, receive, send)
        self._door.answered.observe(time.perf_counter() - began)

    async def _store_outcome(self, received: Arrival | DroppedDelivery | Refused) -> tuple[int, str]:
        """The status, and the outcome in a few words."""
        if isinstance(received, Refused):
            return received.status, received.why
        if isinstance(received, DroppedDelivery):
            return 202, f"dropped: {received.why}"
        try:
            with span("store"):
                return 202, "stored" if await self._door.writer.store(received) else "repeated"
        except TimeoutError:
            return 503, "it took too long to store"
        except (ReceiveQueueFull, WorldError) as error:
            log.warning("not stored: %s", error)
            return 503, "it cannot be stored now"

    async def _receive_delivery(
        self, scope: Scope, headers: Mapping[bytes, bytes], receive_more: Receive, request: str
    ) -> Arrival | DroppedDelivery | Refused:
        method = scope["method"]
        length = check_headers(method, headers)
        if isinstance(length, Refused):
            return length
        async with self._budget.body(length, peer_of(scope["client"]), receive_more) as body:
            if isinstance(body, Refused):
                return body
            arguments = (method, headers, body, self._door.rules, self._door.clock(), request)
            return await asyncio.to_thread(receive, *arguments) if length > MAX_SMALL_BODY else receive(*arguments)

    def _count_request(self, headers: Mapping[bytes, bytes], status: int, outcome: str) -> None:
        """Count a request by event; an unsigned one cannot choose the label."""
        header = headers.get(b"x-github-event", b"").decode("latin-1")
        event = header if header in EVENTS else "other"
        result = outcome.partition(":")[0] if status == 202 else f"refused {status}"
        result = "excluded" if outcome == f"dropped: {EXCLUDED}" else result
        self._door.writer.count(metrics.DELIVERIES_METRIC, (event, result))


class StatusRoutes:
    """The pages for people and monitors."""

    def __init__(self, door: WebContext) -> None:
        self._door = door
        self._access = Access(lambda: door.options)
        self._checks = CachedChecks(lambda now: readiness_checks(door.inbox, door.options, now), door.clock)

    def readyz(self, _: Request) -> Response:
        """Report whether deliveries can be stored. Everything else can wait."""
        checks = [check for check in self._checks.results() if check.name in STORAGE_CHECKS]
        return _parts_response("ready", {check.name: check.stores for check in checks})

    def state(self, _: Request) -> Response:
        """Report the state of the whole system. It is public, so it only says which parts are fine."""
        return _parts_response("well", {check.name: check.ok for check in self._checks.results()})

    def metrics(self, _: Request, __: Role) -> Response:
        door = self._door
        page = metrics.render(door.inbox, door.answered, door.clock(), for_all=door.is_leader())
        return Response(page, headers=PRIVATE_HEADERS | {"Content-Type": metrics.CONTENT_TYPE})

    def status(self, request: Request, _: Role) -> Response:
        door, selection = self._door, _parse_filter(request.query_params)
        return _html_response(
            status_page(door.inbox, self._checks.results(), door.clock(), selection, door.options.scope)
        )

    def delivery(self, request: Request, _: Role) -> Response:
        inbox = self._door.inbox
        details = inbox.delivery(_parse_number(request.path_params["seq"]))
        name = Installations(inbox.database, inbox.now).repository(details[0].repository).name if details else ""
        return _html_response(delivery_page(details, self._door.clock(), name), 200 if details else 404)

    def digest(self, request: Request, _: Role) -> Response:
        door, key = self._door, _parse_key(request.path_params["key"])
        row = Installations(door.inbox.database, door.inbox.now).repository(key) if key else None
        if key is None or row is None or not row.name:
            return PlainTextResponse("no such repository\n", 404, PRIVATE_HEADERS)
        stored_digest, home = (
            Digests(door.inbox.database, door.inbox.now).get(key),
            f"{door.options.server_url}/{row.name}",
        )
        return _html_response(
            server_digest_page(stored_digest, row.name, home, door.clock()), 200 if stored_digest else 404
        )

    def dead(self, request: Request, role: Role) -> Response:
        query = request.query_params
        audited = _parse_number(query["audited"]) if "audited" in query else None
        view = DeadView(query.get("reason"), _parse_number(query.get("before", "")), audited)
        page = dead_page(self._door.inbox, self._door.clock(), role, view)
        return _html_response(page, has_forms=role is Role.OPERATE)

    async def change_dead(self, request: Request) -> Response:
        """Replay or drop what a form of that page names, then show the page again with the outcome."""
        if isinstance(role := self._check_operator(request), Response):
            return role
        who = f"{self._door.options.status_user} on the status page, role {role}"
        operation = parse_operation(await _read_form(request), who)
        if operation is None:
            return PlainTextResponse("the form is not complete\n", 400, PRIVATE_HEADERS)
        record = await asyncio.to_thread(replay_or_drop, self._door.inbox, operation)
        return RedirectResponse(f"{DEAD_PATH}?audited={record.seq}", 303, PRIVATE_HEADERS)

    def operate(self, request: Request) -> Response:
        """Have the browser ask for the operator's password, then return to the status page."""
        access = self._access.require_operator(request.headers, request.client)
        return RedirectResponse("/", 303, PRIVATE_HEADERS) if isinstance(access, Role) else _denied_response(access)

    def for_readers(self, page: Callable[[Request, Role], Response]) -> Callable[[Request], Response]:
        """Wrap a page for those who may look; others get the answer that says why not."""

        def answer(request: Request) -> Response:
            access = self._access.role(request.headers, request.client)
            return page(request, access) if isinstance(access, Role) else _denied_response(access)

        return answer

    def _check_operator(self, request: Request) -> Role | Response:
        """``Role.OPERATE``, or the answer to a request that may not change anything."""
        access = self._access.authorize_change(request.method, request.headers, request.client)
        return access if isinstance(access, Role) else _denied_response(access)


def _parts_response(name: str, parts: Mapping[str, bool]) -> Response:
    is_well = all(parts.values())
    return JSONResponse({name: is_well, **parts}, 200 if is_well else 503, PRIVATE_HEADERS)


def _denied_response(denied: AccessDenied) -> Response:
    return PlainTextResponse(f"{denied.why}\n", denied.status, {**PRIVATE_HEADERS, **denied.headers})


def _html_response(html: str, status: int = 200, *, has_forms: bool = False) -> Response:
    security_policy = f"{policy(has_forms=has_forms)}; frame-ancestors 'none'"
    return HTMLResponse(html, status, PRIVATE_HEADERS | {"Content-Security-Policy": security_policy})


async def _read_form(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name; empty if it is too large, too slow or not a form."""
    body = b""
    with contextlib.suppress(ValueError, TimeoutError, ClientDisconnect):
        async with asyncio.timeout(HEADERS_TIMEOUT):
            async for part in request.stream():
                body += part
                if len(body) > MAX_FORM_BYTES:
                    return {}
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=10))
    return {}


def _parse_filter(query: Mapping[str, str]) -> DeliveryFilter:
    """The filter in the address; invalid parts are ignored."""
    state: State | None = next((known for known in get_args(State) if known == query.get("state")), None)
    return DeliveryFilter(state, _parse_key(query.get("repository", "")), _parse_number(query.get("before", "")))


def _parse_key(text: str) -> RepositoryKey | None:
    try:
        return RepositoryKey.of(text[:35])
    except ValueError:
        return None


def _parse_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n", headers=PRIVATE_HEADERS)


async def _database_unavailable(_: Request, error: Exception) -> Response:
    log.warning("not shown: %s", error)
    return PlainTextResponse("the database does not answer: see /status.json and the log\n", 503, PRIVATE_HEADERS)


def _arrival_fields(received: Arrival | DroppedDelivery | Refused) -> dict[str, str]:
    if not isinstance(received, Arrival):
        return {}
    event = received.event
    return {"repository": received.repository.text, "event": f"{event.name}.{event.action}".rstrip(".")}


def _json_response(status: int, outcome: str, request: str) -> Response:
    headers = {"X-Request-Id": request}
    headers |= {"Connection": "close"} if status in CLOSING_STATUSES else {}
    headers |= {"Retry-After": RETRY_AFTER} if status == 503 else {}
    headers |= {"Allow": "POST"} if status == 405 else {}
    return Response(json.dumps({"said": outcome}) + "\n", status, headers, "application/json")
