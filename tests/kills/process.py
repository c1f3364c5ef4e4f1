"""One run of the Action as a process, and its death by signal 9: with all that it started, or alone."""

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
    """The Action, begun at once in a session of its own; what it says goes to ``log``."""

    def __init__(self, environment: Mapping[str, str], now: str, log: Path) -> None:
        inherited = {name: os.environ[name] for name in INHERITED if name in os.environ}
        with log.open("ab") as said:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.kills.action", now],
                cwd=ROOT,
                env={**inherited, **environment},
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        self._left: dict[int, int] = {}

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def wait(self, seconds: float | None = None) -> int | None:
        """The exit code, None when the process still runs after so many seconds."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None

    def kill(self, *, alone: bool = False) -> None:
        """SIGKILL; every git program has a session of its own, so that they are found by who started them.

        ``alone``: the programs that it started live on, as where memory ran out.
        """
        if alone:
            self._left = dict(_family(self._process.pid))
            self._process.kill()
            return
        stopped: dict[int, int] = {}
        while new := [pair for pair in _family(self._process.pid) if pair[0] not in stopped]:
            for pid, born in new:
                stopped[pid] = born
                _signal(pid, born, signal.SIGSTOP)
        for pid, born in stopped.items():
            _signal(pid, born, signal.SIGKILL)

    def mark_dead(self) -> None:
        """End whatever lived on."""
        for pid, born in self._left.items():
            _signal(pid, born, signal.SIGKILL)


def _family(first: int) -> Iterator[tuple[int, int]]:
    """A process and all below it: its number, and when it began, which tells it from a later one of this number."""
    children: dict[int, list[tuple[int, int]]] = {}
    root: list[tuple[int, int]] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := _parent_and_birth(int(entry.name))):
            pair = int(entry.name), found[1]
            children.setdefault(found[0], []).append(pair)
            root += [pair] if pair[0] == first else []
    while root:
        pair = root.pop()
        yield pair
        root += children.get(pair[0], [])


def _parent_and_birth(pid: int) -> tuple[int, int] | None:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[1]), int(fields[19])) if fields[0] not in "ZX" else None


def _signal(pid: int, born: int, number: int) -> None:
    found = _parent_and_birth(pid)
    if found and found[1] == born:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
