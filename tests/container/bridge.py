"""Connections from a network that has no way out to one server outside: through a socket that is a file.

python -I bridge.py PORT FILE [PORT FILE …]

listens on these ports of the loopback address where it runs. `Bridge` is the other end.
"""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
from collections.abc import Callable
from pathlib import Path

Connect = Callable[[], socket.socket]


class Bridge:
    """Takes connections at ``file`` on to a port of this machine, until `close`."""

    def __init__(self, file: Path, port: int) -> None:
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(file))
        file.chmod(0o777)
        self._listener.listen(64)
        threading.Thread(target=serve, args=(self._listener, lambda: tcp(port)), daemon=True).start()

    def close(self) -> None:
        self._listener.close()


def tcp(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port))


def unix(file: str) -> socket.socket:
    made = socket.socket(socket.AF_UNIX)
    made.connect(file)
    return made


def serve(listener: socket.socket, connect: Connect) -> None:
    """Join each connection that comes with one that ``connect`` makes."""
    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=join, args=(near, connect), daemon=True).start()


def join(near: socket.socket, connect: Connect) -> None:
    try:
        far = connect()
    except OSError:
        near.close()
        return
    back = threading.Thread(target=pour, args=(far, near), daemon=True)
    back.start()
    pour(near, far)
    back.join()
    near.close()
    far.close()


def pour(source: socket.socket, sink: socket.socket) -> None:
    """Everything that comes from one to the other, and the end of it."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def main() -> None:
    given = iter(sys.argv[1:])
    for port, file in zip(given, given, strict=True):
        listener = socket.create_server(("127.0.0.1", int(port)))
        threading.Thread(target=serve, args=(listener, lambda file=file: unix(file)), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
