"""A PgBouncer for tests: the program of that name, in transaction mode, in front of a PostgreSQL server."""

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
"""Connections to PostgreSQL for each database: fewer than the clients of a test, which therefore get each other's."""

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
    """``port`` is where it listens, on this machine."""

    port: int
    folder: Path

    def before(self, url: str) -> str:
        """The URL by which this database, which is on the server behind, is reached through it."""
        return f"postgresql://precedent@127.0.0.1:{self.port}/{url.rpartition('/')[2]}"

    def told(self) -> str:
        """All that it has logged."""
        return (self.folder / "log").read_text(encoding="utf-8")


def program() -> str | None:
    """Where PgBouncer is; None without it. Debian keeps it where only root looks."""
    return shutil.which(PROGRAM) or shutil.which(PROGRAM, path="/usr/sbin:/sbin")


@contextlib.contextmanager
def running(server: str) -> Iterator[Bouncer]:
    """PgBouncer in front of the server of this URL, which names no database. It ends with the block."""
    found = program()
    assert found is not None, "PgBouncer is not installed"
    folder, port = Path(tempfile.mkdtemp(prefix="precedent-bouncer-", dir="/tmp")), free_port()
    given = {name: value for name, value in conninfo_to_dict(server).items() if name != "dbname"}
    line = " ".join(f"{name}={value}" for name, value in given.items())
    settings = folder / "pgbouncer.ini"
    settings.write_text(_SETTINGS.format(server=line, port=port, connections=CONNECTIONS, folder=folder))
    if as_nobody():
        shutil.chown(folder, "nobody")
    bouncer = Bouncer(port, folder)
    with subprocess.Popen([*as_nobody(), found, "-q", str(settings)], cwd="/", stderr=subprocess.DEVNULL) as process:
        try:
            _wait_for(f"{bouncer.before('/postgres')}", process)
            yield bouncer
        finally:
            process.kill()
            process.wait()
            shutil.rmtree(folder)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + 30
    while True:
        try:
            psycopg.connect(url, connect_timeout=5).close()
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > until:
                raise
            time.sleep(0.05)
        else:
            return
