"""The baseline for measuring our web process: `python -m bench.bare_web URL PORT`.

A Starlette application that only does one INSERT and commit for each request, without checks or a queue. It uses one
connection, so that nothing waits for a lock.
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

CREATE_TABLE = "create table if not exists bare (id text primary key, said text not null)"


def make_inserter(url: str) -> Callable[[str, str], object]:
    """A function that stores and commits a row."""
    if url.startswith("sqlite:///"):
        file = sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)
        file.execute("pragma journal_mode=wal")
        file.execute("pragma synchronous=full")
        file.execute(CREATE_TABLE)
        return lambda name, text: file.execute("insert into bare values (?, ?)", (name, text))
    server = psycopg.connect(url, autocommit=True)
    server.execute(CREATE_TABLE)
    return lambda name, text: server.execute("insert into bare values (%s, %s)", (name, text))


def main(url: str, port: int) -> None:
    insert = make_inserter(url)

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
