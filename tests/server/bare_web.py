"""What a web process of ours is measured beside: `python -m tests.server.bare_web URL PORT`.

A Starlette application that does nothing but one INSERT with its commit for each request, without a check or a queue.
It uses one connection, so that nobody waits for a lock.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable

import psycopg
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

MADE = "create table if not exists bare (id text primary key, said text not null)"


def inserting(url: str) -> Callable[[str, str], object]:
    """A function that stores a row for good."""
    if url.startswith("sqlite:///"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        file.execute("pragma journal_mode=wal")
        file.execute("pragma synchronous=full")
        file.execute(MADE)
        return lambda name, said: file.execute("insert into bare values (?, ?)", (name, said))
    server = psycopg.connect(url, autocommit=True)
    server.execute(MADE)
    return lambda name, said: server.execute("insert into bare values (%s, %s)", (name, said))


def main(url: str, port: int) -> None:
    insert = inserting(url)

    async def store(request: Request) -> Response:
        body = await request.body()
        insert(request.headers["x-github-delivery"], body[:200].decode())
        return PlainTextResponse("stored\n", 202)

    async def healthz(_: Request) -> Response:
        return PlainTextResponse("ok\n")

    app = Starlette(routes=[Route("/webhook", store, methods=["POST"]), Route("/healthz", healthz)])
    uvicorn.run(app, host="127.0.0.1", port=port, log_config=None, access_log=False, lifespan="off")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
