"""Runs commands from a small process of its own and measures them.

A process inherits the peak memory of the one that starts it, so a benchmark that holds an archive must not start what
it measures. `Launcher` is made before anything is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of one command, and the peak memory in MB of it and of everything that it started."""

    seconds: float
    peak_mb: float


class Launcher:
    """A process that runs one command after the other."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-I", __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, command: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Measured:
        """Run to the end; SystemExit with the log when the command fails."""
        asked = {"command": list(command), "env": dict(environment), "cwd": str(cwd)}
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        if told["code"]:
            raise SystemExit(f"{command} failed:\n{told['log']}")
        return Measured(told["seconds"], told["peak_kb"] / 1024)

    def close(self) -> None:
        self._process.communicate("")


def serve() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        with tempfile.TemporaryFile() as log:
            started = time.perf_counter()
            process = subprocess.Popen(asked["command"], env=asked["env"], cwd=asked["cwd"], stdout=log, stderr=log)
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.perf_counter() - started
            process.returncode = os.waitstatus_to_exitcode(status)
            log.seek(0)
            told = {"code": process.returncode, "seconds": seconds, "peak_kb": usage.ru_maxrss}
            print(json.dumps(told | {"log": log.read().decode(errors="replace")}), flush=True)


if __name__ == "__main__":
    serve()
