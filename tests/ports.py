"""Free ports, for servers that must know their port before they start."""

from __future__ import annotations

import fcntl
import os
import random
import socket
import tempfile
from pathlib import Path

# Below the ports that systems assign themselves: no connection and no server on port 0 takes one of these meanwhile.
_FROM, _TO = 15_000, 32_000
_LOCKS = Path(tempfile.gettempdir()) / f"precedent-ports-{os.geteuid()}"
_held = []


def free_port() -> int:
    """A free port of this machine, which no other test gets until this process ends."""
    _LOCKS.mkdir(exist_ok=True)
    while True:
        port = random.randrange(_FROM, _TO)
        lock = (_LOCKS / str(port)).open("w")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", port))
        except OSError:
            lock.close()
            continue
        _held.append(lock)
        return port
