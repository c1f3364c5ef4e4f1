"""Turns a request in bytes into a reply in bytes: authentication, permissions, faults, and the contract."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import traceback
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

from tests.fakes import graph, rest_app, rest_comments, rest_issues, rest_project
from tests.fakes.apps import App
from tests.fakes.contract import Exchange, find_violations
from tests.fakes.exchange import Call, RawRequest, RecordedRequest, Refusal, Reply, Route, RouteTable, not_found
from tests.fakes.fault_replies import make_reply
from tests.fakes.faults import TAKE_EFFECT, Fault
from tests.fakes.objects import Shapes
from tests.fakes.state import Token

ENTERPRISE = "/api/v3"
ROUTES = RouteTable().extend((rest_issues.ROUTES, rest_comments.ROUTES, rest_project.ROUTES, rest_app.ROUTES))
GRAPHQL = Route("POST", "/graphql", lambda call: Reply())
UNCOUNTED = frozenset({"/rate_limit"})


@dataclass(frozen=True)
class SentReply:
    """The reply to send; nothing is sent if the connection is dropped."""

    status: int
    headers: dict[str, str]
    body: bytes
    dropped: bool = False
    delay: float = 0.0


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The route and the decoded parts of the path. Fixed words win over parameters."""
    parts = path.strip("/").split("/")
    best: tuple[int, Route, dict[str, str]] | None = None
    for route in ROUTES.routes:
        if route.method != method:
            continue
        params = match(route.parts, parts)
        if params is not None and (best is None or len(params) < best[0]):
            best = (len(params), route, params)
    return (best[1], best[2]) if best else None


def _route_of(request: RawRequest) -> tuple[Route | None, dict[str, str]]:
    if request.path == GRAPHQL.template and request.method == GRAPHQL.method:
        return GRAPHQL, {}
    return find_route(request.method, request.path) or (None, {})


def match(template: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    if len(template) != len(parts):
        return None
    params = {}
    for word, part in zip(template, parts, strict=True):
        if word.startswith("{"):
            params[word[1:-1]] = unquote(part)
        elif word != part:
            return None
    return params


class Service:
    """Serves the requests of one fake GitHub."""

    def __init__(self, fake: Any) -> None:
        self.fake = fake
        self._shapes: dict[str, Shapes] = {}
        self._counter = itertools.count(1)

    def serve(self, method: str, target: str, headers: dict[str, str], body: bytes) -> SentReply:
        request = self._read(method, target, headers, body)
        self.fake.on_request(f"{method} {request.path}")
        fault = self.fake.faults.strike(f"{method} {request.path}")
        resolved = self._resolve_repository(request)
        route, params = _route_of(resolved)
        template = route.template if route else request.path
        if fault and fault.kind == "drop":
            self.fake.record(RecordedRequest(method, template, 0), False)
            return SentReply(0, {}, b"", dropped=True)
        with self.fake.world.lock:
            fault_reply = make_reply(fault, resolved, route, self.fake) if fault else None
            sent = self._finish(resolved, route, fault_reply or self._reply(resolved, route, params))
            self.fake.fault_kinds |= {len(self.fake.requests): fault.kind} if fault else {}
        writes = graph.writes(_text(body)) if route is GRAPHQL else method not in ("GET", "HEAD")
        self.fake.record(RecordedRequest(method, template, sent.status), writes)
        self._check(resolved, route, params, sent, bool(fault and fault.kind not in TAKE_EFFECT))
        return _distort(sent, fault) if fault else sent

    def _read(self, method: str, target: str, headers: dict[str, str], body: bytes) -> RawRequest:
        """The API is served under ``/api/v3`` and ``/api/graphql`` as on Enterprise Server and, unless the fake is one,
        at the root."""
        path, _, query = target.partition("?")
        base = self.fake.url
        if path == "/api/graphql":
            path, base = "/graphql", base + ENTERPRISE
        elif path.startswith(ENTERPRISE):
            path, base = path.removeprefix(ENTERPRISE) or "/", base + ENTERPRISE
        elif not self.fake.serves_root:
            self.fake.violations.append(f"{method} {path} is not an address of Enterprise Server's API")
            path = "/not-served"
        return RawRequest(method, path, query, headers, body, base)

    def _resolve_repository(self, request: RawRequest) -> RawRequest:
        """Replace ``/repositories/{id}``, used in `Link` headers and redirects, by the repository's name."""
        id_match = re.fullmatch(r"/repositories/(\d{1,12})(/.*)?", request.path, re.ASCII)
        repo = self.fake.world.repositories.get(int(id_match[1])) if id_match else None
        return (
            request
            if repo is None or id_match is None
            else replace(request, path=f"/repos/{repo.full_name}{id_match[2] or ''}")
        )

    def _reply(self, request: RawRequest, route: Route | None, params: dict[str, str]) -> Reply:
        try:
            token, app = self._authenticate(request.headers)
            if route is None:
                raise not_found()
            shapes = self._shapes_for(request.base)
            call = Call(self.fake.world, shapes, request, params, token, app, self.fake)
            if route is GRAPHQL:
                return self._graphql(call)
            return self._rest(call, route)
        except Refusal as refusal:
            return refusal.reply
        except NotImplementedError as gap:
            self.fake.violations.append(str(gap))
            return Refusal(501, str(gap)).reply
        except Exception:  # noqa: BLE001 - a bug of the fake, reported by the test that met it
            self.fake.violations.append(f"the fake broke: {traceback.format_exc()}")
            return Refusal(500, "Server Error").reply

    def _rest(self, call: Call, route: Route) -> Reply:
        allowance = self.fake.limits.allowance(call.token or self.fake.apps.as_token(call.app), "core")
        if route.template not in UNCOUNTED:
            if allowance.remaining <= 0:
                raise Refusal(self.fake.limits.status, graph.limit_message(call))
            allowance.used += 1
        self._check_access(call, route)
        reply = route.handler(call)
        if "repo" in call.params:
            self.fake.apps.note(call.token, call.repository().id)
        not_modified = self._not_modified(call, reply)
        if not_modified is not None and route.template not in UNCOUNTED:
            allowance.used -= 1
        return not_modified or reply

    def _graphql(self, call: Call) -> Reply:
        if call.token is None:
            raise Refusal(401, "This endpoint requires you to be authenticated.")
        reply, complaints = graph.answer_query(call, self.fake.limits.allowance(call.token, "graphql"))
        self.fake.violations.extend(complaints)
        return reply

    def _check_access(self, call: Call, route: Route) -> None:
        if call.app is not None and not route.template.startswith("/app"):
            raise Refusal(403, "Resource not accessible by integration")
        if route.method != "GET" and call.token is None and call.app is None:
            raise Refusal(401, "Requires authentication")
        if route.needs and not self.fake.allows(call.token, route.needs):
            raise Refusal(403, "Resource not accessible by integration")
        self._check_installation(call, route)

    def _check_installation(self, call: Call, route: Route) -> None:
        """An installation token may use its own repositories and read public ones."""
        if call.token is None or call.token.installation is None or "repo" not in call.params:
            return
        repo = call.repository()
        if repo.id not in self.fake.visible_repositories(call.token) and (repo.private or route.method != "GET"):
            raise not_found() if repo.private else Refusal(403, "Resource not accessible by integration")

    def _not_modified(self, call: Call, reply: Reply) -> Reply | None:
        """Set the weak ETag; returns an empty 304 if the client already has this reply.

        Replies vary with the ``Authorization`` header, and so do their ETags: one token's ETag never matches another's.
        https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate
        https://github.com/github/docs/issues/34689
        """
        if call.request.method != "GET" or reply.status != 200:
            return None
        whose = call.request.headers.get("Authorization", "").encode()
        tag = f'W/"{hashlib.sha256(whose + reply.encoded()).hexdigest()}"'
        reply.headers["ETag"] = tag
        sent_tags = call.request.headers.get("If-None-Match", "")
        tags = {part.strip().removeprefix("W/") for part in sent_tags.split(",")}
        return Reply(304, None, {"ETag": tag}) if tag.removeprefix("W/") in tags else None

    def _authenticate(self, headers: dict[str, str]) -> tuple[Token | None, App | None]:
        kind, _, credential = headers.get("Authorization", "").partition(" ")
        if not kind:
            return None, None
        app = self.fake.apps.authenticate(credential.strip())
        if app is not None:
            return None, app
        token = self.fake.world.tokens.get(credential.strip())
        expired = token is not None and token.expires_at is not None and token.expires_at <= self.fake.clock.now
        if token is None or expired or kind.lower() not in ("bearer", "token"):
            raise Refusal(401, "Bad credentials")
        self.fake.apps.check(token)
        return token, None

    def _counted_token(self, headers: dict[str, str]) -> Token | None:
        """The token whose allowance a request counts against, whether it is valid or not."""
        credential = headers.get("Authorization", "").partition(" ")[2].strip()
        try:
            return self.fake.world.tokens.get(credential) or self.fake.apps.as_token(
                self.fake.apps.authenticate(credential)
            )
        except Refusal:
            return None

    def _finish(self, request: RawRequest, route: Route | None, reply: Reply) -> SentReply:
        resource = "graphql" if route is GRAPHQL else "core"
        token = self._counted_token(request.headers)
        headers = {
            "Date": formatdate(self.fake.clock.epoch + self.fake.ahead, usegmt=True),
            "Content-Type": "application/json; charset=utf-8",
            "Cache-Control": "private, max-age=60, s-maxage=60" if token else "public, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With",
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": f"FAKE:{next(self._counter):06X}",
            **self.fake.limits.headers(token, resource),
        }
        return SentReply(reply.status, headers | reply.headers, reply.encoded())

    def _shapes_for(self, base: str) -> Shapes:
        slugs = {app.slug: app.id for app in self.fake.apps.by_id.values()}
        shapes = self._shapes.get(base)
        if shapes is None or not slugs.keys() <= shapes.apps.keys():
            shapes = self._shapes[base] = Shapes(base, self.fake.site, slugs)
        return shapes

    def _check(
        self, request: RawRequest, route: Route | None, params: dict[str, str], sent: SentReply, injected: bool
    ) -> None:
        if not self.fake.validate or route is None or route is GRAPHQL:
            return
        kind = sent.headers["Content-Type"].split(";")[0] if sent.body else ""
        exchange = Exchange(
            request.method,
            route.template,
            params,
            request.query,
            request.headers,
            request.body,
            sent.status,
            kind,
            sent.body,
        )
        self.fake.violations.extend(find_violations(exchange, injected))


def _distort(sent: SentReply, fault: Fault) -> SentReply:
    """Apply a fault to the correct reply: delay it, cut it, or drop it."""
    match fault.kind:
        case "slow":
            return replace(sent, delay=fault.seconds)
        case "cut":
            return replace(sent, body=sent.body[: len(sent.body) // 2])
    return replace(sent, dropped=fault.kind == "dup")


def _text(body: bytes) -> str:
    try:
        return str(json.loads(body).get("query", ""))
    except (ValueError, AttributeError):
        return ""
