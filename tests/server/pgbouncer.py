"""PgBouncer for tests: the real program, in transaction mode, in front of a PostgreSQL server."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
from psycopg.conninfo import conninfo_to_dict

from tests.ports import free_port
from tests.server.postgres import as_nobody

PROGRAM = "pgbouncer"

CONNECTIONS = 4
"""Connections to PostgreSQL for each database: fewer than a test has clients, so that these share them."""

_SETTINGS = """
[databases]
* = {server}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = {connections}
logfile = {folder}/log
pidfile = {folder}/pid
"""


@dataclass(frozen=True, slots=True)
class Bouncer:
    """A running PgBouncer, which listens on ``port`` of this machine."""

    port: int
    folder: Path

    def pooled_url(self, url: str) -> str:
        """The URL of a database of the server, reached through PgBouncer."""
        return f"postgresql://precedent@127.0.0.1:{self.port}/{url.rpartition('/')[2]}"

    def log_text(self) -> str:
        """Everything that it has logged."""
        return (self.folder / "log").read_text(encoding="utf-8")


def program() -> str | None:
    """The path of PgBouncer, or None. Debian keeps it in a folder that only root has in its PATH."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/sbin:/sbin")


@contextlib.contextmanager
def start_bouncer(server: str) -> Iterator[Bouncer]:
    """PgBouncer in front of the server at this URL, which names no database. It ends with the block."""
    executable = program()
    assert executable is not None, "PgBouncer is not installed"
    folder, port = Path(tempfile.mkdtemp(prefix="precedent-bouncer-", dir="/tmp")), free_port()
    parameters = {name: value for name, value in conninfo_to_dict(server).items() if name != "dbname"}
    line = " ".join(f"{name}={value}" for name, value in parameters.items())
    settings = folder / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(server=line, port=port, connections=CONNECTIONS, folder=folder))
    if as_nobody():
        shutil.chown(folder, "nobody")
    bouncer = Bouncer(port, folder)
    with subprocess.Popen(
        [*as_nobody(), executable, "-q", str(settings)], cwd="/", stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_for(f"{bouncer.pooled_url('/postgres')}", process)
            yield bouncer
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return
