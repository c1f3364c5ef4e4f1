"""The web server: receives deliveries, and shows health, metrics and the status page."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
import time
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, get_args
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from bot.errors import UserError, WorldError
from bot.server import metrics
from bot.server.access import Access, Denied, Role
from bot.server.dead_letters import replay_or_drop
from bot.server.dead_page import DeadView, dead_page, operation_of
from bot.server.delivery_context import receipt
from bot.server.delivery_filter import DeliveryFilter
from bot.server.health import CachedChecks, readiness_checks
from bot.server.inbox import Inbox
from bot.server.log import log_fields
from bot.server.model import Arrival, Dropped, Full, Instant, Refused, RepositoryKey, State
from bot.server.options import ServerOptions
from bot.server.rate_limiter import PeerShares, peer_of
from bot.server.scope import EXCLUDED
from bot.server.spans import annotate, span
from bot.server.status_page import DEAD, DIGESTS, delivery_page, policy, server_digest_page, status_page
from bot.server.webhook import EVENTS, SMALL, BodyBudget, WebhookRules, before_body, guid, receive
from bot.server.writer import GroupCommitWriter

HEADERS = 10.0
"""Seconds within which the headers of a request must arrive, on new and on kept connections."""

DRAIN = 3
"""Seconds for requests to end after the server was told to stop."""

AT_ONCE = 500
"""Most connections; one peer may have half of them. For one more, a connection that waits for its sender is closed; if
there is none, the new one is answered with 503."""

WATCH = 0.2
"""Seconds between two checks whether to stop."""


class Patient(H11Protocol):
    """A connection that closes when a request takes longer than ``HEADERS`` to arrive, even byte by byte."""

    patience = HEADERS
    places: PeerShares
    """Shared by all connections of a server."""

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
        """Close it if it only waits for the rest of a request."""
        waits = self._is_idle() or self.cycle.more_body
        if waits:
            self.transport.close()
        return waits

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete  # type: ignore[redundant-expr]


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """A server that leaves signals to its caller."""
        yield


def bound(host: str, port: int) -> socket.socket:
    """Return a listening socket. Raises UserError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
    except OSError as error:
        found.close()
        raise UserError(f"cannot listen on {host}:{port} ({error.strerror}): choose another --port") from error
    return found


def serve_http(app: Any, host: str, port: int, stopping: Callable[[], bool], patience: float = HEADERS) -> None:
    """Answer requests until ``stopping``, which is called five times a second, and wait for those in progress.

    ``patience`` is the time in seconds for a request's headers. Raises UserError if it cannot listen there.
    """
    door = bound(host, port)
    config = uvicorn.Config(
        app,
        http=type("Patient", (Patient,), {"patience": patience, "places": PeerShares(AT_ONCE, AT_ONCE // 2)}),
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=AT_ONCE + 1,  # one too many, for which no other gave way
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


LATER = "60"
"""Value of Retry-After, in seconds. GitHub does not retry, but our resync does."""

CLOSING = frozenset({408, 411, 413, 503})
"""Answers after which the connection is closed, since the rest of a body may follow."""

MOST_OF_FORM = 65_536
"""Bytes of a form."""

STORING = ("queue", "disk")
"""Checks that must pass to store deliveries."""

PRIVATE = {
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # with no-referrer, browsers would send "Origin: null" with our own forms
}

log = logging.getLogger(__name__)


@dataclass(slots=True)
class WebDoor:
    """The parts of the web server. ``clock`` gives milliseconds since 1970.

    ``leads``: whether this is the one web process per database that exports the metrics of all.
    """

    rules: WebhookRules
    writer: GroupCommitWriter
    inbox: Inbox
    options: ServerOptions
    clock: Callable[[], Instant]
    is_leader: Callable[[], bool] = lambda: True
    answered: metrics.Answered = field(default_factory=metrics.Answered)

    def renew(self, options: ServerOptions) -> None:
        """Use the secrets of these options, from the next request on."""
        self.options = options
        self.rules = replace(self.rules, secrets=options.secrets)


def create_app(door: WebDoor) -> Starlette:
    shown = StatusRoutes(door)
    routes = [
        Route("/webhook", endpoint=Webhook(door)),
        Route("/healthz", endpoint=_healthz),
        Route("/readyz", endpoint=shown.readyz),
        Route("/status.json", endpoint=shown.state),
        Route("/metrics", endpoint=shown.for_readers(shown.metrics)),
        Route("/", endpoint=shown.for_readers(shown.status)),
        Route("/deliveries/{seq}", endpoint=shown.for_readers(shown.delivery)),
        Route(f"{DIGESTS}/{{key}}", endpoint=shown.for_readers(shown.digest)),
        Route("/operate", endpoint=shown.operate),
        Route(DEAD, endpoint=shown.for_readers(shown.dead), methods=["GET"]),
        Route(DEAD, endpoint=shown.change_dead, methods=["POST"]),
    ]
    made = Starlette(routes=routes, exception_handlers={WorldError: _away})
    made.router.redirect_slashes = False
    return made


class Webhook:
    """`POST /webhook`: check, store, then answer 202. A separate application, so that nothing else reads the body."""

    def __init__(self, door: WebDoor) -> None:
        self._door = door
        self._room = BodyBudget()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        began, since, request = time.perf_counter(), time.time_ns(), uuid.uuid4().hex[:16]
        headers = dict(scope["headers"])
        with log_fields(request=request, delivery=guid(headers)):
            heard = await self._heard(scope, headers, receive, request)
            with receipt(heard, since) if isinstance(heard, Arrival) else nullcontext(heard) as traced:
                status, said = await self._outcome(traced)
                self._count(headers, status, said)
                annotate({"http.response.status_code": status, "precedent.result": said})
                log.info("%s %s", status, said, extra=_about(heard))
            await _reply(status, said, request)(scope, receive, send)
        self._door.answered.observe(time.perf_counter() - began)

    async def _outcome(self, heard: Arrival | Dropped | Refused) -> tuple[int, str]:
        """The status, and the outcome in a few words."""
        if isinstance(heard, Refused):
            return heard.status, heard.why
        if isinstance(heard, Dropped):
            return 202, f"dropped: {heard.why}"
        try:
            with span("store"):
                return 202, "stored" if await self._door.writer.stored(heard) else "repeated"
        except TimeoutError:
            return 503, "it took too long to store"
        except (Full, WorldError) as error:
            log.warning("not stored: %s", error)
            return 503, "it cannot be stored now"

    async def _heard(
        self, scope: Scope, headers: Mapping[bytes, bytes], more: Receive, request: str
    ) -> Arrival | Dropped | Refused:
        method = scope["method"]
        length = before_body(method, headers)
        if isinstance(length, Refused):
            return length
        async with self._room.body(length, peer_of(scope["client"]), more) as body:
            if isinstance(body, Refused):
                return body
            whole = (method, headers, body, self._door.rules, self._door.clock(), request)
            return await asyncio.to_thread(receive, *whole) if length > SMALL else receive(*whole)

    def _count(self, headers: Mapping[bytes, bytes], status: int, said: str) -> None:
        """The label of a request; unsigned requests cannot choose it."""
        named = headers.get(b"x-github-event", b"").decode("latin-1")
        event = named if named in EVENTS else "other"
        result = said.partition(":")[0] if status == 202 else f"refused {status}"
        result = "excluded" if said == f"dropped: {EXCLUDED}" else result
        self._door.writer.count(metrics.DELIVERIES, (event, result))


class StatusRoutes:
    """The pages for people and monitors."""

    def __init__(self, door: WebDoor) -> None:
        self._door = door
        self._access = Access(lambda: door.options)
        self._checks = CachedChecks(lambda now: readiness_checks(door.inbox, door.options, now), door.clock)

    def readyz(self, _: Request) -> Response:
        """Report whether deliveries can be stored. Everything else can wait."""
        found = [check for check in self._checks.now() if check.name in STORING]
        return _told("ready", {check.name: check.stores for check in found})

    def state(self, _: Request) -> Response:
        """Report the state of the whole system. It is public, so it only says which parts are fine."""
        return _told("well", {check.name: check.ok for check in self._checks.now()})

    def metrics(self, _: Request, __: Role) -> Response:
        door = self._door
        page = metrics.text(door.inbox, door.answered, door.clock(), for_all=door.is_leader())
        return Response(page, headers=PRIVATE | {"Content-Type": metrics.CONTENT_TYPE})

    def status(self, request: Request, _: Role) -> Response:
        door, wanted = self._door, _wanted(request.query_params)
        return _page(status_page(door.inbox, self._checks.now(), door.clock(), wanted, door.options.scope))

    def delivery(self, request: Request, _: Role) -> Response:
        inbox = self._door.inbox
        found = inbox.delivery(_number(request.path_params["seq"]))
        name = inbox.installations().repository(found[0].repository).name if found else ""
        return _page(delivery_page(found, self._door.clock(), name), 200 if found else 404)

    def digest(self, request: Request, _: Role) -> Response:
        door, key = self._door, _repository_key(request.path_params["key"])
        row = door.inbox.installations().repository(key) if key else None
        if key is None or row is None or not row.name:
            return PlainTextResponse("no such repository\n", 404, PRIVATE)
        found, home = door.inbox.digests().of(key), f"{door.options.server_url}/{row.name}"
        return _page(server_digest_page(found, row.name, home, door.clock()), 200 if found else 404)

    def dead(self, request: Request, role: Role) -> Response:
        query = request.query_params
        audited = _number(query["audited"]) if "audited" in query else None
        view = DeadView(query.get("reason"), _number(query.get("before", "")), audited)
        page = dead_page(self._door.inbox, self._door.clock(), role, view)
        return _page(page, has_forms=role is Role.OPERATE)

    async def change_dead(self, request: Request) -> Response:
        """Replay or drop what a form of that page names, then show the page again with the outcome."""
        if isinstance(role := self._change(request), Response):
            return role
        who = f"{self._door.options.status_user} on the status page, role {role}"
        wanted = operation_of(await _form(request), who)
        if wanted is None:
            return PlainTextResponse("the form is not complete\n", 400, PRIVATE)
        record = await asyncio.to_thread(replay_or_drop, self._door.inbox, wanted)
        return RedirectResponse(f"{DEAD}?audited={record.seq}", 303, PRIVATE)

    def operate(self, request: Request) -> Response:
        """Have the browser ask for the operator's password, then return to the status page."""
        found = self._access.operator(request.headers, request.client)
        return RedirectResponse("/", 303, PRIVATE) if isinstance(found, Role) else _denied(found)

    def for_readers(self, page: Callable[[Request, Role], Response]) -> Callable[[Request], Response]:
        """The page for whoever may look; for others the answer that says why not."""

        def answer(request: Request) -> Response:
            found = self._access.role(request.headers, request.client)
            return page(request, found) if isinstance(found, Role) else _denied(found)

        return answer

    def _change(self, request: Request) -> Role | Response:
        """``Role.OPERATE``, or the answer to a request that may not change anything."""
        found = self._access.change(request.method, request.headers, request.client)
        return found if isinstance(found, Role) else _denied(found)


def _told(name: str, parts: Mapping[str, bool]) -> Response:
    whole = all(parts.values())
    return JSONResponse({name: whole, **parts}, 200 if whole else 503, PRIVATE)


def _denied(denied: Denied) -> Response:
    return PlainTextResponse(f"{denied.why}\n", denied.status, {**PRIVATE, **denied.headers})


def _page(html: str, status: int = 200, *, has_forms: bool = False) -> Response:
    whole = f"{policy(has_forms=has_forms)}; frame-ancestors 'none'"
    return HTMLResponse(html, status, PRIVATE | {"Content-Security-Policy": whole})


async def _form(request: Request) -> dict[str, str]:
    """The fields of a form, the last of each name; empty if it is too large, too slow or not a form."""
    body = b""
    with contextlib.suppress(ValueError, TimeoutError, ClientDisconnect):
        async with asyncio.timeout(HEADERS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_OF_FORM:
                    return {}
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=10))
    return {}


def _wanted(query: Mapping[str, str]) -> DeliveryFilter:
    """The filter in the address; invalid parts are ignored."""
    state: State | None = next((known for known in get_args(State) if known == query.get("state")), None)
    return DeliveryFilter(state, _repository_key(query.get("repository", "")), _number(query.get("before", "")))


def _repository_key(text: str) -> RepositoryKey | None:
    try:
        return RepositoryKey.of(text[:35])
    except ValueError:
        return None


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


async def _healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n", headers=PRIVATE)


async def _away(_: Request, error: Exception) -> Response:
    log.warning("not shown: %s", error)
    return PlainTextResponse("the database does not answer: see /status.json and the log\n", 503, PRIVATE)


def _about(heard: Arrival | Dropped | Refused) -> dict[str, str]:
    if not isinstance(heard, Arrival):
        return {}
    event = heard.event
    return {"repository": heard.repository.text, "event": f"{event.name}.{event.action}".rstrip(".")}


def _reply(status: int, said: str, request: str) -> Response:
    headers = {"X-Request-Id": request}
    headers |= {"Connection": "close"} if status in CLOSING else {}
    headers |= {"Retry-After": LATER} if status == 503 else {}
    headers |= {"Allow": "POST"} if status == 405 else {}
    return Response(json.dumps({"said": said}) + "\n", status, headers, "application/json")
