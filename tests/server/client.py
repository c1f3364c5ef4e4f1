"""A raw HTTP client for the server under test: what GitHub sends, what nobody should send, and many at once."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import json
import time
import uuid
from base64 import b64encode
from collections.abc import AsyncIterator, Iterable, Mapping
from dataclasses import dataclass, field

SECRET = b"It's a Secret to Everybody"
"""The secret in GitHub's own test vector."""

PASSWORD, OPERATOR = "open sesame, please", "close sesame, please"
"""The password of the status page, and the one with which it can be operated."""

WAIT = 20.0


@dataclass(frozen=True)
class Answer:
    """``status`` is 0 when the connection ended without an answer."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0
    closed: bool = False


def signature(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def issue_event(number: int, repository: int = 17, installation: int = 1, action: str = "opened") -> dict[str, object]:
    """An ``issues`` payload with the fields that the server reads, and a word that it must not store."""
    return {
        "action": action,
        "issue": {"number": number, "title": "Sesame", "user": {"login": "octocat"}},
        "repository": {
            "id": repository,
            "full_name": f"octo-org/project-{repository}",
            "private": True,
            "default_branch": "main",
        },
        "installation": {"id": installation},
        "sender": {"login": "octocat"},
    }


PARTS: Mapping[str, dict[str, object]] = {
    "issues": {"issue": {"number": 1}},
    "issue_comment": {"issue": {"number": 1}, "comment": {"id": 3}},
    "discussion": {"discussion": {"number": 1}},
    "discussion_comment": {"discussion": {"number": 1}, "comment": {"id": 3}},
    "push": {"ref": "refs/heads/main", "commits": []},
    "gollum": {"pages": []},
    "release": {"release": {"id": 3}},
    "repository": {},
    "installation": {"repositories": []},
    "installation_repositories": {"repositories_added": [], "repositories_removed": []},
}
"""The parts of the bodies of each event, besides those that all have."""


def event_body(event: str, action: str, **parts: object) -> dict[str, object]:
    """A body of any event that the server reads, with the parts that set it apart; those of no action for ""."""
    common = {name: part for name, part in issue_event(1).items() if name not in ("action", "issue")}
    if event.startswith("installation"):
        del common["repository"]
        common["installation"] = {"id": 1, "account": {"login": "octo-org"}}
    return ({"action": action} if action else {}) | common | PARTS.get(event, {}) | parts


def delivery_headers(body: bytes, event: str = "issues", guid: str = "", **overrides: str | None) -> dict[str, str]:
    """The headers of a delivery; ``overrides`` of None leave a header out, and underscores stand for hyphens."""
    headers: dict[str, str | None] = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid or str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(body),
    }
    by_key = {name.lower().replace("-", "_"): name for name in headers}
    headers |= {by_key.get(name.lower(), name.replace("_", "-")): value for name, value in overrides.items()}
    return {name: value for name, value in headers.items() if value is not None}


def auth_headers(credentials: str = f"precedent:{PASSWORD}", host: str = "localhost") -> dict[str, str]:
    """The headers of a page request with a name and a password."""
    return {"Host": host, "Authorization": f"Basic {b64encode(credentials.encode()).decode()}"}


def head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = (f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1")


class Connection:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def open(cls, port: int, source: str = "127.0.0.1") -> Connection:
        return cls(*await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)))

    async def send(self, data: bytes) -> bool:
        """Send the bytes; False when the other side has closed the connection."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError:
            return False
        return True

    async def read_answer(self, seconds: float = WAIT) -> Answer:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(seconds):
                first, _, rest = (await self.reader.readuntil(b"\r\n\r\n")).decode("latin-1").partition("\r\n")
                pairs = (line.split(": ", 1) for line in rest.split("\r\n") if line)
                headers = {name.lower(): value for name, value in pairs}
                body = await self.reader.readexactly(int(headers.get("content-length", 0)))
        except (asyncio.IncompleteReadError, OSError):
            return Answer(0, seconds=time.perf_counter() - began, closed=True)
        closed = headers.get("connection") == "close"
        return Answer(int(first.split()[1]), headers, body, time.perf_counter() - began, closed)

    async def ask(self, method: str, path: str, headers: Mapping[str, str], body: bytes = b"") -> Answer:
        began = time.perf_counter()
        await self.send(head(method, path, headers) + body)
        answer = await self.read_answer()
        return Answer(answer.status, answer.headers, answer.body, time.perf_counter() - began, answer.closed)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def open_connections(port: int, count: int = 1, peers: int = 1) -> AsyncIterator[list[Connection]]:
    """Open ``count`` connections from ``peers`` addresses of this machine; the block's end closes them."""
    sources = [f"127.0.{number // 250}.{number % 250 + 1}" for number in range(peers)]
    connections = [await Connection.open(port, sources[number % peers]) for number in range(count)]
    try:
        yield connections
    finally:
        for connection in connections:
            await connection.close()


async def request_once(
    port: int, method: str = "POST", path: str = "/webhook", headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Answer:
    """One request on its own connection; without ``headers`` it carries the right password."""
    async with open_connections(port) as (connection,):
        return await connection.ask(method, path, headers if headers is not None else auth_headers(), body)


@dataclass(frozen=True)
class Sent:
    """A delivery that was sent, and its answer. ``at`` is the time of sending, in seconds of a monotonic clock."""

    guid: str
    repository: int
    number: int
    answer: Answer
    at: float = 0.0


async def burst(port: int, deliveries: Iterable[tuple[str, int, int]], at_once: int = 32) -> list[Sent]:
    """Deliver (guid, repository, number) in this order over ``at_once`` connections that stay open."""
    remaining = iter(list(deliveries))
    sent: list[Sent] = []

    async def send_remaining() -> None:
        connection = await Connection.open(port)
        for guid, repository, number in remaining:
            body = json.dumps(issue_event(number, repository)).encode()
            at = time.perf_counter()
            answer = await connection.ask("POST", "/webhook", delivery_headers(body, guid=guid), body)
            sent.append(Sent(guid, repository, number, answer, at))
            if answer.closed:
                await connection.close()
                connection = await Connection.open(port)
        await connection.close()

    await asyncio.gather(*(send_remaining() for _ in range(at_once)))
    return sent
