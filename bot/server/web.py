"""The web application of the server, which listens behind a proxy: which address is answered by what."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl

import uvicorn
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp

from bot.errors import UserError, WorldError
from bot.server.model import STATES, RepositoryKey, State
from bot.server.options import ServerOptions
from bot.server.pages import metrics
from bot.server.pages.access import Access, AccessDenied, Role
from bot.server.pages.deliveries import DeadView, dead_page, delivery_page, parse_operation
from bot.server.pages.health import CachedChecks, readiness_checks
from bot.server.pages.metrics import ReceiveHistogram
from bot.server.pages.parts import DEAD_PATH, DIGESTS_PATH, policy
from bot.server.pages.status_page import server_digest_page, status_page
from bot.server.receive.endpoint import RecentRefusals, Webhook
from bot.server.receive.webhook import WebhookRules
from bot.server.receive.writer import GroupCommitWriter
from bot.server.storage.deliveries import DeliveryFilter
from bot.server.storage.inbox import Inbox
from bot.server.storage.operations import replay_or_drop

FORM_TIMEOUT = 10.0
"""Seconds for a form to arrive."""

MAX_FORM_BYTES = 65_536
"""Largest form body that is read."""

DRAIN_SECONDS = 3
"""Seconds for requests to end after the server was told to stop."""

MAX_CONNECTIONS = 500
"""A further connection gets 503."""

KEEP_ALIVE_SECONDS = 75
"""Longer than nginx keeps an idle connection to us (60 s), so that no delivery meets one that is being closed."""

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
    """The parts of the web server.

    ``is_leader``: whether this is the one web process per database that exports the metrics of all.
    """

    rules: WebhookRules
    writer: GroupCommitWriter
    inbox: Inbox
    options: ServerOptions
    is_leader: Callable[[], bool] = lambda: True
    answered: ReceiveHistogram = field(default_factory=ReceiveHistogram)
    refusals: RecentRefusals = field(default_factory=RecentRefusals)

    def use_secrets(self, options: ServerOptions) -> None:
        """Use the secrets of these options, from the next request on."""
        self.options = options
        self.rules = replace(self.rules, secrets=options.secrets)


def create_app(door: WebContext) -> Starlette:
    pages = StatusRoutes(door)
    webhook = Webhook(lambda: door.rules, door.writer, door.inbox.now, door.answered.observe, door.refusals)
    routes = [
        Route("/webhook", endpoint=webhook),
        Route("/healthz", endpoint=healthz),
        Route("/readyz", endpoint=pages.readyz),
        Route("/status.json", endpoint=pages.state),
        Route("/metrics", endpoint=pages.for_readers(pages.metrics)),
        Route("/", endpoint=pages.for_readers(pages.status)),
        Route("/deliveries/{name}", endpoint=pages.for_readers(pages.delivery)),
        Route(f"{DIGESTS_PATH}/{{key}}", endpoint=pages.for_readers(pages.digest)),
        Route("/operate", endpoint=pages.operate),
        Route(DEAD_PATH, endpoint=pages.for_readers(pages.dead), methods=["GET"]),
        Route(DEAD_PATH, endpoint=pages.change_dead, methods=["POST"]),
    ]
    app = Starlette(routes=routes, exception_handlers={WorldError: database_unavailable})
    app.router.redirect_slashes = False
    return app


class StatusRoutes:
    """The pages for people and monitors."""

    def __init__(self, door: WebContext) -> None:
        self._door = door
        self._access = Access(lambda: door.options)
        self._checks = CachedChecks(lambda now: readiness_checks(door.inbox, door.options, now), door.inbox.now)

    def readyz(self, _: Request) -> Response:
        """Report whether deliveries can be stored. Everything else can wait."""
        checks = [check for check in self._checks.results() if check.name in STORAGE_CHECKS]
        return _parts_response("ready", {check.name: check.stores for check in checks})

    def state(self, _: Request) -> Response:
        """Report the state of the whole system. It is public, so it only says which parts are fine."""
        return _parts_response("well", {check.name: check.ok for check in self._checks.results()})

    def metrics(self, _: Request, __: Role) -> Response:
        door = self._door
        page = metrics.render(door.inbox, door.answered, door.inbox.now(), for_all=door.is_leader())
        return Response(page, headers=PRIVATE_HEADERS | {"Content-Type": metrics.CONTENT_TYPE})

    def status(self, request: Request, _: Role) -> Response:
        door, selection = self._door, _parse_filter(request.query_params)
        now, checks = door.inbox.now(), self._checks.results()
        refused = door.refusals.by_status(now)
        return _html_response(status_page(door.inbox, checks, now, selection, door.options.scope, refused))

    def delivery(self, request: Request, _: Role) -> Response:
        inbox = self._door.inbox
        details = inbox.delivery(inbox.find(request.path_params["name"]))
        name = inbox.installations.repository(details[0].repository).name if details else ""
        return _html_response(delivery_page(details, self._door.inbox.now(), name), 200 if details else 404)

    def digest(self, request: Request, _: Role) -> Response:
        door, key = self._door, _parse_key(request.path_params["key"])
        row = door.inbox.installations.repository(key) if key else None
        if key is None or row is None or not row.name:
            return PlainTextResponse("no such repository\n", 404, PRIVATE_HEADERS)
        stored_digest, home = door.inbox.digests.get(key), f"{door.options.server_url}/{row.name}"
        return _html_response(
            server_digest_page(stored_digest, row.name, home, door.inbox.now()), 200 if stored_digest else 404
        )

    def dead(self, request: Request, role: Role) -> Response:
        query = request.query_params
        audited = _parse_number(query["audited"]) if "audited" in query else None
        view = DeadView(query.get("reason"), _parse_number(query.get("before", "")), audited)
        page = dead_page(self._door.inbox, self._door.inbox.now(), role, view)
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
        access = self._access.require_operator(request.headers, _peer(request))
        return RedirectResponse("/", 303, PRIVATE_HEADERS) if isinstance(access, Role) else _denied_response(access)

    def for_readers(self, page: Callable[[Request, Role], Response]) -> Callable[[Request], Response]:
        """Wrap a page for those who may look; others get the answer that says why not."""

        def answer(request: Request) -> Response:
            access = self._access.role(request.headers, _peer(request))
            return page(request, access) if isinstance(access, Role) else _denied_response(access)

        return answer

    def _check_operator(self, request: Request) -> Role | Response:
        """``Role.OPERATE``, or the answer to a request that may not change anything."""
        access = self._access.authorize_change(request.method, request.headers, _peer(request))
        return access if isinstance(access, Role) else _denied_response(access)


def _peer(request: Request) -> str:
    """Who sent a request, as named by the proxy; for the log."""
    return request.client.host if request.client else ""


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
        async with asyncio.timeout(FORM_TIMEOUT):
            async for part in request.stream():
                body += part
                if len(body) > MAX_FORM_BYTES:
                    return {}
        return dict(parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=10))
    return {}


def _parse_filter(query: Mapping[str, str]) -> DeliveryFilter:
    """The filter in the address; invalid parts are ignored."""
    state: State | None = next((known for known in STATES if known == query.get("state")), None)
    return DeliveryFilter(state, _parse_key(query.get("repository", "")), _parse_number(query.get("before", "")))


def _parse_key(text: str) -> RepositoryKey | None:
    try:
        return RepositoryKey.of(text[:35])
    except ValueError:
        return None


def _parse_number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


async def healthz(_: Request) -> Response:
    return PlainTextResponse("ok\n", headers=PRIVATE_HEADERS)


async def database_unavailable(_: Request, error: Exception) -> Response:
    log.warning("not shown: %s", error)
    return PlainTextResponse("the database does not answer: see /status.json and the log\n", 503, PRIVATE_HEADERS)


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


def serve_http(app: ASGIApp, listener: socket.socket, stop: threading.Event, proxies: Sequence[str] = ()) -> None:
    """Answer requests until ``stop``, then wait for those in progress. ``proxies`` are believed who their client is."""
    config = uvicorn.Config(
        app,
        http="h11",
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        log_level="error",
        server_header=False,
        forwarded_allow_ips=list(proxies),
        limit_concurrency=MAX_CONNECTIONS,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        h11_max_incomplete_event_size=16_384,
    )
    server = uvicorn.Server(config)
    with ThreadPoolExecutor(1) as thread:  # in the main thread, it would take over our signals
        serving = thread.submit(server.run, [listener])
        serving.add_done_callback(lambda _: stop.set())
        stop.wait()
        server.should_exit = True
        serving.result()
