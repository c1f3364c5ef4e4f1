"""One request to the fake GitHub and its reply, as objects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from tests.fakes.state import Account, Repository, Token, World

if TYPE_CHECKING:
    from tests.fakes.apps import App
    from tests.fakes.objects import Shapes

DOCS = "https://docs.github.com/rest"


class RecordedRequest(NamedTuple):
    """One served request: (method, path template, status). The status is 0 if the connection was dropped."""

    method: str
    path: str
    status: int


@dataclass
class Reply:
    """``body`` is a JSON value, bytes to send unchanged, or None for no body."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        # Everything beyond ASCII is escaped, since a lone surrogate cannot be encoded in UTF-8.
        return json.dumps(self.body, separators=(",", ":")).encode()


class Refusal(Exception):
    """A reply in which GitHub refuses or redirects a request."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(message)
        body = {"message": message, "documentation_url": DOCS, "status": str(status), **more}
        self.reply = Reply(status, body, headers or {})


def not_found() -> Refusal:
    return Refusal(404, "Not Found")


def invalid(resource: str, name: str, code: str = "invalid") -> Refusal:
    return Refusal(422, "Validation Failed", errors=[{"resource": resource, "field": name, "code": code}])


@dataclass(frozen=True)
class RawRequest:
    """A request as received. ``path`` begins with a slash and has no query; ``base`` is the API's URL as this client
    sees it, without a trailing slash."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    base: str


@dataclass
class Call:
    """A request for a handler. ``params`` are decoded parts of the path; ``app`` is set if an App signed it itself."""

    world: World
    shapes: Shapes
    request: RawRequest
    params: dict[str, str]
    token: Token | None
    app: App | None
    server: Any

    @property
    def query(self) -> dict[str, str]:
        return {key: values[-1] for key, values in parse_qs(self.request.query, keep_blank_values=True).items()}

    @property
    def account(self) -> Account | None:
        return self.token.account if self.token else None

    @property
    def login(self) -> str:
        """The login of the account that writes; a request that writes always has a token."""
        if self.token is None:
            raise Refusal(401, "Requires authentication")
        return self.token.account.login

    def number(self, name: str) -> int:
        """A part of the path as a number; anything else is a 404, as on GitHub."""
        text = self.params[name]
        if not (text.isascii() and text.isdigit()):
            raise not_found()
        return int(text)

    def json(self) -> dict[str, Any]:
        if not self.request.body:
            return {}
        try:
            value = json.loads(self.request.body)
        except ValueError:
            raise Refusal(400, "Problems parsing JSON") from None
        if not isinstance(value, dict):
            raise Refusal(400, "Body should be a JSON object")
        return value

    def repository(self) -> Repository:
        """The repository of the path. A former name gets a redirect, and strangers cannot see a private repository."""
        full_name = f"{self.params['owner']}/{self.params['repo']}"
        repo_id = self.world.names.get(full_name.lower())
        if repo_id is None:
            raise not_found()
        repo = self.world.repositories[repo_id]
        if repo.full_name.lower() != full_name.lower():
            rest = self.request.path.split("/", 4)[4:]
            query = f"?{self.request.query}" if self.request.query else ""
            raise redirect(
                "/".join([f"{self.request.base}/repositories/{repo.id}", *rest]) + query, self.request.method
            )
        if repo.private and self.token is None and self.app is None:
            raise not_found()
        if repo.archived and self.request.method != "GET":
            raise Refusal(403, "Repository was archived so is read-only.")
        return repo


def redirect(where: str, method: str = "GET") -> Refusal:
    status = 301 if method in ("GET", "HEAD") else 307
    message = "Moved Permanently" if status == 301 else "Temporary Redirect"
    return Refusal(status, message, {"Location": where}, url=where)


Handler = Callable[[Call], Reply]


@dataclass(frozen=True)
class Route:
    """``needs`` is the permission that a token must have, such as ``issues:write``; empty if none."""

    method: str
    template: str
    handler: Handler
    needs: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.template.strip("/").split("/"))


class RouteTable:
    """The routes of one module, in the order in which they are tried."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def route(self, method: str, template: str, needs: str = "") -> Callable[[Handler], Handler]:
        def register(handler: Handler) -> Handler:
            self.routes.append(Route(method, template, handler, needs))
            return handler

        return register

    def extend(self, tables: Iterable[RouteTable]) -> RouteTable:
        for table in tables:
            self.routes.extend(table.routes)
        return self
