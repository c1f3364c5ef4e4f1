"""One request to the fake GitHub and its reply, before and after they are bytes."""

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


class Recorded(NamedTuple):
    """One served request: (method, path template, status). The status is 0 when the connection was dropped."""

    method: str
    path: str
    status: int


@dataclass
class Reply:
    """``body`` is a JSON value, bytes that go out as they are, or None for no body."""

    status: int = 200
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        if self.body is None:
            return b""
        if isinstance(self.body, bytes):
            return self.body
        # Everything beyond ASCII is escaped, since a lone surrogate has no UTF-8.
        return json.dumps(self.body, separators=(",", ":")).encode()


class Refusal(Exception):
    """An answer of GitHub that is not what was asked for."""

    def __init__(self, status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> None:
        super().__init__(message)
        body = {"message": message, "documentation_url": DOCS, "status": str(status), **more}
        self.reply = Reply(status, body, headers or {})


def not_found() -> Refusal:
    return Refusal(404, "Not Found")


def invalid(resource: str, name: str, code: str = "invalid") -> Refusal:
    return Refusal(422, "Validation Failed", errors=[{"resource": resource, "field": name, "code": code}])


@dataclass(frozen=True)
class Wire:
    """A request as it came in. ``path`` begins with a slash and has no query; ``base`` is the API's URL as this client
    sees it, without a trailing slash."""

    method: str
    path: str
    query: str
    headers: dict[str, str]
    body: bytes
    base: str


@dataclass
class Call:
    """A request on its way to its handler. ``params`` are decoded parts of the path; ``app`` asks with its own key."""

    world: World
    shapes: Shapes
    wire: Wire
    params: dict[str, str]
    token: Token | None
    app: App | None
    server: Any
    cost: dict[str, int] = field(default_factory=dict)
    """What a GraphQL query costs: ``cost`` in points and ``nodeCount``."""

    @property
    def method(self) -> str:
        return self.wire.method

    @property
    def path(self) -> str:
        return self.wire.path

    @property
    def base(self) -> str:
        return self.wire.base

    @property
    def query_string(self) -> str:
        return self.wire.query

    @property
    def headers(self) -> dict[str, str]:
        return self.wire.headers

    @property
    def query(self) -> dict[str, str]:
        return {key: values[-1] for key, values in parse_qs(self.query_string, keep_blank_values=True).items()}

    @property
    def account(self) -> Account | None:
        return self.token.account if self.token else None

    @property
    def login(self) -> str:
        """Who writes; a request that writes has always a token."""
        if self.token is None:
            raise Refusal(401, "Requires authentication")
        return self.token.account.login

    def number(self, name: str) -> int:
        """A part of the path as a number; what is no number is no page of GitHub's either."""
        text = self.params[name]
        if not (text.isascii() and text.isdigit()):
            raise not_found()
        return int(text)

    def json(self) -> dict[str, Any]:
        if not self.wire.body:
            return {}
        try:
            value = json.loads(self.wire.body)
        except ValueError:
            raise Refusal(400, "Problems parsing JSON") from None
        if not isinstance(value, dict):
            raise Refusal(400, "Body should be a JSON object")
        return value

    def repository(self) -> Repository:
        """The repository of the path. A former name is answered with a redirect, a private one hides from strangers."""
        full_name = f"{self.params['owner']}/{self.params['repo']}"
        repo_id = self.world.names.get(full_name.lower())
        if repo_id is None:
            raise not_found()
        repo = self.world.repositories[repo_id]
        if repo.full_name.lower() != full_name.lower():
            rest = self.path.split("/", 4)[4:]
            query = f"?{self.query_string}" if self.query_string else ""
            raise redirect("/".join([f"{self.base}/repositories/{repo.id}", *rest]) + query, self.method)
        if repo.private and self.token is None and self.app is None:
            raise not_found()
        if repo.archived and self.method != "GET":
            raise Refusal(403, "Repository was archived so is read-only.")
        return repo


def redirect(where: str, method: str = "GET") -> Refusal:
    status = 301 if method in ("GET", "HEAD") else 307
    message = "Moved Permanently" if status == 301 else "Temporary Redirect"
    return Refusal(status, message, {"Location": where}, url=where)


Handler = Callable[[Call], Reply]


@dataclass(frozen=True)
class Route:
    """``needs`` is the permission a token must hold, like ``issues:write``, empty when none."""

    method: str
    template: str
    handler: Handler
    needs: str = ""

    @property
    def parts(self) -> tuple[str, ...]:
        return tuple(self.template.strip("/").split("/"))


class Book:
    """The routes of one module, in the order in which they are tried."""

    def __init__(self) -> None:
        self.routes: list[Route] = []

    def route(self, method: str, template: str, needs: str = "") -> Callable[[Handler], Handler]:
        def keep(handler: Handler) -> Handler:
            self.routes.append(Route(method, template, handler, needs))
            return handler

        return keep

    def extend(self, books: Iterable[Book]) -> Book:
        for book in books:
            self.routes.extend(book.routes)
        return self
