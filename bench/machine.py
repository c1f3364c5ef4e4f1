"""The machine that a benchmark ran on, and its other load meanwhile."""

from __future__ import annotations

import os
import platform
import resource
import sqlite3
import subprocess
from dataclasses import dataclass
from pathlib import Path
from time import monotonic


@dataclass(frozen=True, slots=True)
class Machine:
    """``memory_gb``: total memory in 10^9 bytes."""

    cpu: str
    cores: int
    memory_gb: float
    kernel: str
    python: str
    sqlite: str
    git: str

    @classmethod
    def here(cls) -> Machine:
        output = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True).stdout
        return cls(
            cpu=_cpu(),
            cores=os.cpu_count() or 1,
            memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            kernel=f"{platform.system()} {platform.release()}",
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
            git=output.split()[2],
        )

    def as_text(self) -> str:
        """The machine in one line."""
        return (
            f"{self.cpu}, {self.cores} cores, {self.memory_gb:g} GB; {self.kernel}; Python {self.python}, "
            f"SQLite {self.sqlite}, git {self.git}"
        )


@dataclass(frozen=True, slots=True)
class Load:
    """The load average of the last minute at ``start`` and ``end``, and how many cores ``others`` used in between."""

    start: float
    end: float
    others: float

    def note(self, cores: int) -> str:
        """`busy` if more than half of the cores were loaded before the start, or others used a quarter of them since.

        The load at the end says little, as it includes the benchmark.
        """
        return "busy" if self.start > cores / 2 or self.others > cores / 4 else "idle"


class Watch:
    """Watches the machine from its creation to `load`. A part of a longer watch takes over that watch's starting load,
    as the current one includes our own."""

    def __init__(self, parent: Watch | None = None) -> None:
        self._start, self._begun = parent._start if parent else os.getloadavg()[0], monotonic()
        self._all, self._own = _all_seconds(), _own_seconds()

    def load(self) -> Load:
        """The load so far; our own use is that of this process and of the children that it waited for."""
        elapsed = max(monotonic() - self._begun, 1e-3)
        others = (_all_seconds() - self._all) - (_own_seconds() - self._own)
        return Load(*(round(value, 2) for value in (self._start, os.getloadavg()[0], max(0.0, others / elapsed))))


def _cpu() -> str:
    """The model name from the kernel, or else the architecture."""
    file = Path("/proc/cpuinfo")
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()


def _all_seconds() -> float:
    """CPU seconds of all processes on the machine; 0 on systems other than Linux."""
    file = Path("/proc/stat")
    if not file.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *rest = map(
        int, file.read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + sum(rest[:2])) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    used = (resource.getrusage(whose) for whose in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in used)
