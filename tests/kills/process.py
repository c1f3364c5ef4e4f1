"""One run of the Action as a process, which can be killed by signal 9, with its child processes or alone."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
INHERITED = ("PATH", "HOME", "LANG", "OPENBLAS_NUM_THREADS")


class ActionProcess:
    """The Action, started at once in its own session; its output goes to ``log``."""

    def __init__(self, environment: Mapping[str, str], now: str, log: Path) -> None:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.acceptance.run_at", now],
                cwd=ROOT,
                env={**inherited, **environment},
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        self._survivors: dict[int, int] = {}

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def wait(self, seconds: float | None = None) -> int | None:
        """The exit code; None if the process still runs after that many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self, *, alone: bool = False) -> None:
        """Send SIGKILL. Every git program has its own session, so they are found through their parent processes.

        ``alone``: the child processes live on, as when the kernel runs out of memory and kills one process.
        """
        if alone:
            self._survivors = dict(_process_tree(self._process.pid))
            self._process.kill()
            return
        stopped: dict[int, int] = {}
        while new := [pair for pair in _process_tree(self._process.pid) if pair[0] not in stopped]:
            for pid, started_at in new:
                stopped[pid] = started_at
                _signal(pid, started_at, signal.SIGSTOP)
        for pid, started_at in stopped.items():
            _signal(pid, started_at, signal.SIGKILL)

    def kill_survivors(self) -> None:
        """Kill the child processes that lived on."""
        for pid, started_at in self._survivors.items():
            _signal(pid, started_at, signal.SIGKILL)


def _process_tree(root_pid: int) -> Iterator[tuple[int, int]]:
    """A process and its descendants: process id and start time, which tells apart processes with the same id."""
    children: dict[int, list[tuple[int, int]]] = {}
    root: list[tuple[int, int]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (parent := _parent_and_start(int(entry.name))):
            pair = int(entry.name), parent[1]
            children.setdefault(parent[0], []).append(pair)
            root += [pair] if pair[0] == root_pid else []
    while root:
        pair = root.pop()
        yield pair
        root += children.get(pair[0], [])


def _parent_and_start(pid: int) -> tuple[int, int] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[1]), int(fields[19])) if fields[0] not in "ZX" else None


def _signal(pid: int, started_at: int, number: int) -> None:
    current = _parent_and_start(pid)
    if current and current[1] == started_at:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
