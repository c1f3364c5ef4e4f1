"""Connects a network without a way out to one server outside, through a Unix socket.

python -I bridge.py PORT FILE [PORT FILE …]

listens on these loopback ports where it runs. `Bridge` is the other end.
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
    """Forwards connections at the socket ``file`` to a port of this machine, until `close`."""

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
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(file)
    return connection


def serve(listener: socket.socket, connect: Connect) -> None:
    """Join each incoming connection with one that ``connect`` makes."""
    while True:
        try:
            incoming, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=relay, args=(incoming, connect), daemon=True).start()


def relay(incoming: socket.socket, connect: Connect) -> None:
    try:
        outgoing = connect()
    except OSError:
        incoming.close()
        return
    back = threading.Thread(target=copy_stream, args=(outgoing, incoming), daemon=True)
    back.start()
    copy_stream(incoming, outgoing)
    back.join()
    incoming.close()
    outgoing.close()


def copy_stream(source: socket.socket, sink: socket.socket) -> None:
    """Copy everything from one socket to the other, and then the end of the stream."""
    with contextlib.suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def main() -> None:
    arguments = iter(sys.argv[1:])
    for port, file in zip(arguments, arguments, strict=True):
        listener = socket.create_server(("127.0.0.1", int(port)))
        threading.Thread(target=serve, args=(listener, lambda file=file: unix(file)), daemon=True).start()
    print("ready", flush=True)
    threading.Event().wait()


if __name__ == "__main__":
    main()
