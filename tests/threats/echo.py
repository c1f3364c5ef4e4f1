"""A server that repeats what it was sent, including the token, wherever a client might quote an answer."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler

from tests.fakes.httpd import Loopback

ANSWERS = ("401", "403", "404", "422", "500", "page", "broken", "errors", "wrong shape", "elsewhere", "reason")


class EchoServer(Loopback):
    """Answers each request in the way that ``answer`` names and repeats its credentials."""

    def __init__(self, answer: str) -> None:
        self.answer = answer
        self.requests: list[tuple[str, str, str]] = []
        super().__init__(Handler)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: EchoServer

    def answer(self) -> None:
        authorization = self.headers.get("Authorization", "")
        self.server.requests.append((self.command, self.path, authorization))
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        secret = authorization.rpartition(" ")[2]
        status, text, location = 200, json.dumps({"message": f"Bad credentials: {authorization} {secret}"}), ""
        match self.server.answer:
            case "page":
                text = f"<html>{authorization} {secret}</html>"
            case "broken":
                text = f'{{"message": "{secret}'
            case "errors":
                text = json.dumps({"errors": [{"message": f"No {secret}", "type": "X"}], "data": None})
            case "wrong shape":
                text = json.dumps([{"number": secret, "created_at": secret, "title": [secret], "user": secret}])
            case "elsewhere":
                status, location = 302, f"http://localhost:{self.server.server_port}/{secret}"
            case "reason":
                status = 400
            case number:
                status = int(number)
        self.send_response(status, secret if self.server.answer == "reason" else None)
        body = text.encode()
        headers = {"Location": location, "X-Echo": secret, "WWW-Authenticate": f'Basic realm="{secret}"'}
        headers |= {"Content-Type": "application/json", "Content-Length": str(len(body))}
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST = do_PATCH = do_DELETE = answer  # noqa: N815 - the names that http.server calls

    def log_message(self, *arguments: object) -> None:
        """Requests are recorded, not printed."""
