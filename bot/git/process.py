"""Starts git, the only program of this package: in a session of its own, with bounded memory and time."""

from __future__ import annotations

import os
import resource
import selectors
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, NamedTuple

GitProcess = subprocess.Popen[bytes]

PIPE = subprocess.PIPE

MOST_BYTES = 1 << 24
"""Bytes read of a program's output, and a quarter of that of its remarks."""

QUIET = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Variables with which git asks for nothing, takes no locks and speaks English."""

_PIECE = 1 << 16
_MOST = ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 4 << 30), (resource.RLIMIT_CORE, 0))
"""Bytes of memory, of one file, and of the core dump of a crash, which would contain a token."""


class GitAnswer(NamedTuple):
    """The output and the remarks of git; ``is_cut`` if there was more output, in which case git was killed."""

    returncode: int
    stdout: bytes
    stderr: bytes
    is_cut: bool = False


def inherited(names: Sequence[str]) -> dict[str, str]:
    """The variables of our own environment with these names."""
    return {name: os.environ[name] for name in names if name in os.environ}


def start(
    args: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: IO[bytes] | int = subprocess.DEVNULL
) -> GitProcess:
    """Start ``git args`` in ``folder`` with this environment alone. Raises OSError, ValueError."""
    process = subprocess.Popen(
        ("git", *args),
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _bound(process.pid)
    return process


def finish(process: GitProcess, seconds: float, most: int = MOST_BYTES) -> GitAnswer:
    """Wait for the end of a process and return its output. Raises TimeoutError after so many seconds.

    Whatever happens, the process and all that it started have ended afterwards.
    """
    if process.stdin:
        process.stdin.close()
    try:
        return _read(process, time.monotonic() + seconds, most)
    finally:
        kill(process)


def kill(process: GitProcess) -> None:
    """End a process and all that it started, unless it has ended already."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _read(process: GitProcess, until: float, most: int) -> GitAnswer:
    """Read both pipes as they fill, since a process waits while its pipe is full."""
    assert process.stdout
    assert process.stderr
    printed, remarks = bytearray(), bytearray()
    with selectors.DefaultSelector() as pipes:
        pipes.register(process.stdout, selectors.EVENT_READ, printed)
        pipes.register(process.stderr, selectors.EVENT_READ, remarks)
        while pipes.get_map():
            ready = pipes.select(max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError
            for pipe, _ in ready:
                piece = os.read(pipe.fd, _PIECE)
                if not piece:
                    pipes.unregister(pipe.fileobj)
                elif pipe.data is printed or len(remarks) < most // 4:
                    pipe.data.extend(piece)
            if len(printed) > most:
                return GitAnswer(0, bytes(printed[:most]), bytes(remarks), is_cut=True)
    try:
        return GitAnswer(process.wait(max(0.1, until - time.monotonic())), bytes(printed), bytes(remarks))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def _bound(process: int) -> None:
    """Hold a process that has just begun, and what it starts, to _MOST. Only Linux can do that from outside."""
    for kind, most in _MOST:
        with suppress(OSError, AttributeError):  # it ended already; another system
            allowed = resource.prlimit(process, kind)[1]
            if allowed == resource.RLIM_INFINITY or allowed > most:
                resource.prlimit(process, kind, (most, most))
