"""A client of the server under test, in raw bytes: what GitHub sends, what nobody should send, and many at once."""

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
"""Of GitHub's own test vector."""

PASSWORD = "open sesame, please"
"""Of the status page."""

WAIT = 20.0


@dataclass(frozen=True)
class Answer:
    """``status`` 0: the connection ended without one."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 0.0
    closed: bool = False


def signature(body: bytes, secret: bytes = SECRET) -> str:
    return "sha256=" + hmac.new(secret, body, hashlib.sha256).hexdigest()


def issue_event(number: int, repository: int = 17, installation: int = 1, action: str = "opened") -> dict[str, object]:
    """A payload of ``issues`` with what the server reads, and a word that it must not keep."""
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


def delivered(body: bytes, event: str = "issues", guid: str = "", **changed: str | None) -> dict[str, str]:
    """The headers of a delivery; those that are ``changed`` to None are left out. Underscores stand for hyphens."""
    headers: dict[str, str | None] = {
        "Host": "localhost",
        "Content-Type": "application/json",
        "Content-Length": str(len(body)),
        "X-GitHub-Event": event,
        "X-GitHub-Delivery": guid or str(uuid.uuid4()),
        "X-Hub-Signature-256": signature(body),
    }
    known = {name.lower().replace("-", "_"): name for name in headers}
    headers |= {known.get(name.lower(), name.replace("_", "-")): value for name, value in changed.items()}
    return {name: value for name, value in headers.items() if value is not None}


def knowing(credentials: str = f"precedent:{PASSWORD}", host: str = "localhost") -> dict[str, str]:
    """The headers of who asks for a page with a name and a password."""
    return {"Host": host, "Authorization": f"Basic {b64encode(credentials.encode()).decode()}"}


def head(method: str, path: str, headers: Mapping[str, str]) -> bytes:
    lines = (f"{name}: {value}\r\n" for name, value in headers.items())
    return f"{method} {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1")


class Line:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, port: int, source: str = "127.0.0.1") -> Line:
        return cls(*await asyncio.open_connection("127.0.0.1", port, local_addr=(source, 0)))

    async def say(self, data: bytes) -> bool:
        """Whether the other side still listened."""
        try:
            self.writer.write(data)
            await self.writer.drain()
        except OSError:
            return False
        return True

    async def add_results(self, seconds: float = WAIT) -> Answer:
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
        await self.say(head(method, path, headers) + body)
        answer = await self.add_results()
        return Answer(answer.status, answer.headers, answer.body, time.perf_counter() - began, answer.closed)

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def lines(port: int, count: int = 1, peers: int = 1) -> AsyncIterator[list[Line]]:
    """So many connections from so many addresses of this machine, closed with the block."""
    sources = [f"127.0.{place // 250}.{place % 250 + 1}" for place in range(peers)]
    opened = [await Line.to(port, sources[place % peers]) for place in range(count)]
    try:
        yield opened
    finally:
        for line in opened:
            await line.close()


async def once(
    port: int, method: str = "POST", path: str = "/webhook", headers: Mapping[str, str] | None = None, body: bytes = b""
) -> Answer:
    """One request on a connection of its own; without ``headers``, of who knows the password."""
    async with lines(port) as (line,):
        return await line.ask(method, path, headers if headers is not None else knowing(), body)


@dataclass(frozen=True)
class Sent:
    """A delivery that was sent, and what came of it. ``at``: when it was, in seconds of a clock that only goes on."""

    guid: str
    repository: int
    number: int
    answer: Answer
    at: float = 0.0


async def burst(port: int, deliveries: Iterable[tuple[str, int, int]], at_once: int = 32) -> list[Sent]:
    """Deliver (guid, repository, number) in this order over so many connections, which are kept."""
    left = iter(list(deliveries))
    sent: list[Sent] = []

    async def one() -> None:
        line = await Line.to(port)
        for guid, repository, number in left:
            body = json.dumps(issue_event(number, repository)).encode()
            at = time.perf_counter()
            answer = await line.ask("POST", "/webhook", delivered(body, guid=guid), body)
            sent.append(Sent(guid, repository, number, answer, at))
            if answer.closed:
                await line.close()
                line = await Line.to(port)
        await line.close()

    await asyncio.gather(*(one() for _ in range(at_once)))
    return sent
