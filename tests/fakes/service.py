"""From a request in bytes to a reply in bytes: who asks, may they, is a fault due, is the contract kept."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import time
import traceback
from dataclasses import dataclass, replace
from email.utils import formatdate
from typing import Any
from urllib.parse import unquote

from tests.fakes import graph, rest_app, rest_comments, rest_issues, rest_project
from tests.fakes.apps import App
from tests.fakes.contract import Exchange, find_violations
from tests.fakes.exchange import Book, Call, Recorded, Refusal, Reply, Route, Wire, not_found
from tests.fakes.faults import HAPPENS, Fault
from tests.fakes.objects import Shapes
from tests.fakes.state import Token
from tests.fakes.struck import answer

ENTERPRISE = "/api/v3"
BOOK = Book().extend((rest_issues.BOOK, rest_comments.BOOK, rest_project.BOOK, rest_app.BOOK))
GRAPHQL = Route("POST", "/graphql", lambda call: Reply())
FREE = frozenset({"/rate_limit"})


@dataclass(frozen=True)
class Sent:
    """What goes out; nothing at all when the connection is dropped."""

    status: int
    headers: dict[str, str]
    body: bytes
    dropped: bool = False
    delay: float = 0.0


def find_route(method: str, path: str) -> tuple[Route, dict[str, str]] | None:
    """The route and the decoded parts of the path. Fixed words win over parameters; only ``{path}`` spans slashes."""
    parts = path.strip("/").split("/")
    best: tuple[int, Route, dict[str, str]] | None = None
    for route in BOOK.routes:
        if route.method != method:
            continue
        params = match(route.parts, parts)
        if params is not None and (best is None or len(params) < best[0]):
            best = (len(params), route, params)
    return (best[1], best[2]) if best else None


def _route_of(wire: Wire) -> tuple[Route | None, dict[str, str]]:
    if wire.path == GRAPHQL.template and wire.method == GRAPHQL.method:
        return GRAPHQL, {}
    return find_route(wire.method, wire.path) or (None, {})


def match(template: tuple[str, ...], parts: list[str]) -> dict[str, str] | None:
    if template[-1] == "{path}" and len(parts) >= len(template) - 1:
        cut = len(template) - 1
        parts = [*parts[:cut], "/".join(parts[cut:])]
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

    def serve(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Sent:
        wire = self._read(method, target, headers, body)
        self.fake.on_request(f"{method} {wire.path}")
        fault = self.fake.faults.strike(f"{method} {wire.path}")
        named = self._by_name(wire)
        route, params = _route_of(named)
        template = route.template if route else wire.path
        if fault and fault.kind == "drop":
            self.fake.record(Recorded(method, template, 0), False)
            return Sent(0, {}, b"", dropped=True)
        with self.fake.world.lock:
            struck = answer(fault, named, route, self.fake) if fault else None
            sent = self._finish(named, route, struck or self._reply(named, route, params))
            self.fake.struck |= {len(self.fake.requests): fault.kind} if fault else {}
        writes = graph.writes(_text(body)) if route is GRAPHQL else method not in ("GET", "HEAD")
        self.fake.record(Recorded(method, template, sent.status), writes)
        self._check(named, route, params, sent, bool(fault and fault.kind not in HAPPENS))
        return _on_the_way(sent, fault) if fault else sent

    def _read(self, method: str, target: str, headers: dict[str, str], body: bytes) -> Wire:
        """The API is served at the root, and as on a company's server under ``/api/v3`` and ``/api/graphql``."""
        path, _, query = target.partition("?")
        base = self.fake.url
        if path == "/api/graphql":
            path, base = "/graphql", base + ENTERPRISE
        elif path.startswith(ENTERPRISE):
            path, base = path.removeprefix(ENTERPRISE) or "/", base + ENTERPRISE
        return Wire(method, path, query, headers, body, base)

    def _by_name(self, wire: Wire) -> Wire:
        """`Link` headers and redirects lead to ``/repositories/{id}``: the same as its name."""
        found = re.fullmatch(r"/repositories/(\d{1,12})(/.*)?", wire.path, re.ASCII)
        repo = self.fake.world.repositories.get(int(found[1])) if found else None
        return wire if repo is None or found is None else replace(wire, path=f"/repos/{repo.full_name}{found[2] or ''}")

    def _reply(self, wire: Wire, route: Route | None, params: dict[str, str]) -> Reply:
        try:
            token, app = self._authenticate(wire.headers)
            if route is None:
                raise not_found()
            shapes = self._shapes_for(wire.base)
            call = Call(self.fake.world, shapes, wire, params, token, app, self.fake)
            if route is GRAPHQL:
                return self._graphql(call)
            return self._rest(call, route)
        except Refusal as refusal:
            return refusal.reply
        except NotImplementedError as gap:
            self.fake.violations.append(str(gap))
            return Refusal(501, str(gap)).reply
        except Exception:  # noqa: BLE001 - whatever breaks here is a bug of the fake, told by the test that met it
            self.fake.violations.append(f"the fake broke: {traceback.format_exc()}")
            return Refusal(500, "Server Error").reply

    def _rest(self, call: Call, route: Route) -> Reply:
        allowance = self.fake.limits.allowance(call.token or self.fake.apps.as_token(call.app), "core")
        if route.template not in FREE:
            if allowance.remaining <= 0:
                return self._exhausted(call)
            allowance.used += 1
        self._check_access(call, route)
        reply = route.handler(call)
        if "repo" in call.params:
            self.fake.apps.note(call.token, call.repository().id)
        not_modified = self._not_modified(call, reply)
        if not_modified is not None and route.template not in FREE:
            allowance.used -= 1
        return not_modified or reply

    def _graphql(self, call: Call) -> Reply:
        if call.token is None:
            raise Refusal(401, "This endpoint requires you to be authenticated.")
        reply, wrong = graph.answer(call, self.fake.limits.allowance(call.token, "graphql"))
        self.fake.violations.extend(wrong)
        return reply

    def _exhausted(self, call: Call) -> Reply:
        return Refusal(self.fake.limits.status, graph.limit_message(call)).reply

    def _check_access(self, call: Call, route: Route) -> None:
        for_apps = route.template.startswith("/app") or route.template.endswith("/installation")
        if call.app is not None and not for_apps:
            raise Refusal(403, "Resource not accessible by integration")
        if route.method != "GET" and call.token is None and call.app is None:
            raise Refusal(401, "Requires authentication")
        if route.needs and not self.fake.allows(call.token, route.needs):
            raise Refusal(403, "Resource not accessible by integration")
        self._check_installation(call, route)

    def _check_installation(self, call: Call, route: Route) -> None:
        """The token of an installation reaches its own repositories, and reads public ones."""
        if call.token is None or call.token.installation is None or "repo" not in call.params:
            return
        repo = call.repository()
        if repo.id not in self.fake.visible_repositories(call.token) and (repo.private or route.method != "GET"):
            raise not_found() if repo.private else Refusal(403, "Resource not accessible by integration")

    def _not_modified(self, call: Call, reply: Reply) -> Reply | None:
        """Set the weak ETag; the empty 304 when the client has this very reply already.

        The answers vary with the ``Authorization`` header, and so do their ETags: one token's mean nothing to another.
        https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate
        https://github.com/github/docs/issues/34689
        """
        if call.method != "GET" or reply.status != 200:
            return None
        whose = call.headers.get("Authorization", "").encode()
        tag = f'W/"{hashlib.sha256(whose + reply.encoded()).hexdigest()}"'
        reply.headers["ETag"] = tag
        known = call.headers.get("If-None-Match", "")
        wanted = {part.strip().removeprefix("W/") for part in known.split(",")}
        return Reply(304, None, {"ETag": tag}) if tag.removeprefix("W/") in wanted else None

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

    def _asker(self, headers: dict[str, str]) -> Token | None:
        """Whose allowance a request counts against, whether its token is good or not."""
        credential = headers.get("Authorization", "").partition(" ")[2].strip()
        try:
            return self.fake.world.tokens.get(credential) or self.fake.apps.as_token(
                self.fake.apps.authenticate(credential)
            )
        except Refusal:
            return None

    def _finish(self, wire: Wire, route: Route | None, reply: Reply) -> Sent:
        resource = "graphql" if route is GRAPHQL else "core"
        token = self._asker(wire.headers)
        headers = {
            "Date": formatdate(time.time() + self.fake.ahead, usegmt=True),
            "Content-Type": "application/json; charset=utf-8",
            "Cache-Control": "private, max-age=60, s-maxage=60" if token else "public, max-age=60, s-maxage=60",
            "Vary": "Accept, Authorization, Cookie, X-GitHub-OTP,Accept-Encoding, Accept, X-Requested-With",
            "X-GitHub-Media-Type": "github.v3; format=json",
            "X-GitHub-Request-Id": f"FAKE:{next(self._counter):06X}",
            **self.fake.limits.headers(token, resource),
        }
        return Sent(reply.status, headers | reply.headers, reply.encoded())

    def _shapes_for(self, base: str) -> Shapes:
        slugs = {app.slug: app.id for app in self.fake.apps.known.values()}
        shapes = self._shapes.get(base)
        if shapes is None or not slugs.keys() <= shapes.apps.keys():
            shapes = self._shapes[base] = Shapes(base, self.fake.site, slugs)
        return shapes

    def _check(self, wire: Wire, route: Route | None, params: dict[str, str], sent: Sent, injected: bool) -> None:
        if not self.fake.validate or route is None or route is GRAPHQL:
            return
        kind = sent.headers["Content-Type"].split(";")[0] if sent.body else ""
        exchange = Exchange(
            wire.method, route.template, params, wire.query, wire.headers, wire.body, sent.status, kind, sent.body
        )
        self.fake.violations.extend(find_violations(exchange, injected))


def _on_the_way(sent: Sent, fault: Fault) -> Sent:
    """What of the right answer arrives."""
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
