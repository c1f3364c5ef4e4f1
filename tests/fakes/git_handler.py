"""One request to the git server: refuse it, or stream it through `git http-backend` and back."""

from __future__ import annotations

import base64
import functools
import os
import re
import socket
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.fakes.httpd import read_chunks

if TYPE_CHECKING:
    from tests.fakes.git_http import GitServer

BLOCK = 1 << 18
PIPE = 1 << 20
"""Bytes; what a pipe of Linux holds at most without privileges."""
USER = "x-access-token"
READ_SERVICE, WRITE_SERVICE = "git-upload-pack", "git-receive-pack"
REPOSITORY = re.compile(r"/([\w.-]+/[\w.-]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)", re.ASCII)
SETTINGS = {
    "http.receivepack": "true",
    "core.fsync": "none",
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "receive.autogc": "false",
    "safe.directory": "*",
}
FAULT_STATUS = {"secondary403": 403, "primary403": 403, "permission": 403, "404": 404, "429": 429, "5xx": 502,
                "503": 503, "504": 504, "401": 401, "html": 200}  # fmt: skip


class Served(NamedTuple):
    """One request: (method, path with the query, status). The status is 0 when the connection was dropped."""

    method: str
    path: str
    status: int


@functools.cache
def backend() -> str:
    """The CGI program itself, which spares the start of the `git` wrapper."""
    folder = subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip()
    return f"{folder}/git-http-backend"


@functools.cache
def settled_environment() -> dict[str, str]:
    """Nothing of the machine's own git configuration, and the settings that make it behave as GitHub does."""
    found = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(SETTINGS)),
    }
    for place, (key, value) in enumerate(SETTINGS.items()):
        found |= {f"GIT_CONFIG_KEY_{place}": key, f"GIT_CONFIG_VALUE_{place}": value}
    return found


def _repository(path: str) -> tuple[str, str] | None:
    """Folder of the repository (``octocat/hello-world.git``) and what is asked of it, None for any other path."""
    found = REPOSITORY.fullmatch(path)
    return (f"{found[1]}.git", found[2]) if found and ".." not in path else None


def _read_blocks(stream: Any, size: int) -> Iterator[bytes]:
    while size > 0 and (block := stream.read(min(size, BLOCK))):
        size -= len(block)
        yield block


def _read_head(source: int) -> bytes:
    """What the program says up to the end of its headers, and the part of the body that came along."""
    head = b""
    while b"\r\n\r\n" not in head and (block := os.read(source, BLOCK)):
        head += block
    return head


class GitHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: GitServer

    def _serve(self) -> None:
        path, _, query = self.path.partition("?")
        fault = self.server.faults.strike(f"{self.command} {path}")
        if fault and fault.kind == "slow":
            time.sleep(fault.seconds)
        if fault and fault.kind == "drop":
            self._discard_body()
            self._break_off()
            return
        refusal = self._refusal(path, query)
        if fault and fault.kind in FAULT_STATUS:
            refusal = FAULT_STATUS[fault.kind], "The server could not do that now."
        if refusal:
            self._refuse(*refusal)
        else:
            self._run(path, query, lose=bool(fault and fault.kind == "dup"))

    do_GET = do_POST = _serve  # noqa: N815 - the names that http.server calls

    def _refusal(self, path: str, query: str) -> tuple[int, str] | None:
        """Status and words when the answer is no, as GitHub words it."""
        found = _repository(path)
        right = self.server.right(self._secret(), found[0].removesuffix(".git") if found else "")
        if right is None:
            return 401, "Invalid username or token. Password authentication is not supported for Git operations."
        if found is None or not right or not (self.server.folder / found[0]).is_dir():
            return 404, "Repository not found."
        if WRITE_SERVICE in (found[1], query.removeprefix("service=")) and right != "write":
            return 403, f"Permission to {found[0]} denied to github-actions[bot]."
        return None

    def _secret(self) -> str:
        kind, _, credential = self.headers.get("Authorization", "").partition(" ")
        if kind.lower() != "basic":
            return ""
        try:
            user, _, secret = base64.b64decode(credential).decode().partition(":")
        except ValueError:
            return ""
        return secret if user == USER else ""

    def _refuse(self, status: int, text: str) -> None:
        self._discard_body()
        body = f"{text}\n".encode()
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()
        self._note(status, len(body))

    def _run(self, path: str, query: str, lose: bool) -> None:
        environment = self._environment(path, query)
        process = subprocess.Popen([backend()], stdin=-1, stdout=-1, env=environment, bufsize=0, pipesize=PIPE)
        assert process.stdin
        assert process.stdout
        # The program may answer before it has read everything, so a large body is fed from the side.
        if self._is_small():
            self._feed(process.stdin)
            feeder = None
        else:
            feeder = threading.Thread(target=self._feed, args=(process.stdin,), daemon=True)
            feeder.start()
        if lose:
            process.stdout.read()
        else:
            self._pass_on(process.stdout.fileno())
        if feeder:
            feeder.join()
        process.stdout.close()
        process.wait()
        if lose:
            self._break_off()

    def _is_small(self) -> bool:
        """Whether the whole body fits into the pipe, so that nobody waits for anybody."""
        known = "Transfer-Encoding" not in self.headers
        return known and int(self.headers.get("Content-Length") or 0) <= PIPE // 2

    def _feed(self, stdin: Any) -> None:
        """Hand the body on as it comes; when the program has heard enough, read the rest of it away."""
        alive = True
        for block in self._body():
            if alive:
                try:
                    stdin.write(block)
                except BrokenPipeError:
                    alive = False
        try:
            stdin.close()
        except BrokenPipeError:
            return

    def _pass_on(self, source: int) -> None:
        """The reply of the program, streamed in chunks because its length is not known."""
        head, _, block = _read_head(source).partition(b"\r\n\r\n")
        headers = [line.split(": ", 1) for line in head.decode("latin-1").split("\r\n") if line]
        status = next((int(value.split()[0]) for name, value in headers if name == "Status"), 200)
        self.send_response(status)
        for name, value in headers:
            if name not in ("Status", "Content-Length"):
                self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        block = block or os.read(source, BLOCK)
        while block:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
            sent += len(block)
            block = os.read(source, BLOCK)
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()
        self._note(status, sent)

    def _body(self) -> Iterator[bytes]:
        blocks: Iterable[bytes]
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            blocks = read_chunks(self.rfile)
        else:
            blocks = _read_blocks(self.rfile, int(self.headers.get("Content-Length") or 0))
        for block in blocks:
            self.server.count(received=len(block))
            yield block

    def _discard_body(self) -> None:
        for _ in self._body():
            pass

    def _environment(self, path: str, query: str) -> dict[str, str]:
        name, asked = _repository(path) or ("", "")
        request = {
            "GIT_PROJECT_ROOT": str(self.server.folder),
            "GIT_HTTP_EXPORT_ALL": "1",
            "PATH_INFO": f"/{name}/{asked}",
            "QUERY_STRING": query,
            "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "CONTENT_LENGTH": self.headers.get("Content-Length", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
            "REMOTE_USER": USER,
            "REMOTE_ADDR": "127.0.0.1",
        }
        return settled_environment() | request

    def _note(self, status: int, sent: int) -> None:
        self.server.count(sent=sent)
        self.server.requests.append(Served(self.command, self.path, status))

    def _break_off(self) -> None:
        """Break off within the reply: when nothing at all had come, curl would quietly send the request again."""
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n")
        self.wfile.flush()
        self._note(0, 0)
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments: object) -> None:
        """Requests are recorded, not printed."""
