"""One request to the git server: refuses it, or streams it through git's own program and back.

This replaces `git http-backend` (https://git-scm.com/docs/http-protocol, "Smart HTTP"), which would start up to two
more programs per request; they cost more than the answers.
"""

from __future__ import annotations

import base64
import functools
import os
import re
import socket
import subprocess
import threading
import time
import zlib
from collections.abc import Iterable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tests.fakes.httpd import read_chunks

if TYPE_CHECKING:
    from tests.fakes.git_http import GitServer

BLOCK = 1 << 18
PIPE = 1 << 20
"""Bytes; the most that a Linux pipe holds without privileges."""
USER = "x-access-token"
READ_SERVICE, WRITE_SERVICE = "git-upload-pack", "git-receive-pack"
REPOSITORY = re.compile(r"/([\w.-]+/[\w.-]+?)(?:\.git)?/(info/refs|git-upload-pack|git-receive-pack)", re.ASCII)
SETTINGS = {
    "core.fsync": "none",
    "uploadpack.allowFilter": "true",
    "uploadpack.allowAnySHA1InWant": "true",
    "receive.autogc": "false",
    "safe.directory": "*",
}
FAULT_STATUS = {"secondary403": 403, "primary403": 403, "permission": 403, "404": 404, "429": 429, "5xx": 502,
                "503": 503, "504": 504, "401": 401, "html": 200}  # fmt: skip


class ServedRequest(NamedTuple):
    """One request: (method, path with the query, status). The status is 0 if the connection was dropped."""

    method: str
    path: str
    status: int


@functools.cache
def programs() -> Path:
    """The folder of git's own programs; starting them from there saves starting the `git` wrapper."""
    return Path(subprocess.run(["git", "--exec-path"], check=True, capture_output=True, text=True).stdout.strip())


@functools.cache
def clean_environment() -> dict[str, str]:
    """An environment without the machine's git configuration, with settings that make git behave as on GitHub."""
    environment = {
        "PATH": os.environ.get("PATH", ""),
        "HOME": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_COUNT": str(len(SETTINGS)),
    }
    for index, (key, value) in enumerate(SETTINGS.items()):
        environment |= {f"GIT_CONFIG_KEY_{index}": key, f"GIT_CONFIG_VALUE_{index}": value}
    return environment


@functools.lru_cache
def _capabilities(repository: Path, _configured_at: int) -> bytes:
    """The capabilities in version 2 of the protocol; cached, since they depend on the configuration alone."""
    return _read_advertisement(READ_SERVICE, repository, {"GIT_PROTOCOL": "version=2"})


def _read_advertisement(service: str, repository: Path, environment: dict[str, str]) -> bytes:
    command = [programs() / service, "--stateless-rpc", "--advertise-refs", repository]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, env=clean_environment() | environment).stdout


def _parse_path(path: str) -> tuple[str, str] | None:
    """Folder of the repository (``octocat/hello-world.git``) and the requested service; None for any other path."""
    match = REPOSITORY.fullmatch(path)
    return (f"{match[1]}.git", match[2]) if match and ".." not in path else None


def _read_blocks(stream: Any, size: int) -> Iterator[bytes]:
    while size > 0 and (block := stream.read(min(size, BLOCK))):
        size -= len(block)
        yield block


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
            self._break_connection()
            return
        refusal = self._refusal(path, query)
        if fault and fault.kind in FAULT_STATUS:
            refusal = FAULT_STATUS[fault.kind], "The server could not do that now."
        if refusal:
            self._refuse(*refusal)
        else:
            self._answer(path, query, lose=bool(fault and fault.kind == "dup"))

    do_GET = do_POST = _serve  # noqa: N815 - the names that http.server calls

    def _refusal(self, path: str, query: str) -> tuple[int, str] | None:
        """Status and message, in GitHub's words, if the request must be refused."""
        target = _parse_path(path)
        access_level = self.server.access_level(self._secret(), target[0].removesuffix(".git") if target else "")
        if access_level is None:
            return 401, "Invalid username or token. Password authentication is not supported for Git operations."
        if target is None or not access_level or not (self.server.folder / target[0]).is_dir():
            return 404, "Repository not found."
        service = query.removeprefix("service=") if target[1] == "info/refs" else target[1]
        if service not in (READ_SERVICE, WRITE_SERVICE) or (self.command == "GET") != (target[1] == "info/refs"):
            return 403, "Only the smart protocol is spoken here."
        if service == WRITE_SERVICE and access_level != "write":
            return 403, f"Permission to {target[0]} denied to github-actions[bot]."
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
        self._note(status, len(body))
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="GitHub"')
        self.send_header("Content-Type", "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def _answer(self, path: str, query: str, lose: bool) -> None:
        name, service_path = _parse_path(path) or ("", "")
        repository = self.server.folder / name
        if service_path == "info/refs":
            self._discard_body()
            self._advertise(query.removeprefix("service="), repository, lose)
        else:
            self._run(service_path, repository, lose)
        if lose:
            self._break_connection()

    def _advertise(self, service: str, repository: Path, lose: bool) -> None:
        protocol = self.headers.get("Git-Protocol", "")
        if service == READ_SERVICE and protocol == "version=2":
            advertisement = _capabilities(repository, (repository / "config").stat().st_mtime_ns)
        else:
            line = f"# service={service}\n".encode()
            advertisement = b"%04x%s0000" % (len(line) + 4, line) + _read_advertisement(
                service, repository, {"GIT_PROTOCOL": protocol}
            )
        if not lose:
            self._stream_reply(f"{service}-advertisement", iter([advertisement]))

    def _run(self, service: str, repository: Path, lose: bool) -> None:
        command = [programs() / service, "--stateless-rpc", repository]
        environment = clean_environment() | {"GIT_PROTOCOL": self.headers.get("Git-Protocol", "")}
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, bufsize=0, pipesize=PIPE
        )
        assert process.stdin
        assert process.stdout
        # The program may answer before it has read everything, so another thread feeds it a large body.
        if self._is_small():
            self._feed(process.stdin)
            feeder = None
        else:
            feeder = threading.Thread(target=self._feed, args=(process.stdin,), daemon=True)
            feeder.start()
        if lose:
            process.stdout.read()
        else:
            self._stream_reply(f"{service}-result", iter(lambda: os.read(process.stdout.fileno(), BLOCK), b""))
        if feeder:
            feeder.join()
        process.stdout.close()
        process.wait()

    def _is_small(self) -> bool:
        """Whether the whole body fits into the pipe, so that writing it cannot block."""
        has_length = "Transfer-Encoding" not in self.headers and "Content-Encoding" not in self.headers
        return has_length and int(self.headers.get("Content-Length") or 0) <= PIPE // 2

    def _feed(self, stdin: Any) -> None:
        """Pass the body on as it arrives; once the program stops reading, discard the rest."""
        alive = True
        packed = self.headers.get("Content-Encoding") == "gzip"
        unpack = zlib.decompressobj(wbits=31).decompress if packed else bytes
        for block in self._body():
            if alive:
                try:
                    stdin.write(unpack(block))
                except (BrokenPipeError, zlib.error):
                    alive = False
        try:
            stdin.close()
        except BrokenPipeError:
            return

    def _stream_reply(self, kind: str, blocks: Iterator[bytes]) -> None:
        """Stream the reply in chunks, because its length is unknown."""
        self.send_response(200)
        self.send_header("Content-Type", f"application/x-{kind}")
        self.send_header("Cache-Control", "no-cache, max-age=0, must-revalidate")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        sent = 0
        for block in blocks:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(block), block))
            sent += len(block)
        self._note(200, sent)  # before the end, so that no client goes on before its request is counted
        self.wfile.write(b"0\r\n\r\n")
        self.wfile.flush()

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

    def _note(self, status: int, sent: int) -> None:
        self.server.count(sent=sent)
        self.server.requests.append(ServedRequest(self.command, self.path, status))

    def _break_connection(self) -> None:
        """Break off within the reply: if nothing at all had arrived, curl would silently repeat the request."""
        self._note(0, 0)
        self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n")
        self.wfile.flush()
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RDWR)

    def log_message(self, *arguments: object) -> None:
        """Requests are recorded, not printed."""
