"""The loopback HTTP server in front of the fake GitHub: HTTP/1.1 with persistent connections, one thread each."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.fakes.service import SentReply

Answer = Callable[[str, str, dict[str, str], bytes], SentReply]


class _Headers(dict[str, str]):
    """Headers by their usual spelling (``If-None-Match``), however the client spells them."""

    @classmethod
    def of(cls, message: Any) -> _Headers:
        return cls((name.title(), value) for name, value in message.items())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: Listener

    def _serve(self) -> None:
        body = self._body()
        if len(body) < int(self.headers.get("Content-Length") or 0):  # the client is gone: ignore half a request
            self._drop()
            return
        sent = self.server.answer(self.command, self.path, _Headers.of(self.headers), body)
        if sent.delay:
            time.sleep(sent.delay)
        if sent.dropped:
            self._drop()
            return
        self.send_response_only(sent.status)
        for name, value in {"Server": "github.com", "Date": self.date_time_string(), **sent.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(sent.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent.body)
        self.wfile.flush()

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 - as http.server calls them

    def _body(self) -> bytes:
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            return b"".join(read_chunks(self.rfile))
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def _drop(self) -> None:
        self.close_connection = True
        with contextlib.suppress(OSError):  # the other side may be gone already
            self.connection.shutdown(socket.SHUT_RDWR)

    def version_string(self) -> str:
        return "github.com"

    def log_message(self, *arguments: object) -> None:
        """Requests are recorded by the fake, not printed."""


def read_chunks(stream: Any) -> Any:
    """The chunks of a body in chunked transfer coding."""
    while size := int(stream.readline().split(b";")[0], 16):
        yield stream.read(size)
        stream.readline()
    while stream.readline().strip():
        pass


class Loopback(ThreadingHTTPServer):
    """Listens on a loopback port (0: any) from its creation until `stop`."""

    daemon_threads = True
    request_queue_size = 128
    block_on_close = False

    def __init__(self, handler: type[BaseHTTPRequestHandler], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), handler)
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that hangs up; anything else is an error."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join()


class Listener(Loopback):
    """Answers each request by a function."""

    def __init__(self, answer: Answer, port: int = 0) -> None:
        self.answer = answer
        super().__init__(_Handler, port)
