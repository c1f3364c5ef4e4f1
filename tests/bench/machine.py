"""The machine that a benchmark ran on, and how much else it had to do in the meantime."""

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
    """``memory_gb``: all that there is, in 10^9 bytes."""

    cpu: str
    cores: int
    memory_gb: float
    kernel: str
    python: str
    sqlite: str
    git: str

    @classmethod
    def here(cls) -> Machine:
        told = subprocess.run(["git", "--version"], check=True, capture_output=True, text=True).stdout
        return cls(
            cpu=_cpu(),
            cores=os.cpu_count() or 1,
            memory_gb=round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9, 1),
            kernel=f"{platform.system()} {platform.release()}",
            python=platform.python_version(),
            sqlite=sqlite3.sqlite_version,
            git=told.split()[2],
        )

    def told(self) -> str:
        """All of it in one line."""
        return (
            f"{self.cpu}, {self.cores} cores, {self.memory_gb:g} GB; {self.kernel}; Python {self.python}, "
            f"SQLite {self.sqlite}, git {self.git}"
        )


@dataclass(frozen=True, slots=True)
class Load:
    """The average of the last minute at ``start`` and ``end``, and how many cores ``others`` took in between."""

    start: float
    end: float
    others: float

    def note(self, cores: int) -> str:
        """`busy` when more than half of the cores had work before the start, or others took a quarter of them since.

        The load at the end says little: what was measured is in it.
        """
        return "busy" if self.start > cores / 2 or self.others > cores / 4 else "idle"


class Watch:
    """Looks at the machine from its creation to `load`. A part of a longer watch starts with the load of the whole:
    what there is before it is ours too."""

    def __init__(self, whole: Watch | None = None) -> None:
        self._start, self._begun = whole._start if whole else os.getloadavg()[0], monotonic()
        self._all, self._own = _all_seconds(), _own_seconds()

    def load(self) -> Load:
        """Ours is what this process and those took that it started and waited for."""
        took = max(monotonic() - self._begun, 1e-3)
        others = (_all_seconds() - self._all) - (_own_seconds() - self._own)
        return Load(*(round(value, 2) for value in (self._start, os.getloadavg()[0], max(0.0, others / took))))


def _cpu() -> str:
    """As the kernel calls it; the kind of processor where it has no name for the model."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8").splitlines() if known.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()


def _all_seconds() -> float:
    """What all processes of the machine used; what no system but Linux tells is 0."""
    known = Path("/proc/stat")
    if not known.exists():
        return 0.0
    user, nice, system, _idle, _waiting, *rest = map(
        int, known.read_text(encoding="utf-8").split("\n", 1)[0].split()[1:]
    )
    return (user + nice + system + sum(rest[:2])) / os.sysconf("SC_CLK_TCK")


def _own_seconds() -> float:
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)
