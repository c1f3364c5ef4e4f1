"""Starts git, the only program that this package runs, in its own session and with bounded memory and time."""

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

MAX_OUTPUT_BYTES = 1 << 24
"""Maximum bytes to read of a program's output; for its error output, a quarter of that."""

QUIET_ENVIRONMENT = {
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
"""Variables that make git ask for nothing, take no locks and write English."""

_CHUNK_BYTES = 1 << 16
_RESOURCE_LIMITS = ((resource.RLIMIT_AS, 4 << 30), (resource.RLIMIT_FSIZE, 4 << 30), (resource.RLIMIT_CORE, 0))
"""Limits in bytes of memory, of one file, and of a core dump, which would contain a token."""


class GitAnswer(NamedTuple):
    """Git's output and remarks; ``is_cut`` if there was more output, in which case git was killed."""

    returncode: int
    stdout: bytes
    stderr: bytes
    is_cut: bool = False


def inherit(names: Sequence[str]) -> dict[str, str]:
    """The variables with these names in our own environment."""
    return {name: os.environ[name] for name in names if name in os.environ}


def start(
    args: Sequence[str], folder: Path, environment: Mapping[str, str], stdin: IO[bytes] | int = subprocess.DEVNULL
) -> GitProcess:
    """Start ``git args`` in ``folder`` with only this environment. Raises OSError, ValueError."""
    process = subprocess.Popen(
        ("git", *args),
        cwd=folder,
        env=environment,
        start_new_session=True,
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    _limit_resources(process.pid)
    return process


def finish(process: GitProcess, seconds: float, most: int = MAX_OUTPUT_BYTES) -> GitAnswer:
    """Wait for a process to end and return its output. Raises TimeoutError after this many seconds.

    Whatever happens, the process and everything it started have ended afterwards.
    """
    if process.stdin:
        process.stdin.close()
    try:
        return _read(process, time.monotonic() + seconds, most)
    finally:
        kill(process)


def kill(process: GitProcess) -> None:
    """End a process and everything it started, unless it has ended already."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            pipe.close()


def _read(process: GitProcess, deadline: float, most: int) -> GitAnswer:
    """Read both pipes as they fill, since a process blocks while a pipe is full."""
    assert process.stdout
    assert process.stderr
    output, remarks = bytearray(), bytearray()
    with selectors.DefaultSelector() as pipes:
        pipes.register(process.stdout, selectors.EVENT_READ, output)
        pipes.register(process.stderr, selectors.EVENT_READ, remarks)
        while pipes.get_map():
            ready = pipes.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for pipe, _ in ready:
                piece = os.read(pipe.fd, _CHUNK_BYTES)
                if not piece:
                    pipes.unregister(pipe.fileobj)
                elif pipe.data is output or len(remarks) < most // 4:
                    pipe.data.extend(piece)
            if len(output) > most:
                return GitAnswer(0, bytes(output[:most]), bytes(remarks), is_cut=True)
    try:
        return GitAnswer(process.wait(max(0.1, deadline - time.monotonic())), bytes(output), bytes(remarks))
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def _limit_resources(pid: int) -> None:
    """Apply _RESOURCE_LIMITS to a process just started, and its children. Only Linux can set them from outside."""
    for kind, most in _RESOURCE_LIMITS:
        with suppress(OSError, AttributeError):  # it ended already; another system
            hard_limit = resource.prlimit(pid, kind)[1]
            if hard_limit == resource.RLIM_INFINITY or hard_limit > most:
                resource.prlimit(pid, kind, (most, most))
